"""What every store promises about sums: they add up, are released once, and are erased."""

import asyncio
import random
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument, StateOverflow
from discreet.privacy.charges import Charge
from discreet.state import redis_releases
from discreet.state.stores import (
    OWN,
    ClaimOutcome,
    Learned,
    Ledger,
    OwnRow,
    Store,
    Vector,
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
    spent,
)

pytestmark = pytest.mark.anyio

MOST = 2**63 - 1
LEAST = -(2**63)
FOLD = {
    "generation": GENERATION,
    "principal": ADA,
    "before": np.ones(2, dtype=np.int64),
    "after": np.ones(1, dtype=np.int64),
}
COUNTED = Learned(ClaimOutcome.COUNTED, True, Charge(), Ledger())


async def own(store: Store, principal: bytes = ADA) -> list[int]:
    (found,) = await store.own(generation=GENERATION, principals=[principal])
    return found.tolist()


# Sums


async def test_increments_add_up_and_vectors_grow(store: Store) -> None:
    assert await learn(store, record((0, 1), (2, -5))) == COUNTED
    assert await learn(store, record((0, 1), (4, 7), (4, 1), claim=b"2", principal=BOB)) == COUNTED
    assert await learn(store, record((9, 0), claim=b"3", principal=b"third")) == COUNTED
    assert await released(store, 1) == {BLOCK: [2, 0, -5, 0, 8, 0, 0, 0, 0, 0]}


async def test_an_array_adds_to_every_field_from_the_first_on(store: Store) -> None:
    most, least = 2**31 - 1, -(2**31)
    steps = [[1, -1, most, least], [most] * 300, [-5, least], [least] * 300]
    for place, amounts in enumerate(steps):
        added = np.array(amounts, dtype=np.int32)
        blocks = {OWN: added, BLOCK: added, b"other": [(1, place)]}
        assert await learn(store, record(blocks=blocks, claim=b"%d" % place)) == COUNTED
    expected = np.zeros(300, dtype=np.int64)
    for amounts in steps:
        expected[: len(amounts)] += amounts
    assert await own(store) == expected.tolist()
    # Single fields and whole blocks are added to the same sums.
    await learn(store, record(blocks={OWN: [(2, -(2**40)), (300, 7)]}, claim=b"fields"))
    await learn(store, record(blocks={OWN: np.ones(3, dtype=np.int32)}, claim=b"again"))
    changed = expected.copy()
    changed[:3] += np.array([1, 1, 1 - 2**40])
    assert await own(store) == [*changed.tolist(), 7]
    assert (await released(store, 1))[BLOCK] == expected.tolist()
    assert (await released(store, 1))[b"other"] == [0, 6]


async def test_an_array_of_pairs_adds_to_the_fields_that_it_names(store: Store) -> None:
    most, least = 2**31 - 1, -(2**31)
    few = np.array([[3, most], [0, least], [3, 1], [70, 0]], dtype=np.int32)
    many = np.array([[place, place - 900] for place in range(2_300)], dtype=np.int32)
    for place, pairs in enumerate((few, many, few)):
        blocks = {OWN: pairs, BLOCK: pairs}
        assert await learn(store, record(blocks=blocks, claim=b"%d" % place)) == COUNTED
    expected = np.arange(2_300, dtype=np.int64) - 900
    expected[[0, 3]] += [2 * least, 2 * (most + 1)]
    assert await own(store) == expected.tolist()
    assert await released(store, 1) == {BLOCK: expected.tolist()}


def numbers(*values: int) -> Vector:
    return np.array(values, dtype=np.int64)


async def test_rows_are_kept_behind_own_sums_as_they_came(store: Store) -> None:
    rows = [numbers(2**63 - 1, -(2**63)), numbers(7), numbers(-1, 0, 1)]
    for place, row in enumerate(rows):
        blocks = {OWN: OwnRow(4, row, 0), BLOCK: [(0, 1)]}
        assert await learn(store, record(blocks=blocks, claim=b"%d" % place)) == COUNTED
    kept = [2**63 - 1, -(2**63), 7, -1, 0, 1]
    assert await own(store) == [0, 0, 0, 0, *kept]
    assert await released(store, 1) == {BLOCK: [3]}
    # Sums before them are added to as ever, and rows lie behind longer sums than were expected.
    await learn(store, record(blocks={OWN: [(1, 5)]}, claim=b"field"))
    assert await own(store) == [0, 5, 0, 0, *kept]
    await learn(store, record(blocks={OWN: [(2, 9)]}, claim=b"short", principal=BOB))
    await learn(store, record(blocks={OWN: OwnRow(5, rows[1], 0)}, claim=b"row", principal=BOB))
    assert await own(store, BOB) == [0, 0, 9, 0, 0, 7]


