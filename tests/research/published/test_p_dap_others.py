"""Algorithm 2 as published: exploration, the best noisy mean, and trees."""

import math

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.noise import SeededNoise
from discreet.research.published.p_dap_cells import PartitionParameters
from discreet.research.published.p_dap_others import PublishedForOthers, RewardTrees

ITEMS = 2
HORIZON = 100


def learner(items: int = ITEMS) -> PublishedForOthers:
    parameters = PartitionParameters(base=1_000.0, horizon=HORIZON)
    return PublishedForOthers(parameters, dimensions=1, items=items)


def test_items_are_explored_and_then_the_best_noisy_mean_is_selected() -> None:
    one = learner()
    tries = math.ceil(math.log(HORIZON) / ITEMS)
    rewards = {0: 0.2, 1: 0.1}
    slots = []
    for _ in range(2 * tries + 4):
        cell, slot = one.decide(np.array([0.3]))
        slots.append(slot)
        # Once the best, item 0 gets such noise that item 1 takes its place.
        reward = rewards[slot] if len(slots) <= 2 * tries else {0: -50.0, 1: 0.1}[slot]
        one.learn(cell, slot, reward)
    assert slots == [0, 1] * tries + [0, 1, 1, 1]
    assert one.exploration(0) == pytest.approx(math.log(HORIZON) / ITEMS)


def test_a_vendor_without_items_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="items"):
        learner(items=0)


def test_what_a_tree_returns_adds_up_to_the_rewards_when_noise_is_small() -> None:
    trees = RewardTrees(horizon=1_000, noise=SeededNoise(1))
    total = sum(trees.insert(stream=("a",), reward=1.0, epsilon=1e5) for _ in range(100))
    assert total == pytest.approx(100.0, abs=0.05)


def test_the_noise_of_a_running_sum_is_that_of_its_nodes() -> None:
    """Variance of 400 sums, each of 7 = 111 in binary: 3 nodes of 2 * scale**2.

    The ratio's standard deviation is sqrt(kurtosis-corrected 2.7 / 400) = 0.08 or so; the bounds
    are 4 of them away, and noise wrong by 30% in scale (1.69 or 0.49 in variance) falls outside.
    """
    trees = RewardTrees(horizon=1_000, noise=SeededNoise(2))
    epsilon = 0.5
    scale = trees.scale(epsilon)
    assert scale == pytest.approx(1 / epsilon, rel=1e-3)
    sums = [
        sum(trees.insert(stream=("stream", number), reward=0.0, epsilon=epsilon) for _ in range(7))
        for number in range(400)
    ]
    ratio = np.var(sums) / (3 * 2 * scale**2)
    assert 0.67 < ratio < 1.36


def test_streams_have_noise_of_their_own_and_seeds_repeat() -> None:
    def first(seed: int, stream: str) -> float:
        trees = RewardTrees(horizon=10, noise=SeededNoise(seed))
        return trees.insert(stream=(stream,), reward=0.0, epsilon=1.0)

    assert first(1, "a") == first(1, "a")
    trees = RewardTrees(horizon=10, noise=SeededNoise(1))
    drawn = {trees.insert(stream=(name,), reward=0.0, epsilon=1.0) for name in "abcdef"}
    assert len(drawn) == 6


def test_impossible_arguments_are_named() -> None:
    with pytest.raises(InvalidArgument, match="horizon"):
        RewardTrees(horizon=1, noise=SeededNoise(0))
    with pytest.raises(InvalidArgument, match="epsilon"):
        RewardTrees(horizon=9, noise=SeededNoise(0)).insert(stream=(), reward=0.0, epsilon=0.0)
