"""Many at once on a server that goes: what may have run is never run twice, and none is lost."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import DiscreetError, StoreUnavailable
from discreet.privacy.charges import Charge
from discreet.state import debits
from discreet.state.redis_store import RedisStore, open_store
from discreet.state.stores import ClaimOutcome, Debit, Debited, Learned
from discreet.state.wire import connection, reconnecting
from discreet.state.wire.connection import PipelinedConnection
from tests.state.doors import door
from tests.state.places import BLOCK, record, released
from tests.state.servers import Server, eventually, left_unread, valkey
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio

ONE = Charge(nano_epsilon=1, nano_rho=1, pico_delta=1)
HANG = PATIENCE


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with valkey(tmp_path_factory.mktemp("topology") / "data") as running:
        yield running


@pytest.fixture(autouse=True)
def one_by_one() -> Iterator[None]:
    """Let every debit be a command of its own, so that there are many."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(debits, "MOST_TOGETHER", 1)
        yield


@pytest.fixture
async def store(server: Server) -> AsyncIterator[RedisStore]:
    server.do("FLUSHALL")
    async with opened(server.url) as client:
        yield client
    server.do("CLIENT", "UNPAUSE")


@contextlib.asynccontextmanager
async def opened(url: str, patience: float = 60.0) -> AsyncIterator[RedisStore]:
    client = open_store(url, timeout=patience)
    await client.open()
    try:
        async with asyncio.timeout(HANG):
            yield client
    finally:
        await client.close()


def names(kind: str, size: int) -> list[bytes]:
    return [f"{kind} {number}".encode() for number in range(size)]


def spend(store: RedisStore, principals: Sequence[bytes]) -> Any:
    return store.spend([Debit(each, ONE) for each in principals])


async def spent(store: RedisStore, principals: Sequence[bytes]) -> list[int]:
    return [each.answers.nano_epsilon for each in await store.ledgers(principals)]


def kinds(outcomes: Sequence[Any]) -> list[str]:
    return ["lost" if isinstance(each, StoreUnavailable) else "granted" for each in outcomes]


def the_connection(store: RedisStore) -> PipelinedConnection:
    sender: Any = store._client
    (server,) = sender._topology.servers()
    found: PipelinedConnection = server._connection
    return found


def paused(server: Server) -> None:
    """Have the server take commands that write, and not run them."""
    server.do("CLIENT", "PAUSE", 60_000, "WRITE")


async def hang_up(server: Server) -> None:
    """End the store's connection once the server holds commands that it has not run."""

    def arrived() -> bool:
        with server.client as client:
            return any(one["cmd"] == "evalsha" for one in client.client_list())

    await asyncio.to_thread(eventually, arrived, "commands")
    server.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


