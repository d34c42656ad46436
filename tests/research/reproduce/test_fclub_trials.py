"""Runs in worlds of federated clusters, and rows made from several seeds."""

from functools import partial

import numpy as np
import pytest

from discreet.research.reproduce.fclub_algorithms import ClusterAlgorithm
from discreet.research.reproduce.fclub_trials import ClusterOutcome, ClusterRun, ClusterTrial
from discreet.research.worlds.fclub import synthetic

WORLD = partial(synthetic, users=12, clusters=2, servers=3, dimensions=5, arrangement="mixed")


def test_rows_have_what_programs_read() -> None:
    algorithm = ClusterAlgorithm("cdp-fclub-dc", "published", 1.0, 0.1)
    runs = tuple(ClusterTrial(algorithm, WORLD, 300, seed, 2).run() for seed in (0, 1))
    row = ClusterOutcome(algorithm, runs).row()
    assert set(row) == {
        *("algorithm", "reading", "epsilon", "delta", "trigger", "protects"),
        *("rounds", "regret_mean", "regret_std", "communications", "ms_per_round"),
    }
    ends = [run.regret[-1] for run in runs]
    assert row["regret_mean"] == pytest.approx(np.mean(ends))
    assert row["regret_std"] == pytest.approx(np.std(ends, ddof=1))


def test_a_longer_run_begins_with_the_very_same_rounds() -> None:
    algorithm = ClusterAlgorithm("sclub")
    short, long = (ClusterTrial(algorithm, WORLD, rounds, 1, 2).run() for rounds in (500, 1_000))
    assert long.regret[:25] == pytest.approx(short.regret[1::2], rel=0.05)
    assert short.ms_per_round > 0


def test_the_regret_of_a_uniform_draw_is_beside_it() -> None:
    world = WORLD(0)
    rng = np.random.default_rng(0)
    lost = []
    for offers in world.offers(rounds=2_000):
        drawn = rng.integers(0, offers.means.shape[1], len(offers.means))
        lost.append(offers.means.max(axis=1) - offers.means[np.arange(len(drawn)), drawn])
    run = ClusterTrial(ClusterAlgorithm("linucb"), WORLD, 2_000, 0, 2).run()
    assert run.chance == pytest.approx(np.concatenate(lost).sum(), rel=0.05)


def test_growth_is_a_power_of_the_rounds() -> None:
    points = np.linspace(20.0, 1_000.0, 50)
    run = ClusterRun(points, 3 * points**0.7, points, ms_per_round=1.0, chance=1.0)
    assert run.growth() == pytest.approx(0.7, abs=0.01)
