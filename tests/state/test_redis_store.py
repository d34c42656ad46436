"""A namespace has a schema, and a server of another one does not touch it."""

import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from discreet.errors import InvalidArgument, StoreUnavailable, StoreUnsuitable
from discreet.state.keys import StoreKeys
from discreet.state.redis_store import RedisStore, open_store
from discreet.state.stores import SCHEMA, Ledger
from tests.state.places import ONE, spend, spent
from tests.state.servers import Server, valkey

pytestmark = pytest.mark.anyio

KEYS = StoreKeys()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with valkey(tmp_path_factory.mktemp("schema") / "data") as server:
        yield server


@pytest.fixture
def server(running: Server) -> Server:
    running.do("FLUSHALL")
    return running


@contextlib.asynccontextmanager
async def opened(server: Server, namespace: str = "discreet") -> AsyncIterator[RedisStore]:
    store = open_store(server.url, namespace=namespace, timeout=60)
    await store.open()
    yield store
    await store.close()


async def test_an_empty_namespace_gets_the_schema_and_keeps_it(server: Server) -> None:
    for _ in range(2):
        async with opened(server) as store:
            assert server.do("GET", KEYS.schema) == b"%d" % SCHEMA
            await spend(store)
            await store.secret(name="s", proposal=b"p")
    async with opened(server) as store:
        assert await spent(store) == Ledger(ONE + ONE)


@pytest.mark.parametrize("found", [1, SCHEMA + 1])
async def test_another_schema_is_refused_with_what_to_do(server: Server, found: int) -> None:
    server.do("SET", KEYS.schema, found)
    with pytest.raises(StoreUnsuitable) as caught:
        await open_store(server.url).open()
    for part in (f"schema {found}", f"schema {SCHEMA}", "'discreet'", "--namespace", "empty store"):
        assert part in str(caught.value)
    assert server.do("GET", KEYS.schema) == b"%d" % found
    async with opened(server, "elsewhere") as store:
        assert (await spend(store)).granted


@pytest.mark.parametrize("part", ["documents", "epoch", "secrets"])
async def test_data_without_a_schema_are_refused(server: Server, part: str) -> None:
    """Every server wrote its secrets first, also before there were schemas."""
    server.do("SET" if part == "epoch" else "RPUSH", getattr(KEYS, part), "1")
    with pytest.raises(StoreUnsuitable, match="before stores had a schema version"):
        await open_store(server.url).open()
    assert server.do("DBSIZE") == 1


async def test_a_schema_that_cannot_be_read_is_refused(server: Server) -> None:
    server.do("SET", KEYS.schema, "two")
    with pytest.raises(StoreUnavailable):
        await open_store(server.url).open()


async def test_a_refused_store_can_be_opened_later(server: Server) -> None:
    store = open_store(server.url)
    server.do("SET", KEYS.schema, 1)
    with pytest.raises(StoreUnsuitable):
        await store.open()
    server.do("DEL", KEYS.schema)
    await store.open()
    await store.close()


def test_the_command_line_prints_the_sentence(server: Server) -> None:
    server.do("SET", KEYS.schema, 1)
    ended = subprocess.run(
        [Path(sys.executable).parent / "discreet", "keys", "list", "--store", server.url],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    line = ended.stderr.splitlines()[-1]
    assert line.startswith("discreet: the namespace 'discreet' of the store holds data of schema 1")
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("timeout", [0.01, 61, float("nan")])
def test_a_timeout_that_makes_no_sense_is_refused(timeout: float) -> None:
    with pytest.raises(InvalidArgument) as caught:
        open_store("redis://localhost", timeout=timeout)
    assert caught.value.argument == "timeout"
