"""What lies in the server: small, lapsing where it should, whole when a release is cut short."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest

from discreet.errors import StoreUnavailable
from discreet.privacy.charges import Charge, Limit
from discreet.state.client import StoreClient, StoreCommand
from discreet.state.keys import StoreKeys, frozen_sums
from discreet.state.redis_store import RedisStore, open_store
from discreet.state.stores import OWN, SHARDS, Account, Ledger, shard_of
from tests.state.places import (
    ADA,
    BLOCK,
    GENERATION,
    ONE,
    learn,
    record,
    released,
    spend,
    spent,
)
from tests.state.servers import Server, eventually, valkey

pytestmark = pytest.mark.anyio

KEYS = StoreKeys()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with valkey(tmp_path_factory.mktemp("sums") / "data") as running:
        yield running


@pytest.fixture
async def store(server: Server) -> AsyncIterator[RedisStore]:
    server.do("FLUSHALL")
    one = open_store(server.url, timeout=20)
    await one.open()
    yield one
    await one.close()


class CutShort:
    """Sends only the first of many commands: the rest fail, as if the process had ended."""

    def __init__(self, client: StoreClient, after: int) -> None:
        self._client = client
        self._after = after

    async def send(self, commands: Sequence[StoreCommand]) -> list[Any]:
        lost = [StoreUnavailable("cut short") for _ in commands[self._after :]]
        return [*await self._client.send(commands[: self._after]), *lost]


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
    cut = RedisStore(CutShort(store._client, 63), KEYS)  # type: ignore[arg-type]
    for call in (
        cut.frozen(generation=GENERATION, number=1),
        cut.owners(generation=GENERATION),
    ):
        with pytest.raises(StoreUnavailable):
            await call


async def test_a_ledger_and_a_claim_are_small(store: RedisStore, server: Server) -> None:
    """A ledger may cost 250 bytes all told, with a window and a day of both accounts 350; each
    further day and account 50. A claim, which lapses, may cost 300."""
    principal, claim = b"p" * 16, b"c" * 16
    await spend(store, principal)
    ledger = KEYS.ledger(principal)
    assert server.do("HSTRLEN", ledger, "l") == 24, "an unused account takes no room"
    assert server.do("HSTRLEN", ledger, "w") == 0
    assert server.do("MEMORY", "USAGE", ledger) <= 250
    await learn(store, record(principal=principal, claim=claim, charge=ONE))
    assert server.do("HSTRLEN", ledger, "l") == 48
    await spend(store, principal, window=86_400, purpose=b"films")
    assert server.do("HSTRLEN", ledger, "w") == 56
    assert server.do("MEMORY", "USAGE", ledger) <= 350
    for number in range(50):
        await spend(store, principal, window=86_400, purpose=b"films%02d" % number)
    assert server.do("MEMORY", "USAGE", ledger) <= 350 + 50 * 50
    assert server.do("MEMORY", "USAGE", KEYS.claim(principal, claim)) <= 300
    assert server.do("PTTL", KEYS.ledger(principal)) == -1
    assert 0 < server.do("PTTL", KEYS.claim(principal, claim)) <= 60_000


async def test_what_costs_nothing_writes_no_ledger(store: RedisStore, server: Server) -> None:
    for account in Account:
        assert (await spend(store, charge=Charge(), account=account)).granted
    assert not (await spend(store, limit=Limit(0, 0, 0))).granted
    assert await spent(store) == Ledger()
    assert server.do("DBSIZE") == 66, "schema, identity and fences"
    await learn(store, record())
    assert not server.do("EXISTS", KEYS.ledger(ADA))
    assert not server.do("EXISTS", KEYS.counts(shard_of(ADA), GENERATION))


async def test_lapsed_markers_leave_nothing_behind(store: RedisStore, server: Server) -> None:
    await spend(store, marker=b"longer", marker_ttl=600)
    for number in range(20):
        await spend(store, marker=b"%d" % number, marker_ttl=1)
    await asyncio.sleep(1.1)
    await spend(store, marker=b"new", marker_ttl=600)
    assert server.do("ZCARD", KEYS.markers(ADA)) == 2
    assert await store.forget_markers(ADA) != []
    assert not server.do("EXISTS", KEYS.markers(ADA))
    await spend(store, marker=b"last", marker_ttl=1)
    await asyncio.to_thread(
        eventually, lambda: not server.do("EXISTS", KEYS.markers(ADA)), "the last to lapse"
    )
    assert server.do("EXISTS", KEYS.ledger(ADA))


async def test_unreadable_markers_grant_nothing(store: RedisStore, server: Server) -> None:
    server.do("SET", KEYS.markers(ADA), "x")
    with pytest.raises(StoreUnavailable):
        await spend(store, marker=b"m")
    assert await spent(store) == Ledger()


async def test_unreadable_sums_are_not_empty_ones(store: RedisStore, server: Server) -> None:
    await learn(store, record(blocks={OWN: [(0, 1)], BLOCK: [(0, 1)]}))
    shard = shard_of(ADA)
    server.do("SET", KEYS.own(shard, GENERATION) + ADA, "nine bytes")
    with pytest.raises(StoreUnavailable):
        await store.own(generation=GENERATION, principals=[b"other", ADA])
    server.do("APPEND", KEYS.sums(shard, GENERATION) + BLOCK, "x")
    await store.freeze(generation=GENERATION, number=1)
    with pytest.raises(StoreUnavailable):
        await store.frozen(generation=GENERATION, number=1)
    server.do("DEL", frozen_sums(KEYS.frozen(shard, GENERATION), 1) + BLOCK)
    with pytest.raises(StoreUnavailable):
        await store.frozen(generation=GENERATION, number=1)
