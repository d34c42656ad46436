"""The suite's worlds are what their table says, and the same for the same seed."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.suite.stretches import BLOCK, Stretch
from discreet.research.suite.worlds import REPLACED_EVERY, WORLDS, stretch_sizes

SHAPES = {
    "bumps": (2, 16),
    "logistic-8": (8, 20),
    "logistic-20": (20, 20),
    "logistic-64": (64, 20),
    "clusters": (8, 50),
    "sparse-1000": (1_000, 40),
    "popularity": (8, 10),
    "drift": (8, 20),
    "come-and-go": (8, 20),
    "catalogue-1000": (20, 1_000),
    "rare-clicks": (8, 20),
    "corners": (14, 12),
    "one-number": (1, 10),
    "two-items": (8, 2),
}


def stretches(name: str, rounds: int, seed: int = 0, truth: int = 0) -> list[Stretch]:
    return list(WORLDS[name](truth).stretches(rounds=rounds, seed=seed))


def test_every_world_is_listed_here() -> None:
    assert set(SHAPES) == set(WORLDS)


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_keeps_its_shape(name: str) -> None:
    world = WORLDS[name](0)
    assert (world.dimensions, world.items) == SHAPES[name]
    found = stretches(name, 2_000)
    assert sum(len(one.luck) for one in found) == 2_000
    for one in found:
        assert one.contexts.shape == (len(one.luck), world.dimensions)
        assert one.means.shape == (len(one.luck), world.items)
        assert len(one.luck) % BLOCK == 0
        assert (np.diff(one.offered) > 0).all()
        assert 0.0 <= one.contexts.min() <= one.contexts.max() <= 1.0
        assert 0.0 <= one.means.min() <= one.means.max() <= 1.0


@pytest.mark.parametrize("name", WORLDS)
def test_a_longer_run_begins_as_a_shorter_one(name: str) -> None:
    short, long = stretches(name, 1_000), stretches(name, 2_000)
    np.testing.assert_array_equal(short[0].contexts, long[0].contexts)
    np.testing.assert_array_equal(short[0].luck, long[0].luck)
    np.testing.assert_allclose(short[0].means, long[0].means, rtol=1e-12)
    other = stretches(name, 1_000, seed=1)
    assert not np.array_equal(short[0].luck, other[0].luck)


@pytest.mark.parametrize("name", ["logistic-8", "clusters", "bumps"])
def test_another_truth_is_another_world(name: str) -> None:
    assert not np.allclose(
        stretches(name, 1_000)[0].means, stretches(name, 1_000, truth=1)[0].means
    )


def test_popularity_is_the_same_for_everybody() -> None:
    (one,) = stretches("popularity", 1_000)
    assert np.ptp(one.means, axis=0).max() == 0.0
    assert np.ptp(one.means[0]) > 0.2


def test_few_answers_please_where_clicks_are_rare() -> None:
    (one,) = stretches("rare-clicks", 1_000)
    assert 0.01 < one.means.mean() < 0.03


def test_corners_are_corners_with_copies_and_constants() -> None:
    (one,) = stretches("corners", 1_000)
    assert set(np.unique(one.contexts)) == {0.0, 1.0}
    assert np.linalg.matrix_rank(one.contexts - one.contexts.mean(axis=0)) == 4
    assert (np.ptp(one.contexts, axis=0) == 0.0).sum() == 2


def tastes(one: Stretch) -> np.ndarray:
    """Return how each item's mean depends on each number of the context."""
    slopes: np.ndarray = np.linalg.lstsq(one.contexts - 0.5, one.means, rcond=None)[0]
    return slopes.ravel()


@pytest.mark.parametrize(("name", "low", "high"), [("drift", -1.0, 0.5), ("logistic-8", 0.95, 1.0)])
def test_tastes_turn_in_the_drifting_world_only(name: str, low: float, high: float) -> None:
    found = stretches(name, 12_000)
    assert low <= np.corrcoef(tastes(found[0]), tastes(found[-1]))[0, 1] <= high


def test_items_come_and_go() -> None:
    found = stretches("come-and-go", 6_000)
    offered = {tuple(one.offered.tolist()) for one in found}
    assert len(offered) == 6_000 // REPLACED_EVERY
    starts = np.cumsum([0, *(len(one.luck) for one in found)])[:-1]
    changed = [
        start
        for start, one, before in zip(starts[1:], found[1:], found, strict=False)
        if not np.array_equal(one.offered, before.offered)
    ]
    assert changed == [1_500, 3_000, 4_500]
    # An item keeps its taste while it stays, whatever comes after it.
    longer = stretches("come-and-go", 12_000)
    np.testing.assert_allclose(found[-1].means, longer[len(found) - 1].means, rtol=1e-12)


@pytest.mark.parametrize("rounds", [0, 500, 1_500])
def test_rounds_are_whole_stretches(rounds: int) -> None:
    with pytest.raises(InvalidArgument, match="multiple of 1,000"):
        stretch_sizes(rounds)
