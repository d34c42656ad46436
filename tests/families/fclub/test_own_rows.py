"""Observations behind own sums: added up or not, they come to the same."""

import tracemalloc

import numpy as np
import numpy.typing as npt
import pytest

from discreet.families.fclub.features import coordinates, decoded
from discreet.families.fclub.own_rows import MOST, NOTED, FoldingRead, OwnEncoding
from discreet.families.fclub.sums import SumsEncoding
from discreet.state.memory import MemoryStore
from discreet.state.stores import OWN, FeedbackRecord, OwnRow, Vector

GENERATION = b"g" * 8
ADA, BOB = b"a" * 16, b"b" * 16


def some_steps(count: int, dimensions: int, seed: int = 0) -> npt.NDArray[np.int16]:
    drawn = np.random.default_rng(seed).normal(size=(count, dimensions))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return np.array(
        [coordinates(one, dimensions=dimensions, scale=True, field="x") for one in drawn.tolist()],
        dtype=np.int16,
    ).reshape(count, dimensions)


def some_rewards(count: int) -> npt.NDArray[np.float64]:
    return np.random.default_rng(1).choice([0.0, 1.0, 0.3, 1 / 3], size=count)


def behind(head: list[int], rows: list[OwnRow]) -> Vector:
    return np.concatenate([np.array(head, dtype=np.int64), *(row.numbers for row in rows)])


@pytest.mark.parametrize("dimensions", [1, 4, 7, 40])
@pytest.mark.parametrize("count", [0, 1, MOST, MOST + 1, 3 * MOST + 1])
def test_rows_add_what_observations_add_to_the_bit(
    monkeypatch: pytest.MonkeyPatch, dimensions: int, count: int
) -> None:
    monkeypatch.setattr("discreet.families.fclub.own_rows._AT_ONCE", MOST)
    encoding = SumsEncoding(dimensions=dimensions, baseline=0.3)
    own = OwnEncoding(encoding)
    steps, rewards = some_steps(count, dimensions), some_rewards(count)
    expected = np.zeros(own.head, dtype=np.int64)
    expected[:-NOTED] = encoding.observations(decoded(steps), rewards).sum(axis=0)
    rng = np.random.default_rng(2)
    head = rng.integers(-(2**40), 2**40, encoding.fields + NOTED)
    vector = behind(head.tolist(), own.rows(steps, rewards, [0] * len(steps)))
    assert own.waiting(vector) == count
    everybody = own.steps([np.zeros(0, dtype=np.int64), vector, head])
    assert not everybody[0].any()
    assert everybody[1].tolist() == (head + expected).tolist()
    assert everybody[2].tolist() == head.tolist()
    assert own.folded(vector).tolist() == everybody[1].tolist()
    sums, known = own.sums([vector]), encoding.sums(everybody[1][: encoding.fields])
    assert sums.count.tolist() == [known.count]
    assert sums.gram[0].tolist() == known.gram.tolist()
    assert sums.moment[0] == pytest.approx(known.moment, rel=1e-12)


def test_sums_that_are_shorter_than_the_head_have_no_rows() -> None:
    own = OwnEncoding(SumsEncoding(dimensions=2))
    few = np.array([3, 1, 2], dtype=np.int64)
    assert own.waiting(few) == 0
    assert (own.count(few), own.count(few[:0])) == (3, 0)
    assert own.steps([few]).tolist() == [[3, 1, 2, *[0] * (own.head - 3)]]
    assert own.steps([]).shape == (0, own.head)


def test_somebody_with_many_rows_takes_no_room_for_everybody_else() -> None:
    own = OwnEncoding(SumsEncoding(dimensions=8))
    many = behind([0] * own.head, own.rows(some_steps(2_000, 8), some_rewards(2_000), [0] * 2_000))
    everybody = [many, *[many[: own.head]] * 199]
    tracemalloc.start()
    try:
        steps = own.steps(everybody)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert steps[0, 0] == 2_000
    # Room for 2,000 rows of each of 200 would be 10 MB of rows alone, and twice that of features.
    assert peak < 5_000_000


async def told(store: MemoryStore, own: OwnEncoding, principal: bytes, count: int) -> None:
    rows = own.rows(some_steps(count, 2, seed=count), some_rewards(count), [2**40] * count)
    records = [
        FeedbackRecord(
            principal=principal,
            generation=GENERATION,
            claim=b"%d of %d" % (place, count),
            reward=0,
            claim_ttl=60,
            increments={OWN: row},
        )
        for place, row in enumerate(rows)
    ]
    await store.learn(records)


@pytest.mark.anyio
async def test_reading_folds_those_behind_whom_many_rows_wait() -> None:
    store, own = MemoryStore(), OwnEncoding(SumsEncoding(dimensions=2))
    await told(store, own, ADA, MOST)
    await told(store, own, BOB, MOST - 1)
    read = FoldingRead(own, store, GENERATION, [ADA, BOB, ADA])
    await told(store, own, ADA, 2)
    before = await read
    assert [own.waiting(one) for one in before] == [MOST, MOST - 1, MOST]
    after = await FoldingRead(own, store, GENERATION, [ADA, BOB])
    assert [own.waiting(one) for one in after] == [2, MOST - 1], "what came meanwhile stays behind"
    assert own.steps(after)[:, 0].tolist() == [MOST + 2, MOST - 1]
    assert [own.count(one) for one in (*before, *after)] == [
        *(MOST, MOST - 1, MOST),
        *(MOST + 2, MOST - 1),
    ]


@pytest.mark.anyio
async def test_nothing_comes_back_that_was_erased_meanwhile() -> None:
    store, own = MemoryStore(), OwnEncoding(SumsEncoding(dimensions=2))
    await told(store, own, ADA, MOST)
    read = FoldingRead(own, store, GENERATION, [ADA])
    await store.forget_own(generation=GENERATION, principal=ADA)
    await told(store, own, ADA, MOST + 1)
    await read
    (after,) = await store.own(generation=GENERATION, principals=[ADA])
    assert own.steps([after])[0, 0] == MOST + 1
