"""A server is looked at on every connection, and used only if it can be trusted with ledgers."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from discreet.errors import StoreUnavailable, StoreUnsuitable
from discreet.state.redis_store import RedisStore, open_store
from discreet.state.stores import Ledger
from tests.ports import free_ports
from tests.state.certificates import self_signed, server_side
from tests.state.doors import door
from tests.state.places import ONE, spend, spent
from tests.state.servers import Server, sentinel, valkey
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio

HANG = PATIENCE


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


async def refused(*attempts: tuple[str, str]) -> None:
    """See that each address is refused for its reason; a store may come back, so it takes a while.

    All at the same time: each takes as long as the client is patient.
    """

    async def one(url: str, why: str) -> None:
        with pytest.raises(StoreUnavailable, match=why):
            await open_store(url, timeout=3).open()

    await asyncio.gather(*(one(url, why) for url, why in attempts))


async def test_a_wrong_password_is_refused(tmp_path: Path) -> None:
    with valkey(tmp_path / "locked", requirepass="right") as server:
        wrong = server.url.replace("//", "//:wrong@")
        await refused((server.url, "NOAUTH"), (wrong, "WRONGPASS"))
        async with opened(server.url.replace("//", "//:right@")) as store:
            assert (await spend(store)).granted
        async with opened(server.url.replace("//", "//default:right@") + "/3") as store:
            assert await spent(store) == Ledger()
        assert server.do("INFO", "keyspace").keys() == {"db0", "db3"}


async def test_a_store_that_may_evict_is_refused(tmp_path: Path) -> None:
    with valkey(tmp_path / "forgetful", maxmemory_policy="allkeys-lru") as server:
        with pytest.raises(StoreUnsuitable, match="CONFIG SET maxmemory-policy noeviction"):
            await open_store(server.url).open()
        server.do("CONFIG", "SET", "maxmemory-policy", "noeviction")
        async with opened(server.url, patience=3) as store:
            # It is looked at again on every connection, since the server may be another by then.
            server.do("CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
            server.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            with contextlib.suppress(StoreUnavailable):
                await store.ping()  # finds out that the connection is gone
            with pytest.raises(StoreUnavailable, match="volatile-ttl"):
                await spend(store)


async def test_a_cluster_member_wants_a_cluster_url(tmp_path: Path, server: Server) -> None:
    bus = str(free_ports(1)[0])
    with (
        valkey(tmp_path / "member", cluster_enabled="yes", cluster_port=bus) as member,
        pytest.raises(StoreUnsuitable, match=r"redis\+cluster://"),
    ):
        await open_store(member.url).open()
    with pytest.raises(StoreUnsuitable, match="not a cluster"):
        await open_store(server.url.replace("redis://", "redis+cluster://")).open()


async def test_a_user_who_may_not_run_info_is_refused(server: Server) -> None:
    server.do("ACL", "SETUSER", "ada", "on", ">secret", "~*", "+@all", "-info")
    with pytest.raises(StoreUnsuitable, match=r"\+info"):
        await open_store(server.url.replace("//", "//ada:secret@")).open()


async def test_a_store_that_is_not_durable_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "discreet.state")
    with valkey(tmp_path / "volatile") as server:
        async with opened(server.url):
            assert "appendonly yes" in caplog.text
        caplog.clear()
        server.do("CONFIG", "SET", "appendonly", "yes")
        async with opened(server.url):
            assert "appendfsync is everysec" in caplog.text
        caplog.clear()
        server.do("CONFIG", "SET", "appendfsync", "always")
        async with opened(server.url):
            assert caplog.text == ""


async def test_a_store_that_was_never_there(tmp_path: Path) -> None:
    await refused(
        (f"unix://{tmp_path}/nothing", "FileNotFoundError"),
        ("redis://127.0.0.1:1", "ConnectionRefusedError"),
    )


async def test_what_is_not_redis_is_not_trusted() -> None:
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(nonsense, "127.0.0.1", 0) as web:
        port = web.sockets[0].getsockname()[1]
        await refused((f"redis://127.0.0.1:{port}", "store"))


async def test_over_tls(server: Server, tmp_path: Path) -> None:
    server.do("FLUSHALL")
    own = self_signed(tmp_path, "store")
    client = self_signed(tmp_path, "client")
    async with door(server.port, server_side(own, clients=client)) as strict:
        port = strict.port
        url = f"rediss://127.0.0.1:{port}?ssl_ca_certs={own.certificate}"
        known = f"{url}&ssl_certfile={client.certificate}&ssl_keyfile={client.key}"
        async with opened(known) as store:
            assert (await spend(store)).granted
        await refused(
            (f"rediss://127.0.0.1:{port}", "CERTIFICATE_VERIFY_FAILED"),
            (f"{url.replace('store.pem', 'client.pem')}", "CERTIFICATE_VERIFY_FAILED"),
            (url, "store"),
            (f"redis://127.0.0.1:{port}", "store"),
        )
    async with door(server.port, server_side(own)) as lax:
        blind = f"rediss://127.0.0.1:{lax.port}?ssl_cert_reqs=none"
        async with opened(blind) as store:
            assert await spent(store) == Ledger(ONE)


async def test_the_client_follows_a_failover_that_sentinel_makes(tmp_path: Path) -> None:
    with sentinel(tmp_path / "watched") as watched:
        dead_first = watched.url.replace("//", "//127.0.0.1:1,")
        async with opened(dead_first, patience=2) as store:
            assert (await spend(store)).granted
            assert watched.master.do("DBSIZE") == 67, "the ledger, schema, identity and fences"
            watched.master.do("WAIT", 1, 10_000)
            watched.master.kill()
            while True:
                try:
                    found = await spend(store)
                    break
                except StoreUnavailable:
                    await asyncio.sleep(0.05)
        # A replica refuses writes, so no attempt before the promotion can have been booked.
        assert found.granted
        assert found.ledger.answers == ONE + ONE
        assert watched.replica.do("INFO", "replication")["role"] == "master"
        await refused((watched.url.replace("/discreet", "/other"), "no node of the store knows"))
