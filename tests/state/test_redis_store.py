"""A store that misbehaves: every doubt ends in StoreUnavailable, and never in a hang."""

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from discreet.errors import StateOverflow, StoreUnavailable, StoreUnsuitable
from discreet.privacy.charges import Charge, Limit
from discreet.state.keys import Keys
from discreet.state.redis_store import RedisStore, open_store
from discreet.state.stores import Claim, Store
from tests.state.certificates import self_signed, server_side
from tests.state.doors import door
from tests.state.servers import Server, eventually, free_ports, valkey

pytestmark = pytest.mark.anyio

KEYS = Keys()
ONE = Charge(nano_epsilon=1, nano_rho=1, pico_delta=1)
HANG = 60
"""Seconds after which a test that waits for an error calls it a hang."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with valkey(tmp_path_factory.mktemp("single") / "data", appendonly="yes") as running:
        yield running


@pytest.fixture
async def store(server: Server) -> AsyncIterator[RedisStore]:
    server.do("FLUSHALL")
    async with opened(server.url) as client:
        yield client


@contextlib.asynccontextmanager
async def opened(url: str, patience: float = 1.0) -> AsyncIterator[RedisStore]:
    client = open_store(url, timeout=patience)
    await client.open()
    try:
        async with asyncio.timeout(HANG):
            yield client
    finally:
        await client.close()


async def spend(store: Store, marker: bytes | None = None) -> bool:
    account = await store.spend(principal=b"p", charge=ONE, limit=Limit(), marker=marker)
    return account.granted


async def learn(store: Store, claim: bytes = b"c", amount: int = 1) -> Claim:
    answer = await store.learn(
        address=b"cell", increments=[(0, amount)], claim=claim, reward=1, claim_ttl=60
    )
    return answer.claim


async def recovered(store: Store) -> None:
    """Return once the store answers again; it must do so by itself."""
    async with asyncio.timeout(HANG):
        while True:
            try:
                return await store.ping()
            except StoreUnavailable:
                await asyncio.sleep(0.02)


# What cannot be read is not empty


@pytest.mark.parametrize(
    "corrupt",
    [
        ("SET", b"x" * 23),
        ("SET", b"x" * 25),
        ("SET", b""),
        ("SET", b"\xff" * 24),
        ("SET", b"\x00\x20" + b"\x00" * 22),
        ("RPUSH", b"x"),
    ],
)
async def test_an_unreadable_ledger_grants_nothing(
    store: RedisStore, server: Server, corrupt: tuple[str, bytes]
) -> None:
    command, value = corrupt
    server.do(command, KEYS.ledger(b"p"), value)
    before = server.do("DUMP", KEYS.ledger(b"p"))
    with pytest.raises(StoreUnavailable):
        await spend(store)
    with pytest.raises(StoreUnavailable):
        await spend(store, marker=b"m")
    with pytest.raises(StoreUnavailable):
        await store.balance(principal=b"p")
    assert server.do("DUMP", KEYS.ledger(b"p")) == before


async def test_unreadable_markers_grant_nothing(store: RedisStore, server: Server) -> None:
    server.do("SET", KEYS.markers(b"p"), "x")
    with pytest.raises(StoreUnavailable):
        await spend(store, marker=b"m")
    assert await store.balance(principal=b"p") == Charge()


async def test_unreadable_statistics_are_not_empty_ones(store: RedisStore, server: Server) -> None:
    server.do("SET", KEYS.cell(b"cell"), "nine bytes")
    with pytest.raises(StoreUnavailable):
        await store.read(addresses=[b"cell"])
    with pytest.raises(StoreUnavailable):
        await store.read(addresses=[b"cell", b"other"])
    with pytest.raises(StoreUnavailable):
        await learn(store)
    assert server.do("GET", KEYS.cell(b"cell")) == b"nine bytes"
    assert not server.do("EXISTS", KEYS.claim(b"cell", b"c"))
    server.do("DEL", KEYS.cell(b"cell"))
    server.do("RPUSH", KEYS.cell(b"cell"), "x")
    with pytest.raises(StoreUnavailable):
        await store.read(addresses=[b"cell"])


async def test_an_overflow_is_an_overflow_not_an_outage(store: RedisStore) -> None:
    await learn(store, amount=2**63 - 1)
    with pytest.raises(StateOverflow):
        await learn(store, claim=b"d")


# What the server refuses


async def test_a_full_store_grants_nothing(tmp_path: Path) -> None:
    with valkey(tmp_path / "full") as server:
        async with opened(server.url) as store:
            server.do("SET", "ballast", b"x" * 4_000_000)
            server.do("CONFIG", "SET", "maxmemory", "2mb")
            for call in (spend(store), spend(store, b"m"), learn(store)):
                with pytest.raises(StoreUnavailable, match="OOM"):
                    await call
            assert await store.balance(principal=b"p") == Charge()
            server.do("DEL", "ballast")
            assert await spend(store)


async def test_flushed_scripts_are_loaded_again(store: RedisStore, server: Server) -> None:
    server.do("SCRIPT", "FLUSH", "SYNC")
    spent = [spend(store) for _ in range(50)]
    assert all(await asyncio.gather(*spent))
    assert (await store.balance(principal=b"p")).nano_epsilon == 50


async def test_a_busy_server_is_waited_for(store: RedisStore, server: Server) -> None:
    """A script that runs too long makes the server refuse everybody else; they are not lost."""
    server.do("CONFIG", "SET", "busy-reply-threshold", "1")
    script = "local t = redis.call('TIME')[1] + 2 while tonumber(redis.call('TIME')[1]) < t do end"
    with server.client as client:
        task = asyncio.create_task(asyncio.to_thread(client.execute_command, "EVAL", script, 0))
        async with opened(server.url, patience=20) as patient:
            assert await spend(patient)
        await task
    assert (await store.balance(principal=b"p")).nano_epsilon == 1


async def test_a_wrong_password_is_refused(tmp_path: Path) -> None:
    with valkey(tmp_path / "locked", requirepass="right") as server:
        for url in (server.url, server.url.replace("//", "//:wrong@")):
            with pytest.raises(StoreUnavailable, match=r"NOAUTH|WRONGPASS"):
                await open_store(url, timeout=0.5).open()
        async with opened(server.url.replace("//", "//:right@")) as store:
            assert await spend(store)
        async with opened(server.url.replace("//", "//default:right@") + "/3") as store:
            assert await store.balance(principal=b"p") == Charge()
            assert await spend(store)
        assert server.do("INFO", "keyspace").keys() == {"db0", "db3"}


async def test_a_store_that_may_evict_is_refused(tmp_path: Path) -> None:
    with valkey(tmp_path / "forgetful", maxmemory_policy="allkeys-lru") as server:
        with pytest.raises(StoreUnsuitable, match="CONFIG SET maxmemory-policy noeviction"):
            await open_store(server.url).open()
        server.do("CONFIG", "SET", "maxmemory-policy", "noeviction")
        async with opened(server.url) as store:
            # It is looked at again on every connection, since the server may be another by then.
            server.do("CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
            server.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            with contextlib.suppress(StoreUnavailable):
                await store.ping()  # finds out that the connection is gone
            with pytest.raises(StoreUnavailable, match="volatile-ttl"):
                await spend(store)
            server.do("CONFIG", "SET", "maxmemory-policy", "noeviction")
            await recovered(store)


async def test_a_cluster_member_wants_a_cluster_url(tmp_path: Path, server: Server) -> None:
    bus = str(free_ports(1)[0])
    with (
        valkey(tmp_path / "member", cluster_enabled="yes", cluster_port=bus) as member,
        pytest.raises(StoreUnsuitable, match=r"redis\+cluster://"),
    ):
        await open_store(member.url).open()
    with pytest.raises(StoreUnsuitable, match="not a cluster"):
        await open_store(server.url.replace("redis://", "redis+cluster://")).open()


async def test_a_user_who_may_not_ask_is_told_so(server: Server) -> None:
    server.do("ACL", "SETUSER", "ada", "on", ">secret", "~*", "+@all", "-info")
    with pytest.raises(StoreUnsuitable, match=r"\+info"):
        await open_store(server.url.replace("//", "//ada:secret@")).open()


async def test_durability_is_remarked_upon(
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


# A server that becomes a replica, stalls, or goes


async def test_a_demoted_master_grants_nothing(tmp_path: Path) -> None:
    with valkey(tmp_path / "demoted") as server:
        async with opened(server.url, patience=0.5) as store:
            assert await spend(store)
            server.do("REPLICAOF", "127.0.0.1", 1)
            with pytest.raises(StoreUnavailable):
                await spend(store)
            with pytest.raises(StoreUnavailable, match="replica"):
                await spend(store)
            server.do("REPLICAOF", "NO", "ONE")
            await recovered(store)
            assert (await store.balance(principal=b"p")).nano_epsilon == 1


async def test_a_stalled_server_is_given_up_and_found_again(tmp_path: Path) -> None:
    with valkey(tmp_path / "stalled") as server:
        async with opened(server.url, patience=0.3) as store:
            server.signal(signal.SIGSTOP)
            calls = [spend(store), learn(store), store.balance(principal=b"p"), store.ping()]
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 4
            server.signal(signal.SIGCONT)
            await recovered(store)
            # The debit in doubt may have been booked when the server woke, and once at most.
            assert (await store.balance(principal=b"p")).nano_epsilon in (0, 1)
            assert await learn(store) in (Claim.COUNTED, Claim.DUPLICATE)
            (cell,) = await store.read(addresses=[b"cell"])
            assert list(cell) == [1]


async def test_of_lost_answers_only_repeatable_commands_are_asked_again(
    store: RedisStore, server: Server
) -> None:
    """Both debits are in the server's hands when the connection goes: one has a marker."""
    async with opened(server.url, patience=10) as patient:
        server.do("CLIENT", "PAUSE", 60_000, "WRITE")
        plain = asyncio.ensure_future(spend(patient))
        marked = asyncio.ensure_future(spend(patient, marker=b"m"))
        counted = asyncio.ensure_future(learn(patient))
        await asyncio.to_thread(
            eventually, lambda: b"cmd=evalsha" in raw_clients(server), "the commands to arrive"
        )
        server.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        with pytest.raises(StoreUnavailable, match="answer was lost"):
            await plain
        server.do("CLIENT", "UNPAUSE")
        assert await marked
        assert await counted is Claim.COUNTED
        assert (await patient.balance(principal=b"p")).nano_epsilon == 1


