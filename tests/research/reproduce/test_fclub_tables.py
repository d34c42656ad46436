"""Tables, figures and notes of federated clusters, from given runs."""

import numpy as np
import pytest

from discreet.research.reproduce.fclub import ALONE, BY_OBSERVATION, BY_PERSON, PUBLISHED, RIVALS
from discreet.research.reproduce.fclub_algorithms import ClusterAlgorithm
from discreet.research.reproduce.fclub_tables import report, saved
from discreet.research.reproduce.fclub_trials import ClusterOutcome, ClusterRun

ROUNDS = 1_000


def outcome(algorithm: ClusterAlgorithm, slope: float, rounds: int = ROUNDS) -> ClusterOutcome:
    points = np.linspace(rounds / 10, rounds, 10)
    run = ClusterRun(points, slope * points, points / 10, ms_per_round=0.5)
    return ClusterOutcome(algorithm, (run, run))


def found() -> dict[str, list[ClusterOutcome]]:
    parts: dict[str, list[ClusterOutcome]] = {}
    for name in ("blocks", "mixed"):
        parts[name] = [outcome(one, 0.2) for one in (*RIVALS, PUBLISHED)]
        parts[f"{name}, long"] = [
            outcome(ALONE, 0.10, 2 * ROUNDS),
            outcome(BY_PERSON, 0.12, 2 * ROUNDS),
            outcome(BY_OBSERVATION, 0.08, 2 * ROUNDS),
        ]
    return parts


def test_what_sharing_saves_is_against_not_sharing_seed_by_seed() -> None:
    gaps = saved(found(), "blocks")
    assert list(gaps) == [BY_PERSON.label, BY_OBSERVATION.label]
    rounds, less = gaps[BY_OBSERVATION.label]
    assert less.shape == (2, len(rounds))
    assert less[0, -1] == pytest.approx(0.02 * 2 * ROUNDS)


def test_the_report_has_rows_after_as_many_rounds_for_everybody() -> None:
    parts = found()
    rounds = {name: 2 * ROUNDS if "long" in name else ROUNDS for name in parts}
    reported = report(parts, studies={}, rounds=rounds, seeds=2)
    regrets = {row["algorithm"]: row["regret_mean"] for row in reported.results}
    assert regrets["no sharing"] == pytest.approx(0.1 * ROUNDS)
    assert regrets["linucb"] == pytest.approx(0.2 * ROUNDS)
    notes = " ".join(reported.notes)
    assert "by observation is ahead of not sharing with every seed from round 200 on" in notes
    assert "by person is ahead of not sharing with every seed at no round yet" in notes