async def test_a_row_is_taken_back_with_what_overflows_beside_it(store: Store) -> None:
    overflowing = [(0, 2**63 - 1), (0, 1)]
    for principal in (ADA, BOB):
        blocks = {OWN: OwnRow(3, numbers(4), 0), BLOCK: overflowing}
        with pytest.raises(StateOverflow):
            await learn(store, record(blocks=blocks, principal=principal))
        assert await own(store, principal) == []
        await learn(store, record(blocks={OWN: [(0, 1)]}, claim=b"first", principal=principal))
    for principal, length in ((ADA, 1), (BOB, 3)):
        blocks = {OWN: OwnRow(length, numbers(4), 0), BLOCK: overflowing}
        with pytest.raises(StateOverflow):
            await learn(store, record(blocks=blocks, claim=b"again", principal=principal))
        assert await own(store, principal) == [1]


async def test_own_sums_are_folded_while_they_begin_as_they_were_read(store: Store) -> None:
    async def fold(before: Vector, after: Vector, generation: bytes = GENERATION) -> bool:
        return await store.fold_own(
            generation=generation, principal=ADA, before=before, after=after
        )

    assert not await fold(numbers(0), numbers(1)), "there are none"
    assert list(await store.owners(generation=GENERATION)) == []
    for place in range(3):
        row = OwnRow(2, numbers(place, place), 0)
        await learn(store, record(blocks={OWN: row}, claim=b"%d" % place))
    assert not await fold(numbers(0, 1), numbers(9))
    assert not await fold(numbers(0, 0, 0, 0, 1, 1, 2, 2, 3), numbers(9))
    assert not await fold(numbers(0, 0), numbers(9), generation=b"other")
    assert await own(store) == [0, 0, 0, 0, 1, 1, 2, 2]
    # What came after it was read stays behind it.
    assert await fold(numbers(0, 0, 0, 0, 1, 1), numbers(-(2**63), 2**63 - 1))
    assert await own(store) == [-(2**63), 2**63 - 1, 2, 2]
    assert not await fold(numbers(0, 0, 0, 0, 1, 1), numbers(8, 9)), "it is folded once"
    assert list(await store.owners(generation=GENERATION)) == [ADA]


async def test_blocks_are_apart_and_come_in_ascending_order(store: Store) -> None:
    names = [b"z", b"\x00" * 32, b"a}", b"\xff", b"1:", b"12"]
    blocks = {name: [(place, place + 1)] for place, name in enumerate(names)}
    await learn(store, record(blocks=blocks | {OWN: [(1, 9)]}))
    await learn(store, record(blocks={b"z": [(0, 1)]}, principal=BOB))
    await learn(store, record(blocks={b"z": [(0, 5)]}, generation=b"other", claim=b"2"))
    expected = {name: [0] * place + [place + 1] for place, name in enumerate(names)}
    found = await released(store, 1)
    assert found == expected | {b"z": [2]}
    assert list(found) == sorted(names)
    assert await own(store) == [0, 9]
    assert await released(store, 1, b"other") == {b"z": [5]}


async def test_a_hundred_blocks_and_thousands_of_fields(store: Store) -> None:
    wide = [(field, field - 7) for field in range(5_000)]
    many = {b"%d" % block: [(block, 1), (0, 3), (block + 1, -1)] for block in range(120)}
    await learn(store, record(blocks={b"wide": wide, OWN: wide, **many}))
    found = await released(store, 1)
    assert found.pop(b"wide") == [amount for _, amount in wide] == await own(store)
    assert {name: sum(values) for name, values in found.items()} == dict.fromkeys(many, 3)


async def test_extremes_are_exact(store: Store) -> None:
    await learn(store, record((0, MOST), (1, LEAST)))
    await learn(store, record((0, -1), (1, 1), claim=b"2"))
    assert await released(store, 1) == {BLOCK: [MOST - 1, LEAST + 1]}


async def test_what_was_read_is_native_and_cannot_be_written_to(store: Store) -> None:
    for principal in (ADA, BOB):
        await learn(store, record(principal=principal, blocks={BLOCK: [(0, 1)], OWN: [(0, 1)]}))
    await store.freeze(generation=GENERATION, number=1)
    frozen = (await store.frozen(generation=GENERATION, number=1))[BLOCK]
    (mine,) = await store.own(generation=GENERATION, principals=[ADA])
    for found in (frozen, mine):
        assert found.dtype == np.int64
        assert found.dtype.isnative
        with pytest.raises(ValueError, match="read-only"):
            found[0] = 9
    await learn(store, record(claim=b"2", blocks={OWN: [(0, 1)]}))
    assert mine.tolist() == [1]


# Releases