async def test_what_ran_and_was_not_heard_of_runs_once(server: Server) -> None:
    """The server has answered; the line goes before the answer arrives."""
    server.do("FLUSHALL")
    async with (
        door(server.port) as between,
        opened(f"redis://127.0.0.1:{between.port}", patience=10) as store,
    ):
        between.slam_on_reply = True
        with pytest.raises(StoreUnavailable, match="answer was lost"):
            await spend(store)
        assert (await store.balance(principal=b"p")).nano_epsilon == 1, "it had been booked"
        between.slam_on_reply = True
        assert await spend(store, marker=b"m")
        assert (await store.balance(principal=b"p")).nano_epsilon == 2, "once, not twice"
        between.slam_on_reply = True
        assert await learn(store) is Claim.DUPLICATE, "the repetition finds the claim taken"
        (cell,) = await store.read(addresses=[b"cell"])
        assert list(cell) == [1]
        between.slam_on_reply = True
        claimed = await store.claim_event(event=b"e", fingerprint=b"f", ttl=60)
        assert claimed.fingerprint == b"f"
        between.slam_on_reply = True
        assert await store.answer_event(event=b"e", answer=b"a", ttl=60) == b"a"
        between.slam_on_reply = True
        with pytest.raises(StoreUnavailable):
            await store.put_document(name="n", document=b"d", expected=None)
        assert await store.epoch() == 1


