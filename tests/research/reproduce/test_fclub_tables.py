"""Tables, figures and notes of federated clusters, from given runs."""

import numpy as np
import pytest

from discreet.research.reproduce.fclub import (
    ALONE,
    BY_OBSERVATION,
    BY_PERSON,
    EVERYBODY,
    PROGRAMMED,
)
from discreet.research.reproduce.fclub_algorithms import ClusterAlgorithm
from discreet.research.reproduce.fclub_tables import report, saved
from discreet.research.reproduce.fclub_trials import ClusterOutcome, ClusterRun

ROUNDS = 1_000
LONG = 2 * ROUNDS


def outcome(algorithm: ClusterAlgorithm, slope: float, rounds: int = ROUNDS) -> ClusterOutcome:
    points = np.linspace(rounds / 10, rounds, 10)
    run = ClusterRun(points, slope * points, points / 10, ms_per_round=0.5, chance=rounds / 4)
    return ClusterOutcome(algorithm, (run, run))


def found() -> dict[str, list[ClusterOutcome]]:
    parts: dict[str, list[ClusterOutcome]] = {}
    for name in ("blocks", "mixed"):
        parts[name] = [outcome(one, 0.2, LONG) for one in EVERYBODY]
        parts[name] += [outcome(one, 0.22, LONG) for one in PROGRAMMED]
        parts[f"{name}, served"] = [
            outcome(ALONE, 0.10),
            outcome(BY_PERSON, 0.12),
            outcome(BY_OBSERVATION, 0.08),
        ]
    return parts


def test_what_sharing_saves_is_against_not_sharing_seed_by_seed() -> None:
    gaps = saved(found(), "blocks")
    assert list(gaps) == [BY_PERSON.label, BY_OBSERVATION.label]
    rounds, less = gaps[BY_OBSERVATION.label]
    assert less.shape == (2, len(rounds))
    assert less[0, -1] == pytest.approx(0.02 * ROUNDS)


def test_rows_say_after_how_many_rounds() -> None:
    reported = report(found(), studies={}, seeds=2)
    regrets = {row["algorithm"]: (row["rounds"], row["regret_mean"]) for row in reported.results}
    assert regrets["no sharing"] == (ROUNDS, pytest.approx(0.1 * ROUNDS))
    assert regrets["linucb"] == (LONG, pytest.approx(0.2 * LONG))
    notes = " ".join(reported.notes)
    assert "by observation is ahead of not sharing with every seed from round 100 on" in notes
    assert "by person is ahead of not sharing with every seed at no round yet" in notes


def test_everybody_is_compared_after_as_many_rounds() -> None:
    reported = report(found(), studies={}, seeds=2)
    table = next(one for one in reported.tables if one.title.startswith("blocks"))
    assert table.columns[1:3] == ["regret after 1,000 rounds", "regret after 2,000 rounds"]
    rows = {row[0]: row[1:3] for row in table.rows}
    assert rows["linucb"] == ("200 ± 0", "400 ± 0")
    assert rows["no sharing (served)"] == ("100 ± 0", "")


def test_the_authors_regrets_are_beside_ours_and_what_explains_them() -> None:
    first = report(found(), studies={}, seeds=2).tables[0]
    rows = {row[0]: row[1:] for row in first.rows}
    assert rows["club"] == ["1,589", "400 ± 0", "440 ± 0", "", "400 ± 0", "440 ± 0"]
    assert rows["homo"] == ["12,736", "400 ± 0", "", "", "400 ± 0", ""]


def test_printed_numbers_are_drawn_in() -> None:
    figures = {one.name: one for one in report(found(), studies={}, seeds=2).figures}
    times, regrets = figures["published-and-ours"].panels
    for panel, name, theirs, ours in (
        (times, "fclub", 58.870, 0.5),
        (regrets, "club as programmed", 1_589, 440),
        (regrets, "linucb", 1_588, 400),
    ):
        (dot,) = (line for line in panel.lines if line.label == name)
        assert (10 ** dot.x[0], 10 ** dot.y[0]) == (pytest.approx(theirs), pytest.approx(ours))
    spoken = {line.label: line.y for line in figures["figure-4"].panels[0].lines}
    assert spoken["fclub-dc, authors' program"] == [15_800]