async def test_what_is_frozen_does_not_change_any_more(store: Store) -> None:
    await learn(store, record(claim=b"1"))
    assert await released(store, 1) == {BLOCK: [1]}
    await learn(store, record((0, 10), claim=b"2"))
    for _ in range(2):
        assert await released(store, 1) == {BLOCK: [1]}, "freezing again changes nothing"
    assert await released(store, 2) == {BLOCK: [10]}
    assert await released(store, 1) == {BLOCK: [1]}
    assert await released(store, 3) == {}
    assert await store.frozen(generation=GENERATION, number=4) == {}


async def test_numbers_may_be_left_out_and_never_come_again(store: Store) -> None:
    await learn(store, record(claim=b"1"))
    assert await released(store, 12) == {BLOCK: [1]}
    await learn(store, record(claim=b"2"))
    assert await released(store, 2) == {}
    assert await released(store, 11) == {}
    assert await released(store, 13) == {BLOCK: [1]}


async def test_discarding_takes_one_release(store: Store) -> None:
    for number in (1, 2):
        await learn(store, record((0, number), claim=b"%d" % number))
        await store.freeze(generation=GENERATION, number=number)
    await learn(store, record((0, 3), claim=b"3"))
    for _ in range(2):
        await store.discard(generation=GENERATION, number=1)
        assert await store.frozen(generation=GENERATION, number=1) == {}
    assert await released(store, 1) == {}, "a number that was discarded is not frozen again"
    assert await released(store, 2) == {BLOCK: [2]}
    assert await released(store, 3) == {BLOCK: [3]}


async def test_sums_are_added_up_over_the_shards(store: Store) -> None:
    principals = [bytes([number]) * 16 for number in range(256)]
    assert len({shard_of(each) for each in principals}) == 64
    await store.learn(
        [record((place, 1), (0, place), principal=each) for place, each in enumerate(principals)]
    )
    assert await released(store, 1) == {BLOCK: [sum(range(256)) + 1, *[1] * 255]}


async def test_feedback_that_races_with_freezing_is_in_one_release(store: Store) -> None:
    """Every record has a field of its own: it must be one in exactly one release."""
    rng = random.Random(5)
    count = 600
    releases: list[dict[bytes, list[int]]] = []

    async def give(fields: range) -> None:
        for start in range(0, len(fields), 5):
            some, who = fields[start : start + 5], bytes([rng.randrange(256)])
            found = await store.learn(
                [record((n, 1), principal=who, claim=b"%d" % n, charge=ONE) for n in some]
            )
            assert all(isinstance(each, Learned) and each.added for each in found)

    async def release() -> None:
        while not all(giver.done() for giver in givers):
            releases.append(await released(store, len(releases) + 1))
            await asyncio.sleep(0)

    givers = [asyncio.ensure_future(give(range(n * 100, n * 100 + 100))) for n in range(6)]
    await asyncio.gather(release(), *givers)
    releases.append(await released(store, len(releases) + 1))
    total = np.zeros(count, dtype=np.int64)
    for each in releases:
        values = np.array(each.get(BLOCK, []), dtype=np.int64)
        total[: len(values)] += values
    assert total.tolist() == [1] * count


# Own sums


async def test_own_sums_are_of_one_principal_and_are_not_released(store: Store) -> None:
    for principal, amount in ((BOB, 2), (ADA, 1), (b"\xff", 3)):
        await learn(store, record(principal=principal, blocks={OWN: [(1, amount)]}))
    await learn(store, record(generation=b"other", claim=b"2", blocks={OWN: [(0, 9)]}))
    assert await released(store, 1) == {}
    assert list(await store.owners(generation=GENERATION)) == sorted([ADA, BOB, b"\xff"])
    found = await store.own(generation=GENERATION, principals=[b"\xff", b"nobody", ADA, ADA, BOB])
    assert [each.tolist() for each in found] == [[0, 3], [], [0, 1], [0, 1], [0, 2]]
    assert list(await store.own(generation=GENERATION, principals=[])) == []


async def test_own_sums_are_forgotten(store: Store) -> None:
    blocks = {OWN: [(0, 1)], BLOCK: [(0, 1)]}
    for principal in (ADA, BOB):
        await learn(store, record(principal=principal, blocks=blocks))
    assert await store.forget_own(generation=GENERATION, principal=ADA)
    assert not await store.forget_own(generation=GENERATION, principal=ADA)
    assert not await store.forget_own(generation=b"other", principal=BOB)
    assert list(await store.owners(generation=GENERATION)) == [BOB]
    assert (await own(store), await own(store, BOB)) == ([], [1])
    assert await released(store, 1) == {BLOCK: [2]}
    await learn(store, record(claim=b"2", blocks=blocks))
    assert await own(store) == [1]


