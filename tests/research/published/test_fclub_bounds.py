"""The bounds of CDP-FCLUB-DC: against hand computations, and against the algorithm's own."""

from math import log, sqrt

import numpy as np
import pytest

from discreet.privacy.conversions import gaussian_delta
from discreet.research.noise import SeededNoise
from discreet.research.published.fclub import PublishedClusters
from discreet.research.published.fclub_bounds import ClusterBounds
from discreet.research.worlds.fclub import synthetic

PAPER = ClusterBounds()


def test_constants_are_those_that_the_algorithm_plays_with() -> None:
    world = synthetic(0)
    played = PublishedClusters(
        servers=world.servers.tolist(),
        dimensions=10,
        rounds=100_000,
        noise=SeededNoise(0),
        epsilon=1.0,
        delta=0.1,
    )
    assert PAPER.levels == played.levels
    assert PAPER.shift == pytest.approx(played.shift)
    assert PAPER.uploads == pytest.approx(played.uploads, rel=1e-3)


def test_items_of_the_experiments_break_assumption_2() -> None:
    items = next(synthetic(0).offers(rounds=2_048)).items.reshape(-1, 10)
    assert np.linalg.eigvalsh(items.T @ items / len(items))[0] == pytest.approx(
        PAPER.regularity, rel=0.05
    )
    assert (items[:, 0] ** 2).var() == pytest.approx(PAPER.spread_of_squares, rel=0.05)
    assert PAPER.spread_of_squares > 2 * PAPER.spread_allowed(10)


def test_theorem_1_by_hand() -> None:
    share = 1 / 18
    noise = sqrt(30) * log(40) / share
    pairs = log(2 * 4 * 5 * 8e5)
    longest = 192**2 * 3 * noise * pairs
    assert PAPER.detection == pytest.approx(16 * 40 * log(1e5 * 8e5) + 4 * 40 * longest)
    assert PAPER.regret() == pytest.approx(2 * PAPER.detection + PAPER.learning())
    # The part after detection grows like sqrt(T) up to logarithms, of runs that are long enough.
    more = (ClusterBounds(rounds=rounds).learning() for rounds in (4 * 10**12, 10**12))
    assert 2 < next(more) / next(more) < 2.4


def test_theorem_2_by_hand() -> None:
    assert PAPER.communication_order() == pytest.approx(10 * 4 * 5 * log(1e5) / log(1.01))
    assert PAPER.communications() > PAPER.communication_order()
    assert ClusterBounds(threshold=1.1).communications() < PAPER.communications() / 5


def test_composed_epsilon_is_the_least_that_its_noise_keeps() -> None:
    epsilon = PAPER.composed_epsilon()
    nodes = 17 * (PAPER.levels + 1)
    multiplier = sqrt(64 * PAPER.levels * log(20)) / (2 * sqrt(nodes))
    assert gaussian_delta(multiplier=multiplier, epsilon=epsilon) <= 0.1
    assert gaussian_delta(multiplier=multiplier, epsilon=0.99 * epsilon) > 0.1
    assert epsilon < 1  # the trees and the phases alone are within what is claimed


def test_lower_bound_order() -> None:
    assert PAPER.least_order() == 2_000
