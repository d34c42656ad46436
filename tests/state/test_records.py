"""Feedback that is alike travels in one call, and each record fails by itself."""

import pytest

from discreet.errors import DiscreetError, InvalidArgument, StateOverflow
from discreet.privacy.charges import Charge, Limit
from discreet.state.debits import MOST_TOGETHER
from discreet.state.fence import StoreFence
from discreet.state.keys import StoreKeys
from discreet.state.records import record_calls
from discreet.state.redis_commands import FencedCall
from discreet.state.redis_store import RedisStore
from discreet.state.stores import OWN, ClaimOutcome, FeedbackRecord, Learned
from tests.state.places import BLOCK, GENERATION, ONE, record, released
from tests.state.servers import Server

pytestmark = pytest.mark.anyio

KEYS = StoreKeys()
PEOPLE = [bytes([number]) * 16 for number in range(200)]


def calls(records: list[FeedbackRecord], *, one_server: bool = True) -> list[FencedCall]:
    fence = StoreFence(KEYS)
    fence.marks.adopt(b"identity", [0] * 64)
    return record_calls(records, KEYS, fence, one_server=one_server)


def test_alike_go_together_whatever_their_shards_rewards_and_blocks() -> None:
    records = [
        record((0, number), principal=each, claim=b"%d" % number, ttl=number + 1)
        for number, each in enumerate(PEOPLE[:40])
    ]
    (call,) = calls(records)
    assert (call.entries, len(call.shards)) == (40, 40)
    assert call.command.repeatable
    assert len(calls([records[0]] * (MOST_TOGETHER + 1))) == 2
    assert len(calls(records, one_server=False)) == 40
    assert calls([]) == []


def test_a_call_keeps_the_store_no_longer_however_many_amounts_records_have() -> None:
    wide = record(*((field, 1) for field in range(400)))
    counts = [call.entries for call in calls([record(), *[wide] * 10, record()])]
    assert counts == [5, 4, 3]
    assert len(calls([wide._replace(increments={BLOCK: [(0, 1)] * 9_000})])) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"generation": b"another"},
        {"charge": ONE},
        {"limit": Limit(1, 1, 1)},
        {"window": 60},
        {"purpose": b"films"},
        {"awaited": b"c", "claim": b"c\0\0"},
    ],
)
def test_what_differs_does_not_go_together(other: dict[str, object]) -> None:
    one = record()
    assert [call.entries for call in calls([one, one._replace(**other), one, one])] == [1, 1, 2]


def test_what_cannot_be_added_is_refused_wherever_it_stands() -> None:
    with pytest.raises(InvalidArgument):
        calls([record(), record()._replace(increments={})])


async def test_records_of_one_call_are_learned_from_each_by_itself(
    store: RedisStore, server: Server
) -> None:
    """Several blocks each, of several lengths; what cannot be read, overflows or is refused is
    nobody else's trouble."""
    records = [
        record(
            principal=each,
            claim=b"%d" % number,
            blocks={BLOCK: [(number % 3, 1)], b"other": [(0, 2), (5, 3)], OWN: [(1, number)]},
            charge=ONE,
            limit=Limit(5, 5, 5),
        )
        for number, each in enumerate(PEOPLE[:20])
    ]
    server.do("SET", KEYS.ledger(PEOPLE[3]), "not a hash")
    server.do("HSET", KEYS.claim(PEOPLE[4], b"4"), "not", "a string")
    server.do("SET", KEYS.counts(5, GENERATION), "not a hash")
    server.do("SET", KEYS.sums(6, GENERATION), "not a set")
    server.do("SET", KEYS.sums(7, GENERATION) + BLOCK, "nine bytes")
    records[8] = records[8]._replace(
        increments={BLOCK: [(0, 2**63 - 1)], b"other": [(0, 2**63 - 1), (0, 2**63 - 1)]}
    )
    found = await store.learn(records)
    failed = [number for number, one in enumerate(found) if isinstance(one, DiscreetError)]
    assert failed == [3, 4, 5, 6, 7, 8]
    assert isinstance(found[8], StateOverflow)
    for one in found[9:]:
        assert isinstance(one, Learned)
        assert (one.claim, one.added, one.price) == (ClaimOutcome.COUNTED, True, ONE)
        assert one.ledger.feedback == ONE
    again = await store.learn(records[9:])
    outcomes = {one.claim for one in again if isinstance(one, Learned)}
    assert outcomes == {ClaimOutcome.DUPLICATE}
    for shard in (6, 7):
        server.do("DEL", KEYS.sums(shard, GENERATION), KEYS.sums(shard, GENERATION) + BLOCK)
    sums = await released(store, 1)
    assert sums[b"other"][0] == 2 * 14
    assert sums[b"other"][5] == 3 * 14
    assert sum(sums[BLOCK]) == 14


async def test_records_of_one_principal_cost_more_each_time(store: RedisStore) -> None:
    dear = Limit(100, 100, 100)
    records = [
        record(principal=PEOPLE[0], claim=b"%d" % number, charge=Charge(1, 1, 0), limit=dear)
        for number in range(3)
    ]
    found = await store.learn(records)
    assert [one.price.nano_rho for one in found if isinstance(one, Learned)] == [1, 3, 5]
    refused = await store.learn(
        [record(principal=PEOPLE[0], claim=b"x", charge=Charge(1, 1, 0), limit=Limit(3, 9, 0))] * 2
    )
    told = [(one.claim, one.added) for one in refused if isinstance(one, Learned)]
    assert told == [(ClaimOutcome.COUNTED, False), (ClaimOutcome.DUPLICATE, False)]
