"""A server that misbehaves: every doubt ends in StoreUnavailable, never in a hang, and it is found
again by itself."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
import uvloop

from discreet.errors import StoreUnavailable
from discreet.state.redis_store import RedisStore, open_store
from discreet.state.stores import ClaimOutcome, Debit, Debited, Learned, Ledger, Store
from tests.state.places import ADA, BLOCK, ONE, learn, record, released, spend, spent
from tests.state.servers import Server, eventually, left_unread, valkey
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio

HANG = PATIENCE
"""Seconds after which a test that waits for an error calls it a hang."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with valkey(tmp_path_factory.mktemp("single") / "data", appendonly="yes") as running:
        yield running


@contextlib.asynccontextmanager
async def opened(url: str, patience: float = 30.0) -> AsyncIterator[RedisStore]:
    client = open_store(url, timeout=patience)
    await client.open()
    try:
        async with asyncio.timeout(HANG):
            yield client
    finally:
        await client.close()


async def recovered(store: Store) -> None:
    """Return once the store answers again; it must do so by itself."""
    async with asyncio.timeout(HANG):
        while True:
            try:
                return await store.ping()
            except StoreUnavailable:
                await asyncio.sleep(0.02)


async def test_a_full_store_grants_nothing(tmp_path: Path) -> None:
    with valkey(tmp_path / "full") as server:
        async with opened(server.url) as store:
            server.do("SET", "ballast", b"x" * 4_000_000)
            server.do("CONFIG", "SET", "maxmemory", "2mb")
            for call in (spend(store), spend(store, marker=b"m"), learn(store, record())):
                with pytest.raises(StoreUnavailable, match="OOM"):
                    await call
            assert await spent(store) == Ledger()
            server.do("DEL", "ballast")
            assert (await spend(store)).granted


async def test_a_busy_server_is_waited_for(server: Server) -> None:
    """A script that runs too long makes the server refuse everybody else; they are not lost."""
    server.do("FLUSHALL")
    server.do("CONFIG", "SET", "busy-reply-threshold", "1")
    script = "local t = redis.call('TIME')[1] + 2 while tonumber(redis.call('TIME')[1]) < t do end"

    def is_busy() -> bool:
        try:
            return not server.do("PING")
        except redis.ResponseError as error:
            return "BUSY" in str(error)

    async with opened(server.url, patience=60) as store:
        with server.client as client:
            task = asyncio.create_task(asyncio.to_thread(client.execute_command, "EVAL", script, 0))
            await asyncio.to_thread(eventually, is_busy, "the script to run")
            assert (await spend(store)).granted
            await task
        assert await spent(store) == Ledger(ONE)


async def test_a_demoted_master_grants_nothing(tmp_path: Path) -> None:
    with valkey(tmp_path / "demoted") as server:
        async with opened(server.url, patience=2) as store:
            assert (await spend(store)).granted
            server.do("REPLICAOF", "127.0.0.1", 1)
            with pytest.raises(StoreUnavailable):
                await spend(store)
            with pytest.raises(StoreUnavailable, match="replica"):
                await spend(store)
            server.do("REPLICAOF", "NO", "ONE")
            await recovered(store)
            assert await spent(store) == Ledger(ONE)


async def test_a_stalled_server_is_given_up_and_found_again(tmp_path: Path) -> None:
    with valkey(tmp_path / "stalled") as server:
        async with opened(server.url, patience=2) as store:
            server.signal(signal.SIGSTOP)
            calls = [spend(store), learn(store, record()), spent(store), store.ping()]
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 4
            server.signal(signal.SIGCONT)
            await recovered(store)
            # The debit in doubt may have been booked when the server woke, and once at most.
            assert await spent(store) in (Ledger(), Ledger(ONE))
            assert (await learn(store, record())).claim in (
                ClaimOutcome.COUNTED,
                ClaimOutcome.DUPLICATE,
            )
            assert await released(store, 1) == {BLOCK: [1]}


async def test_a_store_that_is_gone_fails_fast_and_comes_back(tmp_path: Path) -> None:
    with valkey(tmp_path / "gone", appendonly="yes", appendfsync="always") as server:
        async with opened(server.url, patience=2) as store:
            assert (await spend(store)).granted
            server.kill()
            for _ in range(3):
                with pytest.raises(StoreUnavailable):
                    await spend(store)
            sent: Any = store._client.send([])
            assert sent.done()
            ledgers: Any = store.ledgers([ADA])
            with pytest.raises(StoreUnavailable):
                ledgers.__await__().send(None)  # raises without waiting for anything
            server.start()
            await recovered(store)
            assert await spent(store) == Ledger(ONE)
            assert (await spend(store)).granted


async def test_a_caller_who_gives_up_disturbs_nobody(server: Server) -> None:
    server.do("FLUSHALL")
    async with opened(server.url) as store:
        calls = [asyncio.ensure_future(spent(store)) for _ in range(10)]
        calls[3].cancel()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert sum(outcome == Ledger() for outcome in outcomes) == 9
        assert (await spend(store)).granted


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_loop_that_was_held_up_does_not_blame_the_server(
    server: Server, run: Callable[[Coroutine[Any, Any, None]], None]
) -> None:
    """Late are we, not the store: answers that wait in the socket are read before any verdict."""

    async def scenario() -> None:
        async with opened(server.url, patience=1) as store:
            pending = store.ledgers([ADA])
            await asyncio.sleep(0)  # the command is written, and answered while we are away
            await asyncio.sleep(0)
            left_unread(server)
            assert list(await pending) == [Ledger()]

    server.do("FLUSHALL")
    run(scenario())


def test_under_uvloop(server: Server) -> None:
    """The event loop of production, with the same server ending the connection in between."""

    async def scenario() -> None:
        async with opened(server.url, patience=60) as store:
            await store.ping()
            server.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            found = await store.spend([Debit(ADA, ONE, marker=b"%d" % n) for n in range(200)])
            assert all(isinstance(each, Debited) and each.granted for each in found)
            assert (await spent(store)).answers.nano_epsilon == 200 * ONE.nano_epsilon

    server.do("FLUSHALL")
    uvloop.run(scenario())


async def test_records_that_wait_for_a_server_are_learned_once(tmp_path: Path) -> None:
    with valkey(tmp_path / "back", appendonly="yes", appendfsync="always") as server:
        async with opened(server.url, patience=60) as store:
            server.kill()
            waiting = store.learn([record(claim=b"%d" % n) for n in range(20)])
            server.start()
            found = await waiting
            assert all(isinstance(each, Learned) and each.added for each in found)
            assert await released(store, 1) == {BLOCK: [20]}
