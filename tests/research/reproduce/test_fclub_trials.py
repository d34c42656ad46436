"""Runs in worlds of federated clusters, and rows made from several seeds."""

from functools import partial

import numpy as np
import pytest

from discreet.research.reproduce.fclub_algorithms import ClusterAlgorithm
from discreet.research.reproduce.fclub_trials import ClusterOutcome, ClusterTrial
from discreet.research.worlds.fclub import synthetic

WORLD = partial(synthetic, users=12, clusters=2, servers=3, dimensions=5, arrangement="mixed")


def test_rows_have_what_programs_read() -> None:
    algorithm = ClusterAlgorithm("cdp-fclub-dc", "published", 1.0, 0.1)
    runs = tuple(ClusterTrial(algorithm, WORLD, 300, seed, 2).run() for seed in (0, 1))
    row = ClusterOutcome(algorithm, runs).row(300)
    assert set(row) == {
        *("algorithm", "reading", "epsilon", "delta", "trigger", "protects"),
        *("regret_mean", "regret_std", "communications", "ms_per_round"),
    }
    ends = [run.regret[-1] for run in runs]
    assert row["regret_mean"] == pytest.approx(np.mean(ends))
    assert row["regret_std"] == pytest.approx(np.std(ends, ddof=1))


def test_a_longer_run_begins_with_the_very_same_rounds() -> None:
    algorithm = ClusterAlgorithm("sclub")
    short, long = (ClusterTrial(algorithm, WORLD, rounds, 1, 2).run() for rounds in (500, 1_000))
    assert long.regret[:25] == pytest.approx(short.regret[1::2], rel=0.05)
    assert short.ms_per_round > 0
