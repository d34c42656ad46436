"""Worlds are reproducible, their means are what their docstring says, and regret is the truth's."""

import math

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.worlds.environments import BumpRewards, ClusteredContexts, regret

ITEMS = ("amber", "birch", "cedar", "dogwood")


def world(seed: int = 3, clusters: int = 4, spread: float = 0.05) -> ClusteredContexts:
    return ClusteredContexts(dimensions=2, clusters=clusters, spread=spread, seed=seed)


def test_same_seed_same_world() -> None:
    one = world().draw(np.random.default_rng(1), 50)
    two = world().draw(np.random.default_rng(1), 50)
    assert np.array_equal(one, two)
    assert not np.array_equal(world(seed=3).centres, world(seed=4).centres)


def test_contexts_stay_in_the_cube_even_when_clusters_are_wide() -> None:
    drawn = world(spread=1.0).draw(np.random.default_rng(2), 500)
    assert drawn.shape == (500, 2)
    assert drawn.min() == 0.0
    assert drawn.max() == 1.0


def test_contexts_lie_near_their_centres_and_every_cluster_is_visited() -> None:
    contexts = world(spread=0.02)
    drawn = contexts.draw(np.random.default_rng(5), 800)
    gaps = np.linalg.norm(drawn[:, None, :] - contexts.centres[None], axis=2)
    # A two-dimensional normal leaves six standard deviations with probability 1.5e-8.
    assert gaps.min(axis=1).max() < 6 * 0.02
    # 800 draws over four equally likely clusters: fewer than 130 has probability below 1e-6.
    assert np.bincount(gaps.argmin(axis=1), minlength=4).min() > 130


@pytest.mark.parametrize("seed", range(20))
def test_centres_keep_their_distance(seed: int) -> None:
    centres = world(seed=seed).centres
    gaps = np.linalg.norm(centres[:, None, :] - centres[None], axis=2) + 9 * np.eye(4)
    assert gaps.min() > 0.25


def test_means_follow_the_formula() -> None:
    rewards = BumpRewards(items=ITEMS, dimensions=3, seed=7)
    context = [0.2, 0.5, 0.9]
    for index, mean in enumerate(rewards.means(context)):
        square = sum((x - c) ** 2 for x, c in zip(context, rewards.places[index], strict=True))
        bump = math.exp(-square / (2 * rewards.width**2 * 3))
        assert mean == pytest.approx(rewards.floor + rewards.heights[index] * bump, rel=1e-12)


def test_an_item_is_liked_best_in_its_own_place() -> None:
    rewards = BumpRewards(items=ITEMS, dimensions=2, seed=7)
    for index in range(len(ITEMS)):
        peak = rewards.means(rewards.places[index])[index]
        assert peak == pytest.approx(rewards.floor + rewards.heights[index])
        for elsewhere in np.random.default_rng(index).uniform(0, 1, (50, 2)):
            assert rewards.means(elsewhere)[index] <= peak


def test_means_are_probabilities() -> None:
    rewards = BumpRewards(items=ITEMS, dimensions=2, seed=1, floor=0.1, high_height=0.9)
    corners = np.random.default_rng(0).uniform(0, 1, (200, 2))
    everywhere = np.array([rewards.means(corner) for corner in corners])
    assert everywhere.min() >= 0.1
    assert everywhere.max() <= 1.0


def test_an_item_does_not_depend_on_its_neighbours_in_the_catalogue() -> None:
    whole = BumpRewards(items=ITEMS, dimensions=2, seed=7)
    part = BumpRewards(items=("dogwood", "birch"), dimensions=2, seed=7)
    assert part.means([0.3, 0.4]).tolist() == whole.means([0.3, 0.4])[[3, 1]].tolist()
    other = BumpRewards(items=ITEMS, dimensions=2, seed=8)
    assert not np.allclose(other.means([0.3, 0.4]), whole.means([0.3, 0.4]))


def test_the_world_is_the_same_on_every_machine() -> None:
    # Literal values: a world that drifted between releases would make old figures incomparable.
    rewards = BumpRewards(items=("amber",), dimensions=2, seed=7)
    assert np.round(rewards.places[0], 6).tolist() == [0.047947, 0.740477]
    assert round(float(rewards.heights[0]), 6) == 0.788597


def test_regret_is_the_gap_to_the_best() -> None:
    means = np.array([0.1, 0.9, 0.4])
    assert regret(means, [1]) == 0.0
    assert regret(means, [0]) == pytest.approx(0.8)
    assert regret(means, [2, 1]) == 0.0
    assert regret(means, [0, 2]) == pytest.approx(0.8)


@pytest.mark.parametrize("chosen", [[], [0, 0], [3], [-1]])
def test_regret_refuses_what_is_not_a_list_of_positions(chosen: list[int]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        regret(np.array([0.1, 0.9, 0.4]), chosen)
    assert caught.value.argument == "chosen"


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("dimensions", 0),
        ("dimensions", True),
        ("clusters", 0),
        ("spread", -0.1),
        ("spread", math.nan),
    ],
)
def test_contexts_refuse_bad_parameters(argument: str, value: float) -> None:
    good: dict[str, float] = {"dimensions": 2, "clusters": 3, "spread": 0.1, "seed": 1}
    with pytest.raises(InvalidArgument) as caught:
        ClusteredContexts(**{**good, argument: value})  # type: ignore[arg-type]
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("items", ()),
        ("items", ("a", "a")),
        ("dimensions", 0),
        ("width", 0.0),
        ("floor", 1.5),
        ("low_height", math.nan),
        ("high_height", 0.99),
    ],
)
def test_rewards_refuse_bad_parameters(argument: str, value: object) -> None:
    good: dict[str, object] = {"items": ITEMS, "dimensions": 2, "seed": 1}
    with pytest.raises(InvalidArgument) as caught:
        BumpRewards(**{**good, argument: value})  # type: ignore[arg-type]
    assert caught.value.argument == argument


@pytest.mark.parametrize("context", [[0.1], [0.1, 0.2, 0.3], [0.1, math.nan]])
def test_means_refuse_a_context_of_another_shape(context: list[float]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        BumpRewards(items=ITEMS, dimensions=2, seed=1).means(context)
    assert caught.value.argument == "context"