def raw_clients(server: Server) -> bytes:
    with server.client as client:
        client.set_response_callback("CLIENT LIST", lambda reply, **_: reply)
        reply = client.execute_command("CLIENT", "LIST")
        return reply if isinstance(reply, bytes) else str(reply).encode()


async def test_a_store_that_is_gone_fails_fast_and_comes_back(tmp_path: Path) -> None:
    with valkey(tmp_path / "gone", appendonly="yes", appendfsync="always") as server:
        async with opened(server.url, patience=0.4) as store:
            assert await spend(store)
            server.kill()
            for _ in range(3):
                with pytest.raises(StoreUnavailable):
                    await spend(store)
            at_once = asyncio.ensure_future(store.balance(principal=b"p"))
            assert at_once.done(), "a store known to be gone is not waited for"
            with pytest.raises(StoreUnavailable):
                await at_once
            server.start()
            await recovered(store)
            assert (await store.balance(principal=b"p")).nano_epsilon == 1
            assert await spend(store)


async def test_a_store_that_was_never_there(tmp_path: Path) -> None:
    for url in (f"unix://{tmp_path}/nothing", "redis://127.0.0.1:1"):
        with pytest.raises(StoreUnavailable, match=r"FileNotFoundError|ConnectionRefusedError"):
            await open_store(url, timeout=0.3).open()


