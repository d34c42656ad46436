"""Sparse mirror descent as served: gradients, truncation, noise, and that it learns."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from discreet.families.mirror_descent.descent import (
    GRANULARITY,
    MirrorDescent,
    Model,
    batch_due,
    label_of,
)
from discreet.families.mirror_descent.sparse import STEPS, SparseRows, on_grid, read_rows
from discreet.errors import InvalidArgument
from discreet.privacy.accountants import Budget, ZCDPAccountant
from discreet.privacy.events import ExactRelease
from discreet.research.noise import SeededNoise

LEARNER = MirrorDescent(dimension=6, epsilon=1.0, delta=1e-6)


def rows_of(*features: tuple[list[int], list[float]]) -> Any:
    return on_grid(read_rows(features, dimension=6), bound=1.0)


def test_only_what_is_not_right_by_a_margin_teaches() -> None:
    model = Model(np.array([2.0, -2.0, 0, 0, 0, 0], dtype=np.float32))
    rows = rows_of(([0], [0.75]), ([0, 2], [0.25, 0.5]), ([1], [0.5]), ([3], [0.5]))
    labels = np.array([1, 1, 1, -1])
    assert model.margins(rows).tolist() == [1.5, 0.5, -1.0, 0.0]
    teaches, amounts = LEARNER.gradients(model=model, rows=rows, labels=labels)
    assert teaches.tolist() == [False, True, True, True]
    summed = LEARNER.summed(rows=rows, amounts=amounts)
    assert (summed / STEPS).tolist() == [0.25, 0.5, 0.5, -0.5, 0.0, 0.0]


def test_records_together_add_what_they_add_one_by_one() -> None:
    rng = np.random.default_rng(3)
    rows = on_grid(
        SparseRows(np.arange(0, 101, 2), np.tile([1, 4], 50), rng.normal(size=100)), bound=1.0
    )
    labels = rng.choice([-1, 1], 50)
    model = Model(rng.normal(size=6).astype(np.float32))
    _, amounts = LEARNER.gradients(model=model, rows=rows, labels=labels)
    together = LEARNER.summed(rows=rows, amounts=amounts)
    alone = np.zeros(6, dtype=np.int64)
    for row in range(50):
        part = rows.between(row, row + 1)
        _, amounts = LEARNER.gradients(model=model, rows=part, labels=labels[row : row + 1])
        alone += LEARNER.summed(rows=part, amounts=amounts)
    assert (alone == together).all()


def test_labels_are_signs() -> None:
    assert (label_of(1), label_of(0.0)) == (1, -1)
    with pytest.raises(InvalidArgument, match="reward"):
        label_of(0.5)
    with pytest.raises(InvalidArgument, match="labels"):
        LEARNER.gradients(model=LEARNER.start(), rows=rows_of(([0], [1])), labels=np.array([2]))


def test_truncation_cuts_what_noise_explains() -> None:
    learner = MirrorDescent(dimension=10_001, truncation=4.0)
    theta = np.random.default_rng(0).normal(scale=5.0, size=10_001)
    theta[0], theta[1] = 100.0, -90.0
    model = learner.model(theta=theta, count=0)
    assert model.deviation == pytest.approx(5.0, rel=0.05)
    assert model.weights[0] > 0 > model.weights[1]
    # A normal passes four deviations with probability 6.4e-5: ten or more of them with 1e-8.
    assert 2 <= model.nonzeros <= 12
    assert learner.start().nonzeros == 0
    loose = replace(learner, truncation=0.0).model(theta=theta, count=0)
    assert loose.nonzeros == 10_001
    assert loose.weights[0] == pytest.approx(100 / (1 + loose.deviation), rel=1e-5)


def test_a_model_does_not_depend_on_the_unit_of_features() -> None:
    theta = np.random.default_rng(1).normal(size=100)
    one = MirrorDescent(dimension=100, clip=1.0).model(theta=theta, count=50)
    four = MirrorDescent(dimension=100, clip=4.0).model(theta=4 * theta, count=50)
    assert np.allclose(one.weights, 4 * four.weights)


def test_one_record_costs_what_its_epsilon_allows() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    accountant = ZCDPAccountant()
    charge = accountant.charge(LEARNER.event)
    assert accountant.limit(budget).admits(charge)
    assert not accountant.limit(budget).admits(charge + charge)
    assert isinstance(replace(LEARNER, mode="none").event, ExactRelease)
    with pytest.raises(InvalidArgument, match="mode"):
        replace(LEARNER, mode="none").sums()


def test_the_released_sum_has_the_noise_that_its_price_needs() -> None:
    """4,000 coordinates: the sample deviation is within 6% but for chance 1e-7."""
    sums = replace(LEARNER, dimension=4_000).sums()
    state = sums.start()
    for step in range(1, 21):
        state = sums.observe(state=state, value=np.ones(4_000), noise=SeededNoise(step))
        if step in (1, 16, 20):
            told = sums.release(state=state).value
            assert told.mean() == pytest.approx(step, abs=2.0)
            assert told.std() == pytest.approx(math.sqrt(sums.variance(step)), rel=0.06)
    # Two records are 2 apart; the multiplier alone is 4.53.
    assert math.sqrt(sums.variance(1)) > 9.06


def test_it_learns_what_matters() -> None:
    """Features 0 and 1 decide, 998 others do not; 20,000 records, seeded."""
    learner = MirrorDescent(dimension=1_000, epsilon=1.0, delta=1e-6)
    rng, noise = np.random.default_rng(5), SeededNoise(5)
    sums = learner.sums()
    state, model, count = sums.start(), learner.start(), 0
    for _ in range(10):
        others = 2 + np.sort(rng.integers(0, 998, (2_000, 1)), axis=1)
        which = rng.integers(0, 2, (2_000, 1))
        values = rng.choice([-1.0, 1.0], (2_000, 2)) / math.sqrt(2)
        rows = on_grid(
            SparseRows(
                np.arange(2_001) * 2, np.hstack([which, others]).reshape(-1), values.reshape(-1)
            ),
            bound=1.0,
        )
        labels = np.where(values[:, 0] * np.where(which[:, 0], -1, 1) > 0, 1, -1)
        right = float((labels * model.margins(rows) > 0).mean())
        _, amounts = learner.gradients(model=model, rows=rows, labels=labels)
        increment = learner.summed(rows=rows, amounts=amounts) * GRANULARITY
        state = sums.observe(state=state, value=increment, noise=noise)
        count += 2_000
        model = learner.model(theta=sums.release(state=state).value, count=count)
    assert right > 0.99
    assert model.weights[0] > 0 > model.weights[1]


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"dimension": 0}, "dimension"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"clip": 0.0}, "clip"),
        ({"clip": 65.0}, "clip"),
        ({"truncation": -1.0}, "truncation"),
        ({"ridge": 0.0}, "ridge"),
        ({"length": 0}, "length"),
        ({"mode": "quiet"}, "mode"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], argument: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        MirrorDescent(**{"dimension": 6, **change})
    assert caught.value.argument == argument


def test_batches_grow_with_what_was_learned() -> None:
    assert not batch_due(fresh=99, counted=0, records=100, growth=0.25)
    assert batch_due(fresh=100, counted=0, records=100, growth=0.25)
    assert not batch_due(fresh=249, counted=1_000, records=100, growth=0.25)
    assert batch_due(fresh=250, counted=1_000, records=100, growth=0.25)
