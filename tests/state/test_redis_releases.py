"""A release's sums: whole if it is cut short, in pieces if they are large, spread over masters."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from discreet.errors import StoreUnavailable
from discreet.privacy.charges import Charge
from discreet.state import redis_releases
from discreet.state.client import StoreClient, StoreCommand
from discreet.state.keys import StoreKeys, frozen_sums
from discreet.state.redis_store import RedisStore, open_store
from discreet.state.slots import SHARD_TAGS, slot_of
from discreet.state.stores import OWN, SHARDS, ClaimOutcome, Vector, shard_of
from tests.state.places import ADA, BLOCK, GENERATION, learn, record, released, spent
from tests.state.servers import ClusterOf6, Server, cluster
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio

KEYS = StoreKeys()


class CutShort:
    """Sends only the first commands: the rest fail, as if the process had ended."""

    def __init__(self, client: StoreClient, after: int) -> None:
        self._client = client
        self._left = after

    async def send(self, commands: Sequence[StoreCommand]) -> list[Any]:
        sent, lost = commands[: self._left], commands[self._left :]
        self._left -= len(sent)
        return [*await self._client.send(sent), *(StoreUnavailable("cut short") for _ in lost)]


class Counting:
    """Sends everything, and notes how many commands went together."""

    def __init__(self, client: StoreClient) -> None:
        self._client = client
        self.together: list[int] = []

    async def send(self, commands: Sequence[StoreCommand]) -> list[Any]:
        self.together.append(len(commands))
        return await self._client.send(commands)


@pytest.mark.parametrize("after", [0, 1, 31, 63])
async def test_a_freeze_that_was_cut_short_is_completed_by_the_next(
    store: RedisStore, after: int
) -> None:
    """What came between the two is in this release or in the next one, and in one of them only."""
    principals = [bytes([number]) for number in range(128)]
    await store.learn([record((0, 1), principal=each, claim=b"1") for each in principals])
    cut = RedisStore(CutShort(store._client, after), KEYS)  # type: ignore[arg-type]
    with pytest.raises(StoreUnavailable):
        await cut.freeze(generation=GENERATION, number=1)
    await store.learn([record((1, 1), principal=each, claim=b"2") for each in principals])
    one, two = await released(store, 1), await released(store, 2)
    assert one[BLOCK][0] == 128
    late = sum(shard_of(each) >= after for each in principals)
    assert sum(one[BLOCK][1:]) == late
    assert sum(two.get(BLOCK, [])) == 128 - late
    assert await released(store, 1) == one


async def test_an_erasure_that_was_cut_short_is_completed_by_the_next(
    store: RedisStore, server: Server
) -> None:
    blocks = {BLOCK: [(0, 1)], OWN: [(0, 1)]}
    await store.learn([record(principal=bytes([n]), blocks=blocks, ttl=1) for n in range(128)])
    await store.freeze(generation=GENERATION, number=1)
    for erase in (
        lambda some: some.discard(generation=GENERATION, number=1),
        lambda some: some.erase_sums(generation=GENERATION),
    ):
        cut = RedisStore(CutShort(store._client, 20), KEYS)  # type: ignore[arg-type]
        with pytest.raises(StoreUnavailable):
            await erase(cut)
        await erase(store)
        assert not any(server.do("EXISTS", KEYS.frozen(n, GENERATION)) for n in range(SHARDS))
        assert await released(store, 1) == {}
    await store.erase_sums(generation=GENERATION)
    left = [key for key in server.do("KEYS", "*") if GENERATION in key]
    assert left == []


async def test_reading_a_release_that_was_cut_short_returns_nothing(store: RedisStore) -> None:
    await learn(store, record())
    await store.freeze(generation=GENERATION, number=1)
    for read in (
        lambda cut: cut.frozen(generation=GENERATION, number=1),
        lambda cut: cut.owners(generation=GENERATION),
    ):
        with pytest.raises(StoreUnavailable):
            await read(RedisStore(CutShort(store._client, 63), KEYS))  # type: ignore[arg-type]


async def test_unreadable_sums_are_not_empty_ones(store: RedisStore, server: Server) -> None:
    await learn(store, record())
    shard = shard_of(ADA)
    server.do("APPEND", KEYS.sums(shard, GENERATION) + BLOCK, "x")
    await store.freeze(generation=GENERATION, number=1)
    with pytest.raises(StoreUnavailable):
        await store.frozen(generation=GENERATION, number=1)
    server.do("DEL", frozen_sums(KEYS.frozen(shard, GENERATION), 1) + BLOCK)
    with pytest.raises(StoreUnavailable):
        await store.frozen(generation=GENERATION, number=1)


@pytest.mark.parametrize(
    ("blocks", "length", "moved", "read"),
    [
        (0, 1, [1, 63], [1, 63]),
        (100, 1, [1] + 12 * [5] + [3], [1] + 12 * [5] + [3]),
        (600, 1, 64 * [1], 64 * [1]),
        (20, 10_000, [1, 25, 25, 13], [1, 1, 1, 1] + 60 * [1]),
    ],
    ids=["nothing", "some", "many", "long"],
)
async def test_shards_with_much_are_asked_one_after_the_other(
    store: RedisStore, blocks: int, length: int, moved: list[int], read: list[int]
) -> None:
    """What goes in one write is run before anybody else's debit."""
    names = {b"%d" % place: [(length - 1, 1)] for place in range(blocks)}
    if blocks:
        people = [bytes([shard]) for shard in range(SHARDS)]
        await store.learn([record(principal=one, blocks=names) for one in people])
    counting = Counting(store._client)
    watched = RedisStore(counting, KEYS)  # type: ignore[arg-type]
    await watched.freeze(generation=GENERATION, number=1)
    assert counting.together == moved
    counting.together.clear()
    found = await watched.frozen(generation=GENERATION, number=1)
    assert counting.together == read
    assert {name: int(sums[-1]) for name, sums in found.items()} == dict.fromkeys(names, SHARDS)
    counting.together.clear()
    await watched.discard(generation=GENERATION, number=1)
    assert len(counting.together) >= max(1, SHARDS * blocks // redis_releases.BLOCKS_AT_ONCE)
    assert await store.frozen(generation=GENERATION, number=1) == {}


async def test_the_event_loop_turns_while_sums_are_added_up(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Adding up waits here until the loop has turned; on the loop itself it would wait in vain."""
    await store.learn([record(principal=bytes([shard])) for shard in range(SHARDS)])
    begun, turned, waited = threading.Event(), threading.Event(), []
    add_up = redis_releases._add_up

    def after_a_turn(*given: Any) -> int:
        begun.set()
        waited.append(turned.wait(PATIENCE))
        return add_up(*given)

    async def turn() -> None:
        await asyncio.to_thread(begun.wait, PATIENCE)
        turned.set()

    monkeypatch.setattr(redis_releases, "_add_up", after_a_turn)
    await store.freeze(generation=GENERATION, number=1)
    async with asyncio.TaskGroup() as both:
        both.create_task(turn())
        reading = both.create_task(_read(store))
    assert reading.result()[BLOCK].tolist() == [SHARDS]
    assert set(waited) == {True}


async def _read(store: RedisStore) -> Mapping[bytes, Vector]:
    return await store.frozen(generation=GENERATION, number=1)


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterOf6]:
    """A cluster whose masters sync every write and are not replaced while they start again."""
    with cluster(tmp_path_factory.mktemp("popular")) as running:
        for one in running.servers:
            one.options["appendfsync"] = "always"
            one.do("CONFIG", "SET", "appendfsync", "always")
        yield running


class PopularRecommender:
    """One recommender that everybody sends feedback to, and a releaser that adds it up.

    Everybody adds to one popular item, and to a field of their own, by which a release tells how
    many records of each person it covers.
    """

    def __init__(self, store: RedisStore) -> None:
        self.store = store
        self.sent: Counter[bytes] = Counter()
        self.released: list[dict[bytes, list[int]]] = []
        self.stopping = False
        self._step = asyncio.Event()

    async def feed(self, person: bytes) -> None:
        """Send feedback until told to stop, each until the store says that it has it."""
        while not self.stopping:
            claim = b"%d" % self.sent[person]
            blocks = {b"item": [(0, 1), (1, 3)], b"people": [(person[0], 1)]}
            one = record(principal=person, claim=claim, blocks=blocks, charge=PRICE, ttl=3_600)
            try:
                learned = await learn(self.store, one)
            except StoreUnavailable:
                continue
            # A duplicate is one whose answer was lost: it is sent again by ourselves.
            assert learned.claim in (ClaimOutcome.COUNTED, ClaimOutcome.DUPLICATE)
            self.sent[person] += 1
            self._step.set()

    async def release(self) -> None:
        """Make releases until told to stop, and the last one after that."""
        last = False
        while not last:
            last = self.stopping
            number = len(self.released) + 1
            try:
                found = await released(self.store, number)
            except StoreUnavailable:
                last = False
                continue
            # As with a stored model: from here on the release stands, and is not read again.
            self.released.append(found)
            with suppress(StoreUnavailable):
                await self.store.discard(generation=GENERATION, number=number)

    async def progress(self, by: int) -> None:
        """Return once everybody has sent so much more, and there was another release."""
        goal = {person: count + by for person, count in self.sent.items()}
        releases = len(self.released) + 2
        while len(self.released) < releases or any(self.sent[one] < goal[one] for one in goal):
            self._step.clear()
            await self._step.wait()


PRICE = Charge(nano_epsilon=1, nano_rho=1)


async def test_feedback_of_one_recommender_spreads_over_the_masters_and_all_of_it_is_released_once(
    six: ClusterOf6,
) -> None:
    """While a slot moves and a master dies and returns: nothing is lost, doubled or undercharged.

    n records of a person in one release cost n squared, so what was paid tells whether each was
    charged for the release that it is in.
    """
    store = open_store(six.url, timeout=60)
    await store.open()
    popular = PopularRecommender(store)
    people = [bytes([number]) for number in range(SHARDS)]
    popular.sent.update(dict.fromkeys(people, 0))
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
        for person in people:
            tasks.create_task(popular.feed(person))
        releasing = tasks.create_task(popular.release())
        await popular.progress(by=10)
        writes = [_writes(one) for one in six.servers[:3]]
        await asyncio.to_thread(_move_slot, six, shard=5)
        await popular.progress(by=5)
        victim = six.owner(slot_of(SHARD_TAGS[40]))
        victim.kill()
        await asyncio.sleep(0.5)
        await asyncio.to_thread(victim.start)
        await popular.progress(by=5)
        popular.stopping = True
        await releasing
    assert sorted(map(len, writes)) == [21, 21, 22], "shards by master"
    assert min(map(min, writes)) >= 10, "everybody's feedback was counted where they belong"
    late = await released(store, len(popular.released) + 1)
    for number, person in enumerate(people):
        counts = [_field(one, number) for one in (*popular.released, late)]
        assert sum(counts) == popular.sent[person], "lost, or counted twice"
        paid = (await spent(store, person)).feedback
        expected = Charge(nano_epsilon=sum(counts), nano_rho=sum(n * n for n in counts))
        assert paid == expected, "charged for another release than it is in"
    total = sum(popular.sent.values())
    items = [one.get(b"item", [0, 0]) for one in (*popular.released, late)]
    assert [sum(column) for column in zip(*items, strict=True)] == [total, 3 * total]
    await store.close()


def _field(one: dict[bytes, list[int]], number: int) -> int:
    counts = one.get(b"people", [])
    return counts[number] if number < len(counts) else 0


def _writes(server: Server) -> list[int]:
    """Return how much feedback a master has counted, on each of its shards."""
    known = set(map(KEYS.fence, range(SHARDS)))
    with server.client as client:
        fences = [key for key in client.scan_iter() if key in known]
        return [int.from_bytes(client.get(key)[-8:], "big") for key in fences]


def _move_slot(six: ClusterOf6, *, shard: int) -> None:
    """Move a shard's slot to another master, key by key, while it is written to."""
    slot = slot_of(SHARD_TAGS[shard])
    source = six.owner(slot)
    target = next(one for one in six.servers[:3] if one is not source)
    source_id, target_id = source.do("CLUSTER", "MYID"), target.do("CLUSTER", "MYID")
    target.do("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
    source.do("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
    while keys := source.do("CLUSTER", "GETKEYSINSLOT", slot, 10):
        source.do("MIGRATE", "127.0.0.1", target.port, "", 0, 10_000, "KEYS", *keys)
    for server in (target, source, *six.servers[:3]):
        server.do("CLUSTER", "SETSLOT", slot, "NODE", target_id)