async def test_what_is_not_redis_is_not_trusted() -> None:
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(nonsense, "127.0.0.1", 0) as web:
        port = web.sockets[0].getsockname()[1]
        with pytest.raises(StoreUnavailable):
            await open_store(f"redis://127.0.0.1:{port}", timeout=0.5).open()


async def test_a_closed_store_answers_nothing(server: Server) -> None:
    store = open_store(server.url)
    with pytest.raises(StoreUnavailable, match="not open"):
        store.ping()
    await store.open()
    server.do("CLIENT", "PAUSE", 60_000, "WRITE")
    outstanding = asyncio.ensure_future(spend(store))
    await asyncio.sleep(0)
    await store.close()
    server.do("CLIENT", "UNPAUSE")
    with pytest.raises(StoreUnavailable):
        await outstanding
    with pytest.raises(StoreUnavailable, match="not open"):
        store.ping()
    await store.close()


async def test_a_caller_who_gives_up_disturbs_nobody(store: RedisStore) -> None:
    calls = [asyncio.ensure_future(store.balance(principal=b"p")) for _ in range(10)]
    calls[3].cancel()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(outcome == Charge() for outcome in outcomes) == 9
    assert await spend(store)


# How commands travel


async def test_commands_of_one_turn_travel_together(store: RedisStore, server: Server) -> None:
    """The server counts what it reads: 400 commands in far fewer reads than commands."""
    server.do("CONFIG", "RESETSTAT")
    before = server.do("INFO", "stats")["total_reads_processed"]
    await asyncio.gather(*(store.balance(principal=b"%d" % n) for n in range(400)))
    stats = server.do("INFO", "stats")
    assert stats["total_commands_processed"] >= 400
    assert stats["total_reads_processed"] - before < 40


async def test_the_next_turn_does_not_wait_for_the_answers_of_this_one(
    store: RedisStore, server: Server
) -> None:
    """A paused server answers nobody, yet the second turn's command reaches it too."""
    server.do("CLIENT", "PAUSE", 60_000, "WRITE")
    async with opened(server.url, patience=20) as patient:
        first = asyncio.ensure_future(spend(patient))
        await asyncio.sleep(0.05)
        second = patient.balance(principal=b"p")
        await asyncio.sleep(0.05)
        assert not first.done()
        server.do("CLIENT", "UNPAUSE")
        assert await first
        assert (await second).nano_epsilon == 1


