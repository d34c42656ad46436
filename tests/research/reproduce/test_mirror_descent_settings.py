"""The settings that are played, and what came of one."""

import numpy as np
import pytest

from discreet.research.reproduce.mirror_descent_settings import (
    DROWNED,
    SERVED,
    MirrorOutcome,
    movielens_settings,
    outcome_of,
    settings,
)
from discreet.research.reproduce.mirror_descent_trials import MirrorRun


def test_every_figure_has_both_the_published_and_the_served_algorithm() -> None:
    every = settings()
    assert len(set(every)) == len(every)
    for field in ("topology", "lasso", "nodes"):
        for reading, epsilon in (("published", 1_000.0), ("published", 1.0), ("served", 1.0)):
            values = {
                getattr(one, field)
                for one in every
                if (one.reading, one.epsilon) == (reading, epsilon)
            }
            assert len(values) > 1, (field, reading)


def test_only_full_runs_ask_the_published_algorithm_about_films() -> None:
    assert DROWNED in movielens_settings(quick=False)
    assert DROWNED not in movielens_settings(quick=True)


def test_an_outcome_is_the_mean_of_its_runs() -> None:
    rounds = np.arange(1, 5) * 100
    done = rounds.astype(np.float64)
    runs = tuple(
        MirrorRun(rounds, regret * done, 0.5 * done, 1.0, 1.0, 0.2, 7, 1.0) for regret in (1.0, 3.0)
    )
    outcome = MirrorOutcome(SERVED, runs)
    row = outcome.row()
    assert (row["regret_mean"], row["accuracy"], row["sparsity"]) == (800.0, 0.5, 0.2)
    assert row["regret_std"] == pytest.approx(400 * np.sqrt(2))
    assert outcome.detail()["curve"]["regret"] == [200.0, 400.0, 600.0, 800.0]
    assert outcome_of([outcome], SERVED) is outcome
