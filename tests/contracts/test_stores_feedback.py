"""What every store promises about feedback: claimed once, paid for, added all or not at all."""

import itertools
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from discreet.errors import DiscreetError, InvalidArgument, StateOverflow, StoreUnavailable
from discreet.privacy.charges import NEVER, UNLIMITED, Charge, Limit
from discreet.state.keys import StoreKeys
from discreet.state.stores import (
    EXACT,
    OWN,
    Account,
    ClaimOutcome,
    FeedbackRecord,
    Learned,
    Ledger,
    OwnRow,
    Store,
    shard_of,
)
from tests.state.places import (
    ADA,
    BLOCK,
    BOB,
    GENERATION,
    ONE,
    Place,
    learn,
    record,
    released,
    shared,
    spend,
    spent,
)

pytestmark = pytest.mark.anyio

MOST = 2**63 - 1
LEAST = -(2**63)
FREE = Charge()
COUNTED = Learned(ClaimOutcome.COUNTED, True, FREE, Ledger())
DUPLICATE = Learned(ClaimOutcome.DUPLICATE, True, FREE, Ledger())
CONFLICT = Learned(ClaimOutcome.CONFLICT, True, FREE, Ledger())


async def own(store: Store, principal: bytes = ADA) -> list[int]:
    (found,) = await store.own(generation=GENERATION, principals=[principal])
    return found.tolist()


# Claims


async def test_feedback_counts_once(store: Store) -> None:
    assert list(await store.learn([])) == []
    assert await learn(store, record(reward=5)) == COUNTED
    assert await learn(store, record(reward=5)) == DUPLICATE
    assert await learn(store, record(reward=-5)) == CONFLICT
    assert await learn(store, record(reward=5)) == DUPLICATE
    assert await released(store, 1) == {BLOCK: [1]}


async def test_claims_are_of_one_principal_and_outlive_a_freeze(store: Store) -> None:
    claims = [b"1", b"2", b"}", b"\r\n", b"1" * 128]
    many = [record(principal=who, claim=claim) for who in (b"a", b"b", b"a1") for claim in claims]
    assert list(await store.learn(many)) == [COUNTED] * 15
    assert await released(store, 1) == {BLOCK: [15]}
    assert list(await store.learn(many)) == [DUPLICATE] * 15
    assert await released(store, 2) == {}


async def test_parallel_feedback_counts_once(store: Store) -> None:
    attempts = [store.learn([record((0, 1), reward=each)]) for each in (3, 3, 4) * 20]
    outcomes = Counter([each.claim for attempt in attempts for each in await attempt])  # type: ignore[union-attr]
    assert outcomes == {
        ClaimOutcome.COUNTED: 1,
        ClaimOutcome.DUPLICATE: 39,
        ClaimOutcome.CONFLICT: 20,
    }
    assert await released(store, 1) == {BLOCK: [1]}


async def test_a_claim_lapses(place: Place) -> None:
    brief, long = record(claim=b"brief", ttl=1), record(claim=b"long")
    await place.store.learn([brief, long])
    await place.elapse(1.2)
    assert list(await place.store.learn([brief, long])) == [COUNTED, DUPLICATE]


# Prices


def charged(*records: int) -> Ledger:
    """Return the ledger after so many records of `ONE` in each of several releases."""
    total = sum(records)
    return Ledger(feedback=Charge(100 * total, 5 * sum(n * n for n in records), total))


async def test_the_nth_record_of_a_release_costs_2n_minus_1_times_the_rho(store: Store) -> None:
    found = await store.learn([record(claim=b"%d" % n, charge=ONE) for n in range(5)])
    prices = [Charge(100, 5 * (2 * n - 1), 1) for n in range(1, 6)]
    assert list(found) == [
        Learned(ClaimOutcome.COUNTED, True, price, charged(n)) for n, price in enumerate(prices, 1)
    ]
    assert await spent(store) == charged(5)
    assert (await learn(store, record(claim=b"4", charge=ONE))).price == FREE, "a duplicate is free"