async def test_debits_that_were_written_fail_and_those_that_were_not_are_sent_again(
    store: RedisStore, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call of 25: the peer reads no more after the first write of 10."""
    monkeypatch.setattr(connection, "AT_ONCE", 10)
    line = the_connection(store)
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
    debiting = spend(store, principals)
    await hang_up(server)
    server.do("CLIENT", "UNPAUSE")
    found = await debiting
    assert kinds(found) == ["lost"] * 10 + ["granted"] * 15
    assert "answer was lost" in str(found[0])
    assert await spent(store, principals) == [0] * 10 + [1] * 15


async def test_what_ran_and_was_not_answered_runs_once(server: Server) -> None:
    """The server has answered; the connection goes before the answer arrives."""
    server.do("FLUSHALL")
    async with door(server.port) as between, opened(f"redis://127.0.0.1:{between.port}") as store:
        between.slam_on_reply = True
        principals = names("p", 40)
        assert kinds(await spend(store, [*principals, *principals])) == ["lost"] * 80
        assert await spent(store, principals) == [2] * 40, "they had been booked"
        between.slam_on_reply = True
        marked = [Debit(each, ONE, marker=b"m") for each in principals]
        assert kinds(await store.spend(marked)) == ["granted"] * 40
        assert await spent(store, principals) == [3] * 40, "once, not twice"
        between.slam_on_reply = True
        learned = await store.learn([record(principal=each) for each in principals])
        assert {each.claim for each in learned if isinstance(each, Learned)} == {
            ClaimOutcome.DUPLICATE
        }
        between.slam_on_reply = True
        assert await released(store, 1) == {BLOCK: [40]}
        between.slam_on_reply = True
        claimed = await store.claim_event(event=b"e", fingerprint=b"f", ttl=60)
        assert claimed.fingerprint == b"f"
        between.slam_on_reply = True
        assert await store.answer_event(event=b"e", answer=b"a", ttl=60) == b"a"
        between.slam_on_reply = True
        with pytest.raises(StoreUnavailable):
            await store.put_document(name="n", document=b"d", expected=None)
        assert await store.epoch() == 1


async def test_of_lost_answers_only_repeatable_commands_are_asked_again(
    store: RedisStore, server: Server
) -> None:
    """All are in the server's hands when the connection goes: only one must not be repeated."""
    paused(server)
    plain = store.spend([Debit(b"p", ONE)])
    marked = store.spend([Debit(b"p", ONE, marker=b"m")])
    counted = store.learn([record(principal=b"p")])
    await hang_up(server)
    (lost,) = await plain
    assert "answer was lost" in str(lost)
    server.do("CLIENT", "UNPAUSE")
    assert kinds(await marked) == ["granted"]
    (learned,) = await counted
    assert isinstance(learned, Learned)
    assert learned.claim is ClaimOutcome.COUNTED
    assert await spent(store, [b"p"]) == [1]


async def test_too_many_at_once_fail_by_themselves(
    store: RedisStore, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconnecting, "MOST_OUTSTANDING", 10)
    paused(server)
    principals = names("p", 25)
    debiting = spend(store, principals)
    assert the_connection(store).in_flight == 10
    more = await spend(store, names("q", 2))
    assert ["too slow" in str(each) for each in more] == [True, True]
    server.do("CLIENT", "UNPAUSE")
    assert kinds(await debiting) == ["granted"] * 10 + ["lost"] * 15
    assert kinds(await spend(store, principals[:10])) == ["granted"] * 10
    monkeypatch.undo()
    assert await spent(store, principals) == [2] * 10 + [0] * 15


async def test_who_wait_for_a_server_to_come_back_are_sent_once_and_not_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with valkey(tmp_path / "back", appendonly="yes", appendfsync="always") as server:
        async with opened(server.url) as store:
            assert kinds(await spend(store, [b"p"])) == ["granted"]
            gone, line = asyncio.Event(), the_connection(store)
            lost = line.lost
            line.lost = lambda ran, unsent: (lost(ran, unsent), gone.set())[0]
            server.kill()
            await gone.wait()
            monkeypatch.setattr(reconnecting, "MOST_OUTSTANDING", 10)
            principals = names("p", 25)
            debiting = spend(store, principals)
            server.start()
            assert kinds(await debiting) == ["granted"] * 10 + ["lost"] * 15
            monkeypatch.undo()
            assert await spent(store, principals) == [1] * 10 + [0] * 15


async def test_debits_that_nobody_awaits_any_more_stand(store: RedisStore, server: Server) -> None:
    paused(server)
    principals = names("p", 5)

    async def debit() -> Sequence[Debited | DiscreetError]:
        found: Sequence[Debited | DiscreetError] = await spend(store, principals)
        return found

    given_up, kept = asyncio.ensure_future(debit()), asyncio.ensure_future(debit())
    await asyncio.sleep(0)
    given_up.cancel()
    server.do("CLIENT", "UNPAUSE")
    assert kinds(await kept) == ["granted"] * 5
    assert given_up.cancelled()
    assert await spent(store, principals) == [2] * 5


async def test_kill_9_in_the_middle_of_many_debits(tmp_path: Path) -> None:
    """Acknowledged means booked; what is in doubt was booked once at most."""
    acknowledged, doubtful = [0] * 8, [0] * 8
    with valkey(tmp_path / "killed", appendonly="yes", appendfsync="always") as server:
        async with opened(server.url, patience=30) as store:
            principals = names("p", 8)
            kills = 0
            # A kill shows something only if it meets debits on their way.
            while kills < 3 or not any(doubtful):
                kills += 1
                calls = [spend(store, principals * 20) for _ in range(10)]
                await calls[0]
                calls.append(spend(store, principals * 500))
                server.kill()
                server.start()
                for found in [await call for call in calls]:
                    for place, kind in enumerate(kinds(found)):
                        (acknowledged if kind == "granted" else doubtful)[place % 8] += 1
            booked = await spent(store, principals)
    for least, found, doubt in zip(acknowledged, booked, doubtful, strict=True):
        assert least <= found <= least + doubt


async def test_a_reply_that_lay_unread_is_no_reply_too_late(server: Server) -> None:
    """The process is busy for far longer than a command may take; the store has answered."""
    server.do("FLUSHALL")
    async with opened(server.url, patience=1.0) as client:
        principals = names("frozen", 3)
        debiting = spend(client, principals)
        await asyncio.sleep(0)  # written
        left_unread(server)
        assert all(isinstance(each, Debited) for each in await debiting)
    async with opened(server.url) as client:
        assert await spent(client, principals) == [1, 1, 1]
