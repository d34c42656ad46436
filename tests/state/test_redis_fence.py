"""A real store that is emptied, put back, cut short, filled up or made to evict: always noticed."""

import contextlib
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import pytest

from discreet.errors import DiscreetError, StoreFenced, StoreUnavailable, StoreUnsuitable
from discreet.state.fence import OLDER
from discreet.state.keys import StoreKeys
from discreet.state.redis_store import RedisStore, open_store
from discreet.state.store_values import PageWrite
from discreet.state.stores import SHARDS, Ledger
from tests.state.places import ADA, BOB, ONE, record, spend, spent
from tests.state.servers import PATIENCE, Server, sentinel, valkey

pytestmark = pytest.mark.anyio

KEYS = StoreKeys()
DURABLE = {"appendonly": "yes", "appendfsync": "always"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with valkey(tmp_path / "valkey", **DURABLE) as running:
        yield running


@contextlib.asynccontextmanager
async def opened(
    server: Server, marks: Path | None = None, **how: object
) -> AsyncIterator[RedisStore]:
    store = open_store(server.url, timeout=30, marks=marks, **how)  # type: ignore[arg-type]
    try:
        await store.open()
        yield store
    finally:
        await store.close()


def put_back(server: Server, copy: Path) -> None:
    """Stop the server, replace its files, and start it again."""
    server.kill()
    files = server.folder / "appendonlydir"
    shutil.rmtree(files)
    shutil.copytree(copy, files)
    server.start()


def copy_of(server: Server, to: Path) -> Path:
    shutil.copytree(server.folder / "appendonlydir", to)
    return to


async def refusal(store: RedisStore) -> str:
    """Return why a debit is refused; wait until the connection is back."""
    with anyio.fail_after(PATIENCE):
        while True:
            try:
                await spend(store)
            except StoreFenced as error:
                return str(error)
            except StoreUnavailable:
                await anyio.sleep(0.05)
            else:
                pytest.fail("the debit was made")


async def test_every_debit_and_every_claim_raises_the_mark(server: Server) -> None:
    async with opened(server) as store:
        marks = store.fence.marks
        shards = (ADA[0] % SHARDS, BOB[0] % SHARDS)
        assert [marks.seen(shard) for shard in shards] == [0, 0]
        await spend(store)
        await spend(store, BOB)
        await spend(store, BOB, marker=b"event")
        await spend(store, BOB, marker=b"event")  # paid for already
        assert [marks.seen(shard) for shard in shards] == [1, 2]
        await store.learn([record(), record()])  # the second is a duplicate
        assert marks.seen(shards[0]) == 2
        await store.ledgers([ADA])
        assert marks.seen(shards[0]) == 2


async def test_an_old_copy_is_refused_on_the_first_connection(
    server: Server, tmp_path: Path
) -> None:
    async with opened(server) as store, opened(server) as bystander:
        await spend(store)
        copy = copy_of(server, tmp_path / "copy")
        await spend(store)
        await bystander.ping()  # as every second
        put_back(server, copy)
        assert OLDER in await refusal(store)
        for call in (store.epoch, store.registry):
            with pytest.raises(StoreFenced):
                await call()
        assert OLDER in await refusal(bystander)
    with pytest.raises(StoreFenced, match="went back in time"):
        async with opened(server):
            pass
    assert server.do("EXISTS", KEYS.ledger(ADA)) == 1


async def test_one_debit_less_is_noticed(server: Server, tmp_path: Path) -> None:
    """The append-only file is cut short by a single acknowledged debit."""
    async with opened(server) as store:
        await spend(store)
        (file,) = (server.folder / "appendonlydir").glob("*.incr.aof")
        length = file.stat().st_size
        await spend(store)
        server.kill()
        with file.open("r+b") as cut:
            cut.truncate(length)
        server.start()
        assert OLDER in await refusal(store)


async def test_a_restart_that_lost_nothing_goes_on(server: Server) -> None:
    async with opened(server) as store:
        await spend(store)
        server.kill()
        server.start()
        await store.ping()
        assert (await spend(store)).granted
        assert await spent(store) == Ledger(ONE + ONE)


async def test_a_flush_is_noticed_by_the_very_next_debit(server: Server) -> None:
    async with opened(server) as store, opened(server) as other:
        await spend(store)
        server.do("FLUSHALL")
        with pytest.raises(StoreFenced, match="emptied or replaced"):
            await spend(store)
        (learned,) = await other.learn([record()])
        assert isinstance(learned, StoreFenced)
        for each in (store, other):
            with pytest.raises(StoreFenced):
                await each.ping()
        assert server.do("DBSIZE") == 0
        with pytest.raises(StoreFenced):
            await store.put_document(name="key/x", document=b"{}", expected=None)
    assert server.do("DBSIZE") == 0


WRITES: dict[str, Callable[[RedisStore], Awaitable[object]]] = {
    "save": lambda store: store.save(key=b"k", content=b"c"),
    "save of the first": lambda store: store.save(key=b"k", content=b"c", expected=0),
    "stamp": lambda store: store.stamp(key=b"k"),
    "write_page": lambda store: store.write_page(page=b"p", writes=[(0, b"c")]),
    "enrol": lambda store: store.enrol(roster=b"r", names=[b"n"]),
    "hold": lambda store: store.hold(lease=b"l", holder=b"h", seconds=15),
    "claim_event": lambda store: store.claim_event(event=b"e", fingerprint=b"f", ttl=60),
    "put_message": lambda store: store.put_message(queue=b"q", name=b"n", content=b"c"),
    "append_stream": lambda store: store.append_stream(stream=b"s", lines=[b"a"], keep=60),
    "put_document": lambda store: store.put_document(name="x", document=b"{}", expected=None),
    "secret": lambda store: store.secret(name="pepper", proposal=b"another"),
    "freeze": lambda store: store.freeze(generation=b"g", number=1),
    "forget_own": lambda store: store.forget_own(generation=b"g", principal=ADA),
}


@pytest.mark.parametrize("name", WRITES)
async def test_nothing_is_written_to_a_store_that_is_not_ours(server: Server, name: str) -> None:
    """Whoever writes first, before anybody has noticed, finds it out by that."""
    async with opened(server) as store, opened(server) as other:
        await WRITES[name](store)
        server.do("FLUSHALL")
        with pytest.raises(StoreFenced, match="emptied or replaced"):
            await WRITES[name](store)
        assert server.do("DBSIZE") == 0
        assert store.fence.reason is not None
        async with opened(server):
            pass  # somebody who knows nothing begins it
        before = server.do("DBSIZE")
        with pytest.raises(StoreFenced, match="not the one"):
            await WRITES[name](other)
        assert server.do("DBSIZE") == before


async def test_no_page_is_written_to_an_emptied_store(server: Server) -> None:
    async with opened(server) as store:
        server.do("FLUSHALL")
        for outcome in await store.write_pages([PageWrite(b"p", 0, b"c"), PageWrite(b"q", 0, b"")]):
            assert isinstance(outcome, StoreFenced)
        assert server.do("DBSIZE") == 0


async def test_a_store_emptied_between_its_examination_and_its_use_stays_empty(
    server: Server, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    async with opened(server, marks) as store:
        store._break(OLDER)
        assert await told(server) == OLDER.encode()
        server.do("HDEL", KEYS.identity, "broken")
    again = open_store(server.url, timeout=30, marks=marks)
    await again._client.open()
    server.do("FLUSHALL")
    with pytest.raises(StoreFenced, match="emptied or replaced"):
        await again._begin(init=True)
    await again.close()
    async with opened(server) as store:
        server.do("FLUSHALL")
        store._break(OLDER)
        assert await told(server) is None
    assert server.do("DBSIZE") == 0


async def test_a_store_accepted_in_place_of_ours_is_not_said_to_be_broken(server: Server) -> None:
    async with opened(server) as late:
        operators = open_store(server.url, timeout=30)
        await operators.accept()
        await operators.close()
        with pytest.raises(StoreFenced):
            await late.save(key=b"k", content=b"c")
        assert await told(server) is None
        with pytest.raises(StoreFenced):
            await late.ping()
        assert late.superseded()


async def told(server: Server) -> bytes | None:
    """Return why a store is said to be broken, once what was sent has arrived."""
    await anyio.sleep(0.05)
    found: bytes | None = server.do("HGET", KEYS.identity, "broken")
    return found


async def test_the_file_outlives_everybody(server: Server, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    async with opened(server, marks) as store:
        await spend(store)
        copy = copy_of(server, tmp_path / "copy")
        await spend(store)
    put_back(server, copy)
    with pytest.raises(StoreFenced, match="went back in time"):
        async with opened(server, marks):
            pass
    server.do("FLUSHALL")
    for init in (False, True):
        with pytest.raises(StoreFenced, match="emptied or replaced"):
            async with opened(server, marks, init=init):
                pass
    assert server.do("DBSIZE") == 0
    async with opened(server):
        pass  # somebody who knows nothing begins it
    with pytest.raises(StoreFenced, match="not the one"):
        async with opened(server, marks):
            pass


async def test_an_empty_namespace_is_begun_only_aloud(server: Server) -> None:
    with pytest.raises(StoreUnsuitable, match="--init"):
        async with opened(server, init=False):
            pass
    assert server.do("DBSIZE") == 0
    async with opened(server, init=True):
        pass
    async with opened(server, init=False) as store:
        assert (await spend(store)).granted


async def test_a_store_from_before_there_were_identities_gets_one(server: Server) -> None:
    async with opened(server) as store:
        await spend(store)
    server.do("DEL", KEYS.identity, *(KEYS.fence(shard) for shard in range(SHARDS)))
    async with opened(server, init=False) as store:
        assert (await spend(store)).granted
        assert await spent(store) == Ledger(ONE + ONE)


async def test_secrets_that_are_gone_are_not_made_anew(server: Server, tmp_path: Path) -> None:
    """Another pepper would give everybody a fresh ledger, though none was lost."""
    marks = tmp_path / "marks"
    async with opened(server, marks) as store:
        assert await store.secret(name="pepper", proposal=b"first") == b"first"
    async with opened(server, marks) as running:
        server.do("DEL", KEYS.secrets)
        for file in (marks, None):
            with pytest.raises(StoreFenced, match="lost its secrets"):
                async with opened(server, file):
                    pass
        with pytest.raises(StoreFenced, match="lost its secrets"):
            await running.ping()
    operator = open_store(server.url, marks=marks)
    await operator.accept()
    await operator.close()
    for proposal in (b"second", b"third"):
        async with opened(server, marks) as store:
            assert await store.secret(name="pepper", proposal=proposal) == b"second"


async def test_a_beginning_that_was_interrupted_is_finished(server: Server) -> None:
    async with opened(server):
        pass
    server.do("HDEL", KEYS.identity, "begun")
    server.do("DEL", KEYS.fence(3))
    async with opened(server) as store:
        await spend(store, bytes([3]) * 32)
    server.do("DEL", KEYS.fence(3))
    with pytest.raises(StoreFenced, match="emptied"):
        async with opened(server):
            pass


async def test_the_operator_accepts_and_everybody_begins_anew(
    server: Server, tmp_path: Path
) -> None:
    marks, elsewhere = tmp_path / "marks", tmp_path / "elsewhere"
    async with opened(server, marks) as store, opened(server, elsewhere) as other:
        await spend(store)
        copy = copy_of(server, tmp_path / "copy")
        await spend(store)
        await spend(other)
        put_back(server, copy)
        assert OLDER in await refusal(store)
        assert not store.superseded()
        operator = open_store(server.url, marks=marks)
        await operator.accept()
        await operator.close()
        for each in (store, other):
            with anyio.fail_after(PATIENCE):
                while not each.superseded():
                    with contextlib.suppress(StoreUnavailable):
                        await each.ping()
                    await anyio.sleep(0.02)
            with pytest.raises(DiscreetError):
                await spend(each)
    for file in (marks, elsewhere, None):
        async with opened(server, file, init=False) as store:
            await store.ping()
            assert (await spend(store)).granted
    # What was seen before stays the least that is expected.
    async with opened(server, marks) as store:
        assert store.fence.marks.seen(ADA[0] % SHARDS) == 2 + 3


async def test_the_right_store_comes_back_and_is_used_again(server: Server, tmp_path: Path) -> None:
    async with opened(server) as store:
        await spend(store)
        old = copy_of(server, tmp_path / "old")
        await spend(store)
        right = copy_of(server, tmp_path / "right")
        put_back(server, old)
        assert OLDER in await refusal(store)
        put_back(server, right)
        with anyio.fail_after(PATIENCE):
            while True:
                with contextlib.suppress(StoreUnavailable):
                    await store.ping()
                    break
                await anyio.sleep(0.05)
        assert await spent(store) == Ledger(ONE + ONE)


async def test_after_a_flush_that_was_undone_workers_begin_anew(
    server: Server, tmp_path: Path
) -> None:
    async with opened(server) as store:
        await spend(store)
        copy = copy_of(server, tmp_path / "copy")
        server.do("FLUSHALL")
        with pytest.raises(StoreFenced):
            await spend(store)
        put_back(server, copy)
        with anyio.fail_after(PATIENCE):
            while not store.superseded():
                with contextlib.suppress(StoreUnavailable):
                    await store.ping()
                await anyio.sleep(0.01)
        with pytest.raises(StoreFenced):
            await spend(store)


async def test_whoever_notices_tells_others_who_know_less(server: Server) -> None:
    async with opened(server) as store, opened(server) as bystander:
        await spend(store)
        before = server.do("GET", KEYS.fence(ADA[0] % SHARDS))
        await spend(store)
        server.do("SET", KEYS.fence(ADA[0] % SHARDS), before)
        with pytest.raises(StoreFenced, match="went back in time"):
            await spend(store)
        with pytest.raises(StoreFenced, match="went back in time"):
            await bystander.ping()
        with pytest.raises(StoreFenced):
            await spend(bystander)


async def test_a_full_store_is_noticed_with_its_cause(server: Server) -> None:
    async with opened(server) as store:
        server.do("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(StoreUnavailable, match="reached its maxmemory"):
            await store.ping()
        with pytest.raises(StoreUnavailable, match="reached its maxmemory"):
            await spend(store)
        server.do("CONFIG", "SET", "maxmemory", "0")
        await store.ping()
        assert (await spend(store)).granted


async def test_a_policy_that_changes_at_run_time_is_noticed(server: Server) -> None:
    async with opened(server) as store:
        await store.ping()
        server.do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        for call in (store.ping, lambda: spend(store)):
            with pytest.raises(StoreUnavailable, match="may evict ledgers"):
                await call()
        server.do("CONFIG", "SET", "maxmemory-policy", "noeviction")
        await store.ping()


@pytest.mark.parametrize(
    ("setting", "bad", "cause"),
    [
        ("appendfsync", "everysec", "appendfsync is everysec"),
        ("appendonly", "no", "no append-only file"),
    ],
)
async def test_a_store_that_stops_writing_through_at_run_time_is_named(
    server: Server, caplog: pytest.LogCaptureFixture, setting: str, bad: str, cause: str
) -> None:
    async with opened(server) as store:
        await store.ping()
        assert cause not in caplog.text
        server.do("CONFIG", "SET", setting, bad)
        for _ in range(3):
            await store.ping()
        assert caplog.text.count(cause) == 1


async def test_another_doubt_about_durability_is_named_at_once(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(server) as store:
        for setting, bad in (("appendfsync", "no"), ("appendonly", "no")):
            server.do("CONFIG", "SET", setting, bad)
            await store.ping()
        assert "appendfsync is no" in caplog.text
        assert "no append-only file" in caplog.text


async def test_a_store_that_hides_its_configuration_is_asked_once(server: Server) -> None:
    async with opened(server) as store:
        server.do("ACL", "SETUSER", "default", "-config")
        server.do("ACL", "LOG", "RESET")
        for _ in range(3):
            await store.ping()
        assert (await spend(store)).granted
        (entry,) = server.do("ACL", "LOG")
        assert int(entry[b"count"]) == 1


async def test_keys_that_were_evicted_stop_it_for_good(server: Server) -> None:
    async with opened(server) as store:
        await spend(store)
        await store.ping()
        for number in range(200):
            server.do("SET", f"filler{number}", "x" * 10_000)
        server.do("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
        used = server.do("INFO", "memory")["used_memory"]
        server.do("CONFIG", "SET", "maxmemory", used - 1_000_000)
        server.do("SET", "one", "more")
        server.do("CONFIG", "SET", "maxmemory", "0")
        server.do("CONFIG", "SET", "maxmemory-policy", "noeviction")
        with pytest.raises(StoreFenced):
            await store.ping()
        with pytest.raises(StoreFenced):
            await spend(store)


async def test_a_failover_that_lost_nothing_goes_on(tmp_path: Path) -> None:
    with sentinel(tmp_path / "watched") as watched:
        store = open_store(watched.url, timeout=30)
        await store.open()
        try:
            await spend(store)
            watched.master.do("WAIT", 1, 10_000)
            watched.master.kill()
            with anyio.fail_after(PATIENCE):
                while True:
                    with contextlib.suppress(StoreUnavailable):
                        await spend(store)
                        break
                    await anyio.sleep(0.05)
            assert await spent(store) >= Ledger(ONE + ONE)
        finally:
            await store.close()


@pytest.mark.parametrize("lost_writes", [0, 5])
async def test_a_failover_that_lost_a_debit_is_refused_unless_it_may(
    tmp_path: Path, lost_writes: int
) -> None:
    with sentinel(tmp_path / "watched") as watched:
        store = open_store(watched.url, timeout=30, lost_writes=lost_writes)
        await store.open()
        try:
            await spend(store)
            watched.master.do("WAIT", 1, 10_000)
            # Cut off: what is acknowledged from here on never reaches the replica.
            watched.replica.do("REPLICAOF", "NO", "ONE")
            await spend(store)
            watched.master.kill()
            watched.replica.do("PING")
            replica = open_store(watched.replica.url, timeout=30, lost_writes=lost_writes)
            replica._fence.marks = store.fence.marks
            if lost_writes:
                await replica.open()
                assert (await spend(replica)).granted
            else:
                with pytest.raises(StoreFenced, match="went back in time"):
                    await replica.open()
            await replica.close()
        finally:
            await store.close()


async def test_an_epoch_that_falls_is_a_store_that_lost_something(server: Server) -> None:
    async with opened(server) as store, opened(server) as other:
        for number in range(3):
            await store.put_document(name=f"key/{number}", document=b"{}", expected=None)
        asked_before = other.epoch()
        await store.put_document(name="key/3", document=b"{}", expected=None)
        assert (await other.registry()).epoch == 4
        assert await asked_before in (3, 4), "an answer to an older question is no fall"
        assert await store.epoch() == 4
        server.do("FLUSHALL")
        with pytest.raises(StoreFenced, match="emptied"):
            await store.registry()
        server.do("SET", KEYS.epoch, 2)
        with pytest.raises(StoreFenced, match="went back in time"):
            await other.epoch()