async def test_records_are_counted_by_principal_and_release_and_recommender(store: Store) -> None:
    async def price(claim: bytes, principal: bytes = ADA, generation: bytes = GENERATION) -> int:
        one = record(principal=principal, claim=claim, generation=generation, charge=ONE)
        return (await learn(store, one)).price.nano_rho

    assert [await price(claim) for claim in (b"1", b"2")] == [5, 15]
    assert await price(b"1", BOB) == 5
    assert await price(b"3", ADA, b"other") == 5
    await store.freeze(generation=GENERATION, number=1)
    assert [await price(claim) for claim in (b"4", b"5")] == [5, 15]
    assert await price(b"6", ADA, b"other") == 15
    await store.freeze(generation=GENERATION, number=1)
    assert await price(b"7") == 25, "freezing again for the same release begins no new count"
    assert await spent(store) == charged(2, 3, 2)


async def test_what_is_free_is_neither_counted_nor_limited(store: Store) -> None:
    never = Limit(NEVER, NEVER, 0)
    assert await learn(store, record(claim=b"1", limit=never)) == COUNTED
    assert (await learn(store, record(claim=b"2", charge=ONE))).price == ONE
    assert (await learn(store, record(claim=b"3", limit=never))).price == FREE
    assert (await learn(store, record(claim=b"4", charge=ONE))).price.nano_rho == 15


async def test_feedback_that_does_not_fit_is_claimed_and_not_added(store: Store) -> None:
    """Two records cost rho 20; the budget of answers is not touched, and does not help."""
    limit = Limit(NEVER, 20)
    await spend(store)
    many = [record(claim=b"%d" % n, charge=ONE, limit=limit) for n in range(3)]
    *_, refused = await store.learn(many)
    ledger = charged(2)._replace(answers=ONE)
    assert refused == Learned(ClaimOutcome.COUNTED, False, FREE, ledger)
    free = record(claim=b"2", reward=1)
    assert await learn(store, free) == Learned(ClaimOutcome.DUPLICATE, False, FREE, ledger)
    other = record(claim=b"2", reward=2, charge=ONE)
    assert await learn(store, other) == Learned(ClaimOutcome.CONFLICT, False, FREE, ledger)
    assert await released(store, 1) == {BLOCK: [2]}
    assert await spent(store) == ledger


@pytest.mark.parametrize(
    ("limit", "added"),
    [
        (Limit(200, NEVER), 2),
        (Limit(NEVER, 45), 3),
        (Limit(200, 45), 3),
        (Limit(500, 20), 5),
        (Limit(500, 20, 4), 4),
        (Limit(NEVER, NEVER), 0),
        (Limit(99, 4), 0),
    ],
)
async def test_either_rule_admits_feedback(store: Store, limit: Limit, added: int) -> None:
    found = await store.learn(
        [record(claim=b"%d" % n, charge=ONE, limit=limit, blocks={OWN: [(0, 1)]}) for n in range(8)]
    )
    assert [one.added for one in found if isinstance(one, Learned)] == [n < added for n in range(8)]
    assert await own(store) == [added] * (added > 0)
    assert await spent(store) == charged(added)


async def test_exact_feedback_is_booked_as_unlimited(store: Store) -> None:
    assert (await learn(store, record(charge=EXACT))).price == EXACT
    assert (await learn(store, record(claim=b"2", charge=EXACT))).price == EXACT
    assert (await spent(store)).feedback == EXACT
    limit = Limit(UNLIMITED - 1, UNLIMITED - 1)
    assert not (await learn(store, record(claim=b"3", charge=ONE, limit=limit))).added


async def test_prices_saturate_and_are_exact_below(store: Store) -> None:
    rho = UNLIMITED // 3
    prices = [
        (await learn(store, record(claim=b"%d" % n, charge=Charge(0, rho)))).price.nano_rho
        for n in range(3)
    ]
    assert prices == [rho, 3 * rho, UNLIMITED]
    assert (await spent(store)).feedback == Charge(0, UNLIMITED)


async def test_a_budget_is_exact_under_concurrency(store: Store) -> None:
    """7 records cost 49 times the first, which is the whole budget."""
    limit = Limit(NEVER, 49 * 5)
    attempts = [store.learn([record(claim=b"%d" % n, charge=ONE, limit=limit)]) for n in range(60)]
    found = [each for attempt in attempts for each in await attempt]
    assert sum(isinstance(each, Learned) and each.added for each in found) == 7
    assert await spent(store) == charged(7)
    assert await released(store, 1) == {BLOCK: [7]}