async def test_over_tls(server: Server, tmp_path: Path) -> None:
    server.do("FLUSHALL")
    own = self_signed(tmp_path, "store")
    client = self_signed(tmp_path, "client")
    async with door(server.port, server_side(own, clients=client)) as strict:
        port = strict.port
        url = f"rediss://127.0.0.1:{port}?ssl_ca_certs={own.certificate}"
        known = f"{url}&ssl_certfile={client.certificate}&ssl_keyfile={client.key}"
        async with opened(known) as store:
            assert await spend(store)
        for stranger, why in (
            (f"rediss://127.0.0.1:{port}", "CERTIFICATE_VERIFY_FAILED"),
            (f"{url.replace('store.pem', 'client.pem')}", "CERTIFICATE_VERIFY_FAILED"),
            (url, "store"),
            (f"redis://127.0.0.1:{port}", "store"),
        ):
            with pytest.raises(StoreUnavailable, match=why):
                await open_store(stranger, timeout=0.3).open()
    async with door(server.port, server_side(own)) as lax:
        blind = f"rediss://127.0.0.1:{lax.port}?ssl_cert_reqs=none"
        async with opened(blind) as store:
            assert (await store.balance(principal=b"p")).nano_epsilon == 1


async def test_a_ledger_and_a_claim_are_small(store: RedisStore, server: Server) -> None:
    """A ledger may cost 200 bytes all told; a claim, which lapses, 300."""
    principal, address, claim = b"p" * 32, b"a" * 32, b"c" * 32
    await store.spend(principal=principal, charge=ONE, limit=Limit())
    await store.learn(address=address, increments=[(0, 1)], claim=claim, reward=1, claim_ttl=60)
    assert server.do("MEMORY", "USAGE", KEYS.ledger(principal)) <= 200
    assert server.do("MEMORY", "USAGE", KEYS.claim(address, claim)) <= 300
    assert server.do("PTTL", KEYS.ledger(principal)) == -1
    assert 0 < server.do("PTTL", KEYS.claim(address, claim)) <= 60_000


async def test_lapsed_markers_leave_nothing_behind(store: RedisStore, server: Server) -> None:
    async def pay(marker: bytes, ttl: int) -> None:
        await store.spend(principal=b"p", charge=ONE, limit=Limit(), marker=marker, marker_ttl=ttl)

    await pay(b"longer", 3)
    for number in range(20):
        await pay(b"%d" % number, 1)
    await asyncio.sleep(1.1)
    await pay(b"new", 1)
    assert server.do("ZCARD", KEYS.markers(b"p")) <= 2
    assert await store.forget_markers(principal=b"p") != []
    assert not server.do("EXISTS", KEYS.markers(b"p"))
    await pay(b"last", 1)
    await asyncio.sleep(1.1)
    assert not server.do("EXISTS", KEYS.markers(b"p"))
    assert server.do("EXISTS", KEYS.ledger(b"p"))


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_loop_that_was_held_up_does_not_blame_the_server(
    server: Server, run: Callable[[Coroutine[Any, Any, None]], None]
) -> None:
    """Late are we, not the store: answers that wait in the socket are read before any verdict."""

    async def scenario() -> None:
        async with opened(server.url, patience=0.3) as store:
            pending = store.balance(principal=b"p")
            await asyncio.sleep(0)  # the command is written, and answered while we are away
            await asyncio.sleep(0)
            time.sleep(0.8)  # noqa: ASYNC251  the point
            assert await pending == Charge()

    server.do("FLUSHALL")
    run(scenario())


def test_under_uvloop(server: Server) -> None:
    """The event loop of production, with the same server killing the connection in between."""

    async def scenario() -> None:
        async with opened(server.url, patience=5) as store:
            await store.ping()
            server.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            assert all(await asyncio.gather(*(spend(store, b"%d" % n) for n in range(200))))
            assert (await store.balance(principal=b"p")).nano_epsilon == 200

    server.do("FLUSHALL")
    uvloop.run(scenario())
