"""Debits that are alike travel in one call; in a cluster each shard has its own."""

from collections.abc import Sequence

import pytest

from discreet.errors import DiscreetError, InvalidArgument
from discreet.privacy.charges import Charge, Limit
from discreet.state.debits import MOST_TOGETHER, debit_calls
from discreet.state.fence import StoreFence
from discreet.state.keys import StoreKeys
from discreet.state.redis_commands import FencedCall
from discreet.state.redis_store import RedisStore
from discreet.state.stores import Account, Debit, OpenDecision
from tests.state.servers import Server

pytestmark = pytest.mark.anyio

KEYS = StoreKeys()
PEOPLE = [bytes([number]) * 16 for number in range(200)]
ONE = Charge(1, 1, 0)


def calls(debits: Sequence[Debit], *, one_server: bool = True) -> list[FencedCall]:
    fence = StoreFence(KEYS)
    fence.marks.adopt(b"identity", [0] * 64)
    return debit_calls(debits, KEYS, fence, one_server=one_server)


def test_alike_go_together_whatever_their_shards() -> None:
    (call,) = calls([Debit(each, ONE, marker=b"m" + each) for each in PEOPLE[:40]])
    assert call.entries == 40
    assert list(call.shards) == list(range(40))
    assert call.command.key == KEYS.ledger(PEOPLE[0])
    assert call.command.repeatable


def test_a_call_is_of_bounded_length() -> None:
    found = calls([Debit(each, ONE) for each in PEOPLE])
    assert [call.entries for call in found] == [MOST_TOGETHER] * 3 + [200 - 3 * MOST_TOGETHER]
    assert all(len(call.shards) == min(64, call.entries) for call in found)
    assert not any(call.command.repeatable for call in found)
    assert calls([]) == []


def test_in_a_cluster_each_shard_has_its_own_call() -> None:
    debits = [Debit(each, ONE) for each in (PEOPLE[1], PEOPLE[65], PEOPLE[2], PEOPLE[1])]
    found = calls(debits, one_server=False)
    assert [(call.shards, call.entries) for call in found] == [((1,), 2), ((2,), 1), ((1,), 1)]


@pytest.mark.parametrize(
    "other",
    [
        {"charge": Charge(2, 2, 0)},
        {"limit": Limit(5, 5, 5)},
        {"account": Account.FEEDBACK},
        {"marker": b"m"},
        {"marker_ttl": 7},
        {"window": 60},
        {"purpose": b"films"},
        {"opened": OpenDecision(b"g", b"d", 1, b"c", 1.0, 10)},
    ],
)
def test_what_differs_does_not_go_together(other: dict[str, object]) -> None:
    one = Debit(PEOPLE[0], ONE)
    found = calls([one, one, one._replace(**other), one])
    assert [call.entries for call in found] == [2, 1, 1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"principal": b""},
        {"marker": b""},
        {"marker_ttl": 0},
        {"window": -1},
        {"purpose": b"x" * 200},
    ],
)
@pytest.mark.parametrize("before", [0, 1])
def test_what_no_ledger_can_take_is_refused_wherever_it_stands(
    wrong: dict[str, object], before: int
) -> None:
    one = Debit(PEOPLE[0], ONE, marker=b"m")
    with pytest.raises(InvalidArgument):
        calls([one] * before + [one._replace(**wrong)])


async def test_what_cannot_be_read_is_nobody_elses_trouble(
    store: RedisStore, server: Server
) -> None:
    server.do("SET", KEYS.ledger(PEOPLE[3]), "not a hash")
    server.do("HSET", KEYS.ledger(PEOPLE[4]), "l", "short")
    server.do("SET", KEYS.markers(PEOPLE[5]), "not a set")
    found = await store.spend([Debit(each, ONE, marker=b"m") for each in PEOPLE[:8]])
    failed = [number for number, one in enumerate(found) if isinstance(one, DiscreetError)]
    assert failed == [3, 4, 5]
    for number, ledger in enumerate(await store.ledgers([PEOPLE[n] for n in (0, 1, 2, 6, 7)])):
        assert ledger.answers == ONE, number
    assert not server.do("EXISTS", KEYS.ledger(PEOPLE[5]))


async def test_a_principal_that_comes_twice_is_debited_twice_in_order(store: RedisStore) -> None:
    limit = Limit(2, 2, 0)
    found = await store.spend([Debit(PEOPLE[0], ONE, limit)] * 3 + [Debit(PEOPLE[1], ONE, limit)])
    assert not any(isinstance(one, DiscreetError) for one in found)
    told = [(one.granted, one.ledger.answers.nano_epsilon) for one in found]  # type: ignore[union-attr]
    assert told == [(True, 1), (True, 2), (False, 2), (True, 1)]


async def test_every_debit_counts_at_the_fence_of_its_shard(
    store: RedisStore, server: Server
) -> None:
    before = [int.from_bytes(server.do("GET", KEYS.fence(n))[8:], "big") for n in (0, 1)]
    await store.spend([Debit(each, ONE) for each in (PEOPLE[0], PEOPLE[1], PEOPLE[64])])
    after = [int.from_bytes(server.do("GET", KEYS.fence(n))[8:], "big") for n in (0, 1)]
    assert [late - early for early, late in zip(before, after, strict=True)] == [2, 1]
    assert [store.fence.marks.seen(n) for n in (0, 1)] == after