async def test_feedback_never_touches_the_budget_of_answers(store: Store) -> None:
    await spend(store, limit=Limit(100, NEVER))
    await learn(store, record(charge=ONE, limit=Limit(100, NEVER)))
    assert await spent(store) == Ledger(ONE, ONE)
    assert not (await spend(store, limit=Limit(100, NEVER))).granted
    assert not (await spend(store, limit=Limit(100, NEVER), account=Account.FEEDBACK)).granted


# Overflow


@pytest.mark.parametrize(("start", "step"), [(MOST, 1), (LEAST, -1), (MOST, MOST), (LEAST, LEAST)])
async def test_an_overflow_adds_charges_and_claims_nothing(
    store: Store, start: int, step: int
) -> None:
    """The increments before it, in other blocks and in this one, are taken back to the byte."""
    first = {b"a": [(0, 1)], b"b": [(1, start)], OWN: [(0, LEAST)]}
    await learn(store, record(claim=b"start", blocks=first))
    blocks = {
        b"a": [(0, MOST - 1), (7, -3), (2, LEAST)],
        OWN: [(0, MOST), (0, 0), (3, 1)],
        b"fresh": [(2, 5)],
        b"b": [(0, 1), (1, step), (9, 1), (2, 0)],
        b"never": [(0, 1)],
    }
    overflowing = record(blocks=blocks, charge=ONE)
    with pytest.raises(StateOverflow):
        await learn(store, overflowing)
    assert await spent(store) == Ledger()
    again = overflowing._replace(increments={b"a": [(0, 1)]})
    assert await learn(store, again) == Learned(
        ClaimOutcome.COUNTED, True, ONE, Ledger(feedback=ONE)
    )
    assert await own(store) == [LEAST]
    assert await released(store, 1) == {b"a": [2], b"b": [0, start]}


def row_of(*amounts: int, first: int = 0) -> list[tuple[int, int]]:
    return [(first + place, amount) for place, amount in enumerate(amounts)]


async def test_many_fields_in_a_row_add_up_as_single_ones_do(store: Store) -> None:
    """They take another way through the store, in rows with and without what came one by one."""
    rng = random.Random(5)
    expected = [0] * 700
    for number in range(12):
        first = rng.choice((0, 3, 299))
        amounts = [rng.randint(-(2**20), 2**20) for _ in range(rng.choice((5, 100, 400)))]
        row = [pair for pair in row_of(*amounts, first=first) if pair[1] % 5]
        await learn(store, record(claim=b"%d" % number, blocks={b"a": row, OWN: row}))
        for field, amount in row:
            expected[field] += amount
    (own,) = await store.own(generation=GENERATION, principals=[ADA])
    found = (await released(store, 1))[b"a"]
    assert found == own.tolist()
    assert found + [0] * (700 - len(found)) == expected


@pytest.mark.parametrize("start", [2**53 - 10, 2**60, -(2**53) + 10, 2**63 - 1_000])
async def test_large_sums_stay_exact_in_a_row(store: Store, start: int) -> None:
    await learn(store, record(blocks={b"a": [(50, start), (51, 1)]}))
    row = row_of(*range(-70, 30))
    await learn(store, record(claim=b"2", blocks={b"a": row}))
    expected = [amount + {50: start, 51: 1}.get(field, 0) for field, amount in row]
    assert await released(store, 1) == {b"a": expected}


async def test_a_row_that_was_added_is_taken_back(store: Store) -> None:
    """Beside a block that overflows: what was there before is there after, byte for byte."""
    row = row_of(*range(1, 101))
    await learn(store, record(blocks={b"a": row[:40], b"z": [(5, 2**63 - 3)]}))
    before = {b"a": [amount for _, amount in row[:40]], b"z": [0, 0, 0, 0, 0, 2**63 - 3]}
    for overflowing in ([(5, 3)], row_of(*range(50))):
        blocks = {b"a": row, b"new": row, b"z": overflowing}
        with pytest.raises(StateOverflow):
            await learn(store, record(claim=b"2", blocks=blocks))
    assert await released(store, 1) == before