async def test_rows_from_before_own_sums_were_forgotten_are_not_put_there(store: Store) -> None:
    def row(claim: bytes, moment: int, **changes: Any) -> Any:
        blocks = {OWN: OwnRow(1, numbers(4), moment), BLOCK: [(0, 1)]}
        return record(blocks=blocks, claim=claim, charge=ONE, **changes)

    before, after = 0, 2**40
    assert (await learn(store, row(b"1", before))).added
    await store.forget_own(generation=GENERATION, principal=ADA)
    late = Learned(ClaimOutcome.COUNTED, False, Charge(), await spent(store))
    # Also a record that was counted; and nothing is claimed, so that no other reward contradicts.
    for again in (row(b"1", before), row(b"2", before), row(b"2", before, reward=0)):
        assert await learn(store, again) == late
    assert await own(store) == []
    for other in ({"principal": BOB}, {"generation": b"other"}):
        assert (await learn(store, row(b"3", before, **other))).added
    assert (await learn(store, row(b"4", after))).added
    assert await own(store) == [0, 4]
    assert await released(store, 1) == {BLOCK: [3]}
    # With everything else of a recommender it is erased as well.
    await store.erase_sums(generation=GENERATION)
    assert (await learn(store, row(b"5", before))).added


async def test_erasing_takes_all_sums_of_one_recommender(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ledgers and claims stay; a part at a time, so that nobody else waits."""
    monkeypatch.setattr(redis_releases, "BLOCKS_AT_ONCE", 3)
    blocks: dict[bytes, list[tuple[int, int]]] = {b"%d" % n: [(0, 1)] for n in range(10)}
    for number in (1, 2, 3):
        many = [
            record(
                principal=who, claim=b"%d" % number, blocks={**blocks, OWN: [(0, 1)]}, charge=ONE
            )
            for who in (ADA, BOB, ADA[:-1])
        ]
        await store.learn(many)
        if number < 3:
            await store.freeze(generation=GENERATION, number=number)
    await learn(store, record(generation=b"other", claim=b"9", blocks={OWN: [(0, 7)], **blocks}))
    for _ in range(2):
        await store.erase_sums(generation=GENERATION)
    assert list(await store.owners(generation=GENERATION)) == []
    assert await own(store) == []
    for number in (1, 2):
        assert await store.frozen(generation=GENERATION, number=number) == {}
    assert (await spent(store)).feedback == Charge(300, 15, 3)
    assert (await learn(store, record(claim=b"3"))).claim is ClaimOutcome.DUPLICATE
    assert (await learn(store, record(claim=b"4", charge=ONE))).price == ONE
    assert await released(store, 1) == {BLOCK: [1]}, "the numbers begin again"
    assert (await released(store, 1, b"other")).keys() == blocks.keys()
    assert list(await store.owners(generation=b"other")) == [ADA]


# What is refused


@shared
async def test_sums_whose_total_leaves_64_bits_are_an_error(place: Place) -> None:
    """Each shard holds its part; only the whole is too large."""
    many = [record((1, MOST), principal=b"a"), record((1, 1), (3, 1), principal=b"b")]
    assert list(await place.store.learn(many)) == [COUNTED, COUNTED]
    await place.store.freeze(generation=GENERATION, number=1)
    with pytest.raises(StateOverflow):
        await place.store.frozen(generation=GENERATION, number=1)


@pytest.mark.parametrize(
    ("method", "arguments", "culprit"),
    [
        ("freeze", {"generation": b"", "number": 1}, "generation"),
        ("freeze", {"generation": GENERATION, "number": 0}, "number"),
        ("freeze", {"generation": GENERATION, "number": True}, "number"),
        ("freeze", {"generation": GENERATION, "number": 2**53}, "number"),
        ("frozen", {"generation": GENERATION, "number": -1}, "number"),
        ("discard", {"generation": b"", "number": 1}, "generation"),
        ("own", {"generation": b"", "principals": [ADA]}, "generation"),
        ("own", {"generation": GENERATION, "principals": [b""]}, "principals"),
        ("owners", {"generation": b""}, "generation"),
        ("forget_own", {"generation": GENERATION, "principal": b""}, "principal"),
        ("fold_own", FOLD | {"principal": b""}, "principal"),
        ("fold_own", FOLD | {"generation": b""}, "generation"),
        ("fold_own", FOLD | {"before": np.zeros(0, dtype=np.int64)}, "before"),
        ("fold_own", FOLD | {"before": np.zeros(1)}, "before"),
        ("fold_own", FOLD | {"after": np.zeros((1, 1), dtype=np.int64)}, "after"),
        ("erase_sums", {"generation": "text"}, "generation"),
    ],
)
async def test_bad_arguments_are_named_at_the_call(
    store: Store, method: str, arguments: dict[str, Any], culprit: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        getattr(store, method)(**arguments)
    assert caught.value.argument == culprit
