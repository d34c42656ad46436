"""Learning: gradients, what a record can move, noise, weights of releases, and that it learns."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.mirror_descent.learning import (
    SLICE,
    MirrorLearner,
)
from discreet.families.mirror_descent.model import MirrorModel, NodeSums, blank_sums, combined
from discreet.families.mirror_descent.sparse import (
    STEPS,
    GridRows,
    Integers,
    SparseRows,
    on_grid,
    read_rows,
)
from discreet.privacy.accountants import Budget, ZCDPAccountant
from discreet.privacy.events import ExactRelease
from discreet.research.noise import SeededNoise

LEARNER = MirrorLearner(dimension=6)


def rows_of(*features: tuple[list[int], list[float]]) -> GridRows:
    return on_grid(read_rows(features, dimension=6), bound=1.0)


def model_of(weights: Any) -> MirrorModel:
    return MirrorModel(blank_sums(len(weights)), None, np.array(weights, dtype=np.float32))


def total_of(learner: MirrorLearner, rows: GridRows, amounts: Integers) -> Integers:
    summed = np.bincount(rows.indices, weights=amounts, minlength=learner.dimension)
    return np.concatenate([[learner.count_steps * len(rows)], summed]).astype(np.int64)


def test_only_what_is_not_right_by_a_margin_teaches() -> None:
    model = model_of([2.0, -2.0, 0, 0, 0, 0])
    rows = rows_of(([0], [0.75]), ([0, 2], [0.25, 0.5]), ([1], [0.5]), ([3], [0.5]))
    assert model.margins(rows).tolist() == [1.5, 0.5, -1.0, 0.0]
    amounts = LEARNER.gradients(model, rows, np.array([1.0, 1.0, 1.0, 0.0]))
    assert (amounts / STEPS).tolist() == [0.0, 0.25, 0.5, 0.5, -0.5]


def test_blocks_of_records_add_up_to_the_vector_of_all() -> None:
    """What single records add to blocks is what a batch adds, across the borders of slices."""
    learner = MirrorLearner(dimension=3 * SLICE)
    rng = np.random.default_rng(3)
    indices = np.sort(rng.integers(0, 3 * SLICE // 4, (50, 4)) + np.arange(4) * 3 * SLICE // 4)
    indices[0, -1] = 3 * SLICE - 1
    rows = on_grid(
        SparseRows(np.arange(0, 201, 4), indices.reshape(-1), rng.normal(size=200)), bound=1.0
    )
    rewards = rng.choice([0.0, 0.3, 1.0], 50)
    model = model_of(rng.normal(size=learner.dimension))
    blocks: dict[bytes, Integers] = {}
    for added in learner.increments(model, rows, rewards):
        for block, increments in added.items():
            vector = blocks.setdefault(block, np.zeros(SLICE, dtype=np.int64))
            for field, amount in increments.tolist():
                vector[field] += amount
    assert len(blocks) == 4, "the count takes the first place, so the last feature is in a fourth"
    blocks[max(blocks)] = blocks[max(blocks)][:1]
    expected = total_of(learner, rows, learner.gradients(model, rows, rewards))
    assert (learner.summed(blocks) == expected).all()
    assert learner.increments(model, rows.take([]), np.zeros(0)) == []


def test_sums_that_were_gathered_in_smaller_blocks_are_released_with_the_others() -> None:
    """During an upgrade there are some of either kind."""
    learner = MirrorLearner(dimension=3_000)
    rows = on_grid(read_rows([([5, 2_050], [0.5, 0.5])], dimension=3_000), bound=1.0)
    (added,) = learner.increments(model_of(np.zeros(3_000)), rows, np.ones(1))
    gathered = {b"count": np.array([3 * learner.count_steps]), b"\2\0": np.array([7, 8, 9, 10])}
    for block, pairs in added.items():
        gathered[block] = np.zeros(2_052, dtype=np.int64)
        gathered[block][pairs[:, 0]] = pairs[:, 1]
    total = learner.summed(gathered)
    assert total[0] == 4 * learner.count_steps
    half = STEPS // 2
    assert {place: int(total[1 + place]) for place in np.flatnonzero(total[1:]).tolist()} == {
        5: half,
        2_048: 7,
        2_049: 8,
        2_050: 9 + half,
        2_051: 10,
    }


def test_a_record_that_teaches_nothing_is_counted() -> None:
    known = model_of([9.0, 0, 0, 0, 0, 0])
    (added,) = LEARNER.increments(known, rows_of(([0], [1.0])), np.ones(1))
    ((_, pairs),) = added.items()
    assert pairs.tolist() == [[0, LEARNER.count_steps]]


def test_a_reward_between_is_a_part_of_each_and_makes_no_record_longer() -> None:
    rows = rows_of(([0, 1], [0.6, -0.8]))
    blank = model_of([0.0] * 6)
    for reward in (0.0, 0.1, 0.3, 0.5, 0.9, 1.0):
        amounts = LEARNER.gradients(blank, rows, np.array([reward]))
        assert (amounts / STEPS).tolist() == pytest.approx(
            [0.6 * (2 * reward - 1), -0.8 * (2 * reward - 1)], abs=2 / STEPS
        )
        assert (np.abs(amounts) <= np.abs(rows.steps)).all()
    # Right by a margin for one part of it, the other part teaches still.
    sure = LEARNER.gradients(model_of([9.0, 0, 0, 0, 0, 0]), rows, np.array([0.75]))
    assert (sure / STEPS).tolist() == pytest.approx([-0.15, 0.2], abs=2 / STEPS)
    for reward in (-0.1, 1.1, math.nan):
        with pytest.raises(InvalidArgument, match="reward"):
            LEARNER.gradients(blank, rows, np.array([reward]))


@pytest.mark.parametrize("clip", [2.0**-10, 0.3, 1.0, 64.0])
def test_adding_a_record_costs_at_most_half_of_turning_it_round(clip: float) -> None:
    """In exact integers: the count's unit is as large as it may be, to a step.

    Half, because a record that is sent later is taken from one release and added to another, and
    paid for once.
    """
    steps = MirrorLearner(dimension=6, clip=clip).count_steps
    bound = (Fraction(clip) * STEPS) ** 2
    assert 2 * (bound + steps**2) <= 4 * bound
    assert 2 * (bound + (steps + 1) ** 2) > 4 * bound


def test_one_record_costs_what_its_epsilon_allows() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    accountant = ZCDPAccountant()
    charge = accountant.charge(LEARNER.event)
    assert accountant.limit(budget).admits(charge)
    assert not accountant.limit(budget).admits(charge + charge)
    assert isinstance(replace(LEARNER, epsilon=None).event, ExactRelease)
    for wrong in ({"epsilon": 0.0}, {"epsilon": math.nan}, {"delta": 0.0}):
        with pytest.raises(InvalidArgument):
            replace(LEARNER, **wrong)  # type: ignore[arg-type]


def test_every_release_has_the_noise_that_its_price_needs_and_noise_of_its_own() -> None:
    """40,000 coordinates: each deviation is within 2% but for chance 1e-7."""
    learner = MirrorLearner(dimension=40_000)
    noise, nothing = SeededNoise(1), np.zeros(40_001, dtype=np.int64)
    total = nothing + 10**9
    one = learner.release(blank_sums(40_000), total, noise)
    two = learner.release(one, total, noise)
    first = (one.gradients / one.count * STEPS - 10**9) / STEPS
    both = (two.gradients - one.gradients) / (two.count - one.count)
    second = (both * STEPS - 10**9) / STEPS
    # Two records are 2 apart, and the multiplier at (1, 1e-6) is 4.53.
    assert learner.scale == pytest.approx(9.06, abs=0.01)
    assert first.std() == pytest.approx(learner.scale, rel=0.02)
    assert second.std() == pytest.approx(learner.scale, rel=0.02)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03
    assert (first != 0).all()


def test_the_count_is_noisy() -> None:
    """2,000 releases of 100 records: the deviation within 10% but for chance 1e-9."""
    learner = MirrorLearner(dimension=1)
    noise = SeededNoise(2)
    total = np.array([100 * learner.count_steps, 0])
    counts = [learner.release(blank_sums(1), total, noise).count for _ in range(2_000)]
    assert np.mean(counts) == pytest.approx(100, abs=0.7)
    assert np.std(counts) == pytest.approx(learner.scale, rel=0.1)
    exact = replace(learner, epsilon=None).release(blank_sums(1), total, noise)
    assert exact.count == pytest.approx(100, rel=1e-6)


def test_a_release_that_hardly_anybody_is_in_adds_hardly_any_noise() -> None:
    """After 1,000 records, 50 releases of nobody leave the noise as it was, to 5%."""
    learner = MirrorLearner(dimension=20_000)
    noise = SeededNoise(3)
    busy = np.zeros(20_001, dtype=np.int64)
    busy[0] = 1_000 * learner.count_steps
    sums = learner.release(blank_sums(20_000), busy, noise)
    before = sums.theta.std()
    for _ in range(50):
        sums = learner.release(sums, np.zeros(20_001, dtype=np.int64), noise)
    assert before == pytest.approx(learner.scale, rel=0.03)
    assert sums.theta.std() / sums.count == pytest.approx(before / 1_000, rel=0.05)
    # Equal releases are simply added up: the noise grows with the root of their number.
    for _ in range(15):
        sums = learner.release(sums, busy, noise)
    assert sums.theta.std() == pytest.approx(4 * learner.scale, rel=0.2)


def test_truncation_cuts_what_noise_explains() -> None:
    learner = MirrorLearner(dimension=10_001, truncation=4.0)
    gradients = np.random.default_rng(0).normal(scale=5.0, size=10_001)
    gradients[0], gradients[1] = 100.0, -90.0
    sums = NodeSums(gradients, count=1.0, squares=1.0)
    model = learner.model(sums)
    assert model.deviation == pytest.approx(5.0, rel=0.05)
    assert model.weights[0] > 0 > model.weights[1]
    # A normal passes four deviations with probability 6.4e-5: ten or more of them with 1e-8.
    assert 2 <= model.nonzeros <= 12
    assert learner.model(blank_sums(10_001)).nonzeros == 0
    loose = replace(learner, truncation=0.0).model(sums)
    assert loose.nonzeros == 10_001
    assert loose.weights[0] == pytest.approx(100 / (1.001 + loose.deviation), rel=1e-5)


def test_where_most_features_matter_the_noise_is_what_releases_added() -> None:
    learner = MirrorLearner(dimension=2)
    sums = NodeSums(np.array([4e6, -4e6]), count=2_000.0, squares=2e6)
    model = learner.model(sums)
    assert model.deviation == pytest.approx(learner.scale * math.sqrt(2))
    assert model.nonzeros == 2
    # Mixed with three silent nodes, a quarter of everything is left, and a quarter of the noise.
    quarter = combined([(0.25, sums)])
    assert learner.model(quarter).deviation >= 0.25 * model.deviation
    assert replace(learner, epsilon=None).model(sums).deviation == 0


def test_a_model_does_not_depend_on_the_unit_of_features() -> None:
    gradients = np.random.default_rng(1).normal(size=100)
    one = MirrorLearner(dimension=100).model(NodeSums(gradients, 50.0, 50.0))
    four = MirrorLearner(dimension=100, clip=4.0).model(NodeSums(4 * gradients, 50.0, 50.0))
    assert np.allclose(one.weights, 4 * four.weights)


def test_it_learns_what_matters() -> None:
    """Features 0 and 1 decide, 998 others do not; 20,000 records in doubling releases, seeded."""
    learner = MirrorLearner(dimension=1_000)
    rng, noise = np.random.default_rng(5), SeededNoise(5)
    sums = blank_sums(1_000)
    model, right = learner.model(sums), 0.0
    for records in (1_250, 1_250, 2_500, 5_000, 10_000):
        others = 2 + rng.integers(0, 998, (records, 1))
        which = rng.integers(0, 2, (records, 1))
        values = rng.choice([-1.0, 1.0], (records, 2)) / math.sqrt(2)
        rows = on_grid(
            SparseRows(
                np.arange(records + 1) * 2,
                np.hstack([which, others]).reshape(-1),
                values.reshape(-1),
            ),
            bound=1.0,
        )
        labels = np.where(values[:, 0] * np.where(which[:, 0], -1, 1) > 0, 1, -1)
        right = float((labels * model.margins(rows) > 0).mean())
        total = total_of(learner, rows, learner.gradients(model, rows, (1 + labels) / 2))
        sums = learner.release(sums, total, noise)
        model = learner.model(sums)
    assert right > 0.99
    assert model.weights[0] > 0 > model.weights[1]