@pytest.mark.parametrize(("start", "step"), [(MOST, 1), (LEAST, -1), (MOST - 5, 6)])
async def test_an_overflow_of_a_whole_block_adds_nothing(
    store: Store, start: int, step: int
) -> None:
    await learn(store, record(claim=b"start", blocks={OWN: [(1, start)], b"a": [(0, 1)]}))
    whole = np.array([1, step], dtype=np.int32)
    pairs = np.array([[0, 7], [1, step], [9, -7]], dtype=np.int32)
    for blocks in (
        {b"a": [(0, 1)], OWN: whole, b"b": [(0, 1)]},
        {b"fresh": whole, b"a": [(1, LEAST), (1, -1)]},
        {b"a": pairs, OWN: pairs, b"b": pairs},
        {b"fresh": pairs, b"a": [(1, LEAST), (1, -1)]},
    ):
        with pytest.raises(StateOverflow):
            await learn(store, record(blocks=blocks, charge=ONE))
    assert await spent(store) == Ledger()
    assert await own(store) == [0, start]
    assert await released(store, 1) == {b"a": [1]}


async def test_an_overflow_leaves_no_block_and_no_owner(store: Store) -> None:
    for blocks in ({BLOCK: [(3, MOST), (3, 1)]}, {OWN: [(0, 1)], BLOCK: [(0, LEAST), (0, -1)]}):
        with pytest.raises(StateOverflow):
            await learn(store, record(blocks=blocks))
    assert list(await store.owners(generation=GENERATION)) == []
    assert not await store.forget_own(generation=GENERATION, principal=ADA)
    assert await released(store, 1) == {}


async def test_an_overflow_in_the_last_of_thousands_of_fields_undoes_the_first(
    store: Store,
) -> None:
    await learn(store, record((4_999, MOST), claim=b"start"))
    with pytest.raises(StateOverflow):
        await learn(store, record(*[(field, field - 3) for field in range(5_000)]))
    assert await released(store, 1) == {BLOCK: [0] * 4_999 + [MOST]}


# Many at once


async def test_learning_many_equals_learning_one_by_one(store: Store) -> None:
    rng = random.Random(3)

    def one() -> FeedbackRecord:
        blocks = {
            rng.choice([OWN, b"a", b"b"]): [
                (rng.randrange(4), rng.choice([1, -3, 0, MOST])) for _ in range(rng.randrange(1, 4))
            ]
            for _ in range(2)
        }
        return record(
            claim=b"%d" % rng.randrange(60),
            reward=rng.randrange(2),
            blocks=blocks,
            charge=rng.choice([FREE, ONE]),
            limit=rng.choice([Limit(), Limit(NEVER, 200)]),
        )

    many = [one() for _ in range(150)]
    together = await store.learn(many)
    alone = [
        (await store.learn([each._replace(generation=b"g", principal=BOB)]))[0] for each in many
    ]
    assert plainly(together) == plainly(alone)
    kinds = {(each.claim, each.added) if isinstance(each, Learned) else each for each in together}
    assert {kind for kind in kinds if isinstance(kind, tuple)} == {
        *itertools.product(
            (ClaimOutcome.COUNTED, ClaimOutcome.DUPLICATE, ClaimOutcome.CONFLICT), (True, False)
        )
    }
    assert StateOverflow in plainly(together), "the table lacks an outcome: it shows too little"
    assert await released(store, 1) == await released(store, 1, b"g")


def plainly(outcomes: Any) -> list[Any]:
    """Errors are compared by their kind."""
    return [type(each) if isinstance(each, DiscreetError) else each for each in outcomes]


# What cannot be read, and what is refused


