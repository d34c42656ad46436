"""Many at once on a server that goes: what may have run is never run twice, and none is lost."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import DiscreetError, StoreUnavailable
from discreet.privacy.charges import Charge, Limit
from discreet.state import lanes, wire
from discreet.state.redis_store import RedisStore, open_store
from discreet.state.stores import Account, Claim, Learning
from tests.state.doors import door
from tests.state.servers import Server, eventually, valkey

pytestmark = pytest.mark.anyio

ONE = Charge(nano_epsilon=1, nano_rho=1, pico_delta=1)
HANG = 60


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with valkey(tmp_path_factory.mktemp("bulk") / "data") as running:
        yield running


@pytest.fixture
async def store(server: Server) -> AsyncIterator[RedisStore]:
    server.do("FLUSHALL")
    async with opened(server.url) as client:
        yield client
    server.do("CLIENT", "UNPAUSE")


@contextlib.asynccontextmanager
async def opened(url: str, patience: float = 20.0) -> AsyncIterator[RedisStore]:
    client = open_store(url, timeout=patience)
    await client.open()
    try:
        async with asyncio.timeout(HANG):
            yield client
    finally:
        await client.close()


def names(kind: str, size: int) -> list[bytes]:
    return [f"{kind} {number}".encode() for number in range(size)]


def spend_each(store: RedisStore, principals: Sequence[bytes]) -> Any:
    return store.spend_each(principals=principals, charge=ONE, limit=Limit())


async def spent(store: RedisStore, principals: Sequence[bytes]) -> list[int]:
    return [(await store.balance(principal=each)).nano_epsilon for each in principals]


def kinds(outcomes: Sequence[Any]) -> list[str]:
    return ["lost" if isinstance(each, StoreUnavailable) else "granted" for each in outcomes]


def the_wire(store: RedisStore) -> wire.Wire:
    assert store._route is not None
    (lane,) = store._route.lanes()
    assert lane.wire is not None
    return lane.wire


def paused(server: Server) -> None:
    """Have the server take commands that write, and not run them."""
    server.do("CLIENT", "PAUSE", 60_000, "WRITE")


async def hang_up(server: Server, calls: str) -> None:
    """Cut the store's line once the server holds commands that it has not run."""
    await asyncio.to_thread(
        eventually, lambda: any(one["cmd"] == calls for one in clients(server)), "commands"
    )
    server.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


def clients(server: Server) -> list[dict[str, str]]:
    with server.client as client:
        found: list[dict[str, str]] = client.client_list()
        return found


