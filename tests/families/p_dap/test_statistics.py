"""Released sums, and the estimates that they give."""

import math

import numpy as np
import pytest

from discreet.families.contract import REWARD_STEPS
from discreet.families.p_dap.learning import increments
from discreet.families.p_dap.statistics import SENSITIVITY, CellStatistics
from discreet.research.noise import SeededNoise
from discreet.state.stores import Vector

EVERY = np.arange(3, dtype=np.intp)


def block(*records: tuple[int, float]) -> Vector:
    vector = np.zeros(6, dtype=np.int64)
    for slot, reward in records:
        for field, amount in increments(slot, reward):
            vector[field] += amount
    return vector


def grown(
    statistics: CellStatistics, blocks: dict[int, Vector], deviation: float = 0.0, seed: int = 0
) -> CellStatistics:
    return statistics.grown(blocks, live=EVERY, deviation=deviation, noise=SeededNoise(seed))


def blank() -> CellStatistics:
    return CellStatistics.blank(segments=2, slots=3)


def test_records_add_up() -> None:
    found = grown(blank(), {0: block((0, 1.0), (0, 0.25), (2, 0.0))})
    assert found.liked.tolist() == [[1.25, 0.0, 0.0]]
    assert found.disliked.tolist() == [[0.75, 0.0, 1.0]]
    assert found.arrivals().tolist() == [3.0]


@pytest.mark.parametrize(
    ("first", "second"), [((0, 1.0), (1, 0.0)), ((0, 1.0), (0, 0.0)), ((2, 0.3), (1, 0.7))]
)
def test_replacing_a_record_moves_the_sums_within_the_sensitivity(
    first: tuple[int, float], second: tuple[int, float]
) -> None:
    difference = (block(first) - block(second)) / REWARD_STEPS
    assert float(np.linalg.norm(difference)) <= SENSITIVITY
    assert math.isclose(SENSITIVITY, math.sqrt(2))


def test_noise_has_the_deviation_that_was_asked_for() -> None:
    """Chi-squared with 4,800 degrees: 10% is over five deviations; noise off by 30% would fail."""
    wide = CellStatistics.blank(segments=2, slots=2_400)
    live = np.arange(2_400, dtype=np.intp)
    found = wide.grown({}, live=live, deviation=5.0, noise=SeededNoise(3))
    drawn = np.concatenate([found.liked.ravel(), found.disliked.ravel()])
    assert 4.5 < drawn.std() < 5.5
    assert np.allclose(found.variance, 25.0)


def test_nothing_is_released_about_items_that_are_gone() -> None:
    live = np.array([0, 2], dtype=np.intp)
    found = blank().grown({0: block((1, 1.0))}, live=live, deviation=3.0, noise=SeededNoise(0))
    assert found.liked[0, 1] == found.variance[0, 1] == 0.0
    assert found.liked[0, 0] != 0.0


def test_without_noise_a_cell_splits_at_the_papers_threshold() -> None:
    rules = {"dimensions": 1, "base": 10.0, "growth": 1.0, "most_cells": 100}
    nine = grown(blank(), {0: block(*[(0, 1.0)] * 9)})
    assert len(nine.divided(**rules).tree) == 1  # type: ignore[arg-type]
    ten = grown(blank(), {0: block(*[(0, 1.0)] * 10)}).divided(**rules)  # type: ignore[arg-type]
    assert len(ten.tree) == 3
    more = grown(ten, {1: block(*[(0, 1.0)] * 19), 2: block(*[(1, 1.0)] * 20)})
    assert len(more.divided(**rules).tree) == 5  # type: ignore[arg-type]


def test_noise_alone_does_not_split_cells() -> None:
    statistics = blank()
    for release in range(200):
        statistics = grown(statistics, {}, deviation=20.0, seed=release)
        statistics = statistics.divided(dimensions=1, base=100.0, growth=1.0, most_cells=100)
    assert len(statistics.tree) == 1


def test_there_is_room_for_so_many_cells_and_no_more() -> None:
    statistics = blank()
    for release in range(12):
        blocks = {cell: block(*[(0, 1.0)] * 50) for cell in statistics.tree.leaves.tolist()}
        statistics = grown(statistics, blocks, seed=release)
        statistics = statistics.divided(dimensions=1, base=1.0, growth=0.01, most_cells=40)
    assert len(statistics.tree) == 39


def test_a_cell_that_has_split_is_released_for_a_while_and_then_left_alone() -> None:
    rules = {"dimensions": 1, "base": 10.0, "growth": 1.0, "most_cells": 100}
    split = grown(blank(), {0: block(*[(0, 1.0)] * 10)}).divided(**rules)  # type: ignore[arg-type]
    late = {0: block((0, 1.0))}
    counts = []
    for _ in range(4):
        split = grown(split, late)
        counts.append(split.arrivals()[0])
    assert counts == [11.0, 12.0, 12.0, 12.0]


def test_exact_estimates_tend_to_the_truth() -> None:
    found = grown(blank(), {0: block(*[(0, 1.0)] * 700, *[(0, 0.0)] * 300, (1, 1.0))})
    means, errors = found.estimates()
    assert means[0, 0] == pytest.approx(0.7, abs=0.01)
    assert errors[0, 0] < 0.02 < 0.1 < errors[0, 2]


def test_noise_is_not_believed() -> None:
    """Ten sums of noise alone: every estimate stays near the mean of all."""
    statistics = blank()
    for release in range(10):
        statistics = grown(statistics, {}, deviation=20.0, seed=release)
    means, errors = statistics.estimates()
    assert np.ptp(means) < 0.25
    assert errors.min() > 0.15


def test_parts_begin_where_the_whole_ended() -> None:
    rules = {"dimensions": 1, "base": 10.0, "growth": 1.0, "most_cells": 100}
    many = [(0, 1.0)] * 50
    split = grown(blank(), {0: block(*many)}).divided(**rules)  # type: ignore[arg-type]
    means, _ = split.estimates()
    assert means[1, 0] == means[2, 0] > 0.8


def test_a_new_item_has_a_column_of_nothing() -> None:
    found = grown(blank(), {0: block((0, 1.0))}, deviation=1.0).fitted(5)
    assert found.slots == 5
    assert found.variance[0].tolist() == [1.0, 1.0, 1.0, 0.0, 0.0]


def test_arrays_give_the_statistics_back() -> None:
    rules = {"dimensions": 1, "base": 10.0, "growth": 1.0, "most_cells": 100}
    split = grown(blank(), {0: block(*[(0, 1.0)] * 10)}).divided(**rules)  # type: ignore[arg-type]
    again = CellStatistics.of(2, split.arrays("x_"), "x_")
    assert np.array_equal(again.liked, split.liked)
    assert np.array_equal(again.divided_for, split.divided_for)
    assert again.shares().sum() == pytest.approx(1.0)