@shared
@pytest.mark.parametrize("content", [b"x" * 7, b"nine bytes", None])
async def test_an_unreadable_block_learns_nothing_and_the_others_do(
    place: Place, server: Any, content: bytes | None
) -> None:
    keys, shard = StoreKeys(place.namespace), shard_of(ADA)
    key = keys.sums(shard, GENERATION) + b"bad"
    if content is None:
        server.rpush(key, "x")
    else:
        server.set(key, content)
    before = server.dump(key)
    bad = record(claim=b"bad", blocks={b"good": [(0, 5)], b"bad": [(0, 1)]}, charge=ONE)
    found = await place.store.learn([record(claim=b"1"), bad, record(claim=b"2")])
    assert (found[0], found[2]) == (COUNTED, COUNTED)
    assert isinstance(found[1], StoreUnavailable)
    assert server.dump(key) == before
    assert not server.exists(keys.claim(ADA, b"bad"))
    assert await spent(place.store) == Ledger()
    assert await released(place.store, 1) == {BLOCK: [2]}


@shared
@pytest.mark.parametrize("part", ["sums", "own", "counts"])
async def test_an_unreadable_index_learns_nothing(place: Place, server: Any, part: str) -> None:
    keys = StoreKeys(place.namespace)
    key = getattr(keys, part)(shard_of(ADA), GENERATION)
    server.set(key, "x")
    blocks = {OWN: [(0, 1)], b"a": [(0, 1)]}
    (found,) = await place.store.learn([record(blocks=blocks, charge=ONE)])
    assert isinstance(found, StoreUnavailable)
    assert await spent(place.store) == Ledger()
    assert not server.exists(keys.claim(ADA, b"claim"))
    assert not server.exists(keys.sums(shard_of(ADA), GENERATION) + b"a")
    assert not server.exists(keys.own(shard_of(ADA), GENERATION) + ADA)


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        ({"principal": b""}, "principal"),
        ({"generation": b""}, "generation"),
        ({"generation": b"x" * 129}, "generation"),
        ({"claim": b""}, "claim"),
        ({"reward": True}, "reward"),
        ({"reward": 2**63}, "reward"),
        ({"claim_ttl": 0}, "claim_ttl"),
        ({"increments": {}}, "increments"),
        ({"increments": {b"b": []}}, "increments"),
        ({"increments": {b"b" * 33: [(0, 1)]}}, "increments"),
        ({"increments": {"b": [(0, 1)]}}, "increments"),
        ({"increments": {b"b": [(-1, 1)]}}, "increments"),
        ({"increments": {b"b": [(2**20, 1)]}}, "increments"),
        ({"increments": {b"b": [(0, 2**63)]}}, "increments"),
        ({"increments": {b"b": [(0, 0.5)]}}, "increments"),
        ({"increments": {b"b": np.zeros(0, dtype=np.int32)}}, "increments"),
        ({"increments": {b"b": np.zeros(2, dtype=np.int64)}}, "increments"),
        ({"increments": {b"b": np.zeros((2, 3), dtype=np.int32)}}, "increments"),
        ({"increments": {b"b": OwnRow(1, np.zeros(1, dtype=np.int64), 0)}}, "increments"),
        ({"increments": {OWN: OwnRow(0, np.zeros(1, dtype=np.int64), 0)}}, "increments"),
        ({"increments": {OWN: OwnRow(1, np.zeros(0, dtype=np.int64), 0)}}, "increments"),
        ({"increments": {OWN: OwnRow(1, np.zeros(1, dtype=np.int32), 0)}}, "increments"),
        ({"increments": {OWN: OwnRow(1, np.zeros(1, dtype=np.int64), -1)}}, "increments"),
        (
            {"increments": {b"b": [(0, 1)], OWN: OwnRow(1, np.zeros(1, dtype=np.int64), 0)}},
            "increments",
        ),
        ({"increments": {b"b": np.zeros((2, 2, 1), dtype=np.int32)}}, "increments"),
        ({"increments": {b"b": np.array([[-1, 1]], dtype=np.int32)}}, "increments"),
        ({"increments": {b"b": np.array([[2**20, 1]], dtype=np.int32)}}, "increments"),
    ],
)
async def test_nothing_is_learned_beside_what_cannot_be(
    store: Store, change: dict[str, Any], culprit: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        store.learn([record(), record(claim=b"2")._replace(**change)])
    assert caught.value.argument == culprit
    assert await learn(store, record()) == COUNTED