async def test_debits_that_were_written_fail_and_those_that_were_not_are_sent_again(
    store: RedisStore, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call of 25: the line is full after the first write of 10."""
    monkeypatch.setattr(wire, "_AT_ONCE", 10)
    line = the_wire(store)
    transport: Any = line._transport

    class Filling:
        def write(self, data: bytes) -> None:
            transport.write(data)
            line.pause_writing()

        def abort(self) -> None:
            transport.abort()

    line._transport = Filling()  # type: ignore[assignment]
    paused(server)
    principals = names("p", 25)
    debits = spend_each(store, principals)
    await hang_up(server, "evalsha")
    server.do("CLIENT", "UNPAUSE")
    accounts = await debits
    assert kinds(accounts) == ["lost"] * 10 + ["granted"] * 15
    assert "answer was lost" in str(accounts[0])
    assert await spent(store, principals) == [0] * 10 + [1] * 15


async def test_debits_that_ran_and_were_not_heard_of_ran_once(server: Server) -> None:
    server.do("FLUSHALL")
    async with door(server.port) as between, opened(f"redis://127.0.0.1:{between.port}") as store:
        between.slam_on_reply = True
        principals = names("p", 40)
        accounts = await spend_each(store, [*principals, *principals])
        assert kinds(accounts) == ["lost"] * 80
        assert await spent(store, principals) == [2] * 40


async def test_rows_that_were_not_heard_of_are_read_again(server: Server) -> None:
    server.do("FLUSHALL")
    async with door(server.port) as between, opened(f"redis://127.0.0.1:{between.port}") as store:
        addresses = names("a", 1_200)
        await store.learn(
            address=addresses[700], increments=[(0, 5)], claim=b"c", reward=1, claim_ttl=60
        )
        between.slam_on_reply = True
        sums, failed = await store.read_rows(addresses=addresses, fields=1)
        assert failed == {}
        assert int(sums[700, 0]) == int(sums.sum()) == 5


async def test_feedback_that_was_not_heard_of_is_told_again_and_counts_once(
    server: Server,
) -> None:
    server.do("FLUSHALL")
    async with door(server.port) as between, opened(f"redis://127.0.0.1:{between.port}") as store:
        between.slam_on_reply = True
        addresses = names("a", 30)
        outcomes = await store.learn_each(
            learnings=[Learning(each, [(0, 1)], b"c", 1, 60) for each in addresses]
        )
        assert {one.claim for one in outcomes if not isinstance(one, DiscreetError)} == {
            Claim.DUPLICATE
        }
        sums, _ = await store.read_rows(addresses=addresses, fields=1)
        assert sums.tolist() == [[1]] * 30


async def test_too_many_at_once_fail_by_themselves(
    store: RedisStore, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "MOST_OUTSTANDING", 10)
    paused(server)
    principals = names("p", 25)
    debits = spend_each(store, principals)
    assert the_wire(store).in_flight == 10
    more = await spend_each(store, names("q", 2))
    assert ["too slow" in str(each) for each in more] == [True, True]
    server.do("CLIENT", "UNPAUSE")
    accounts = await debits
    assert kinds(accounts) == ["granted"] * 10 + ["lost"] * 15
    assert await spent(store, principals) == [1] * 10 + [0] * 15
    assert kinds(await spend_each(store, principals[:10])) == ["granted"] * 10


async def test_who_wait_for_a_server_to_come_back_are_sent_once_and_not_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with valkey(tmp_path / "back", appendonly="yes", appendfsync="always") as server:
        async with opened(server.url) as store:
            assert kinds(await spend_each(store, [b"p"])) == ["granted"]
            gone, line = asyncio.Event(), the_wire(store)
            lost = line.lost
            line.lost = lambda ran, unsent: (lost(ran, unsent), gone.set())[0]
            server.kill()
            await gone.wait()
            monkeypatch.setattr(lanes, "MOST_OUTSTANDING", 10)
            principals = names("p", 25)
            debits = spend_each(store, principals)
            server.start()
            accounts = await debits
            assert kinds(accounts) == ["granted"] * 10 + ["lost"] * 15
            assert await spent(store, principals) == [1] * 10 + [0] * 15


async def test_debits_that_nobody_awaits_any_more_stand(store: RedisStore, server: Server) -> None:
    paused(server)
    principals = names("p", 5)

    async def debit() -> Sequence[Account | DiscreetError]:
        found: Sequence[Account | DiscreetError] = await spend_each(store, principals)
        return found

    given_up, kept = asyncio.ensure_future(debit()), asyncio.ensure_future(debit())
    await asyncio.sleep(0)
    given_up.cancel()
    server.do("CLIENT", "UNPAUSE")
    assert kinds(await kept) == ["granted"] * 5
    assert given_up.cancelled()
    assert await spent(store, principals) == [2] * 5


async def test_closing_fails_each_that_is_outstanding(server: Server) -> None:
    async with opened(server.url) as store:
        paused(server)
        debits = spend_each(store, names("p", 3))
        rows = store.read_rows(addresses=names("a", 3), fields=1)
        await store.close()
        server.do("CLIENT", "UNPAUSE")
        assert kinds(await debits) == ["lost"] * 3
        assert sorted((await rows).failed) == [0, 1, 2]


async def test_kill_9_in_the_middle_of_many_debits(tmp_path: Path) -> None:
    """Acknowledged means booked; what is in doubt was booked once at most."""
    acknowledged, doubtful = [0] * 8, [0] * 8
    with valkey(tmp_path / "killed", appendonly="yes", appendfsync="always") as server:
        async with opened(server.url, patience=5) as store:
            principals = names("p", 8)
            for _ in range(3):
                calls = [spend_each(store, principals * 20) for _ in range(10)]
                await calls[0]
                calls.append(spend_each(store, principals * 500))
                server.kill()
                server.start()
                for accounts in [await call for call in calls]:
                    for place, kind in enumerate(kinds(accounts)):
                        (acknowledged if kind == "granted" else doubtful)[place % 8] += 1
            booked = await spent(store, principals)
    assert sum(doubtful) > 0, "nothing was in flight: the test shows nothing"
    for least, found, doubt in zip(acknowledged, booked, doubtful, strict=True):
        assert least <= found <= least + doubt
