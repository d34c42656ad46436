"""Logs that were random pass; logs that were not, or say so wrongly, are told."""

from pathlib import Path

import numpy as np
import pytest

from discreet.research.evaluate.randomness import RandomnessReport, examine
from tests.research.evaluate.recorded import ITEMS, log_of, read, rows, write

PERSONAL = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1]])


@pytest.mark.parametrize("law", [None, PERSONAL], ids=["uniform", "personal"])
def test_honest_logs_pass(tmp_path: Path, law: np.ndarray | None) -> None:
    """False alarms have probability 0.001 each by construction; five seeds are looked at."""
    for seed in range(5):
        found = examine(log_of(tmp_path, 2_000, seed=seed, law=law))
        assert found.refusals == found.warnings == ()
        assert 0 < found.largest < found.bound


@pytest.mark.parametrize("seed", [135, 239])
def test_an_item_that_was_shown_little_by_chance_is_no_alarm(tmp_path: Path, seed: int) -> None:
    """The two of 400 short logs whose deviation looked too large: what was shown alone told it."""
    found = examine(log_of(tmp_path, 600, seed=seed, law=PERSONAL))
    assert found.refusals == ()


def claiming(tmp_path: Path, made: list[dict[str, object]], propensity: float) -> RandomnessReport:
    for row in made:
        row["propensity"] = propensity
    return examine(read(write(tmp_path / "log.csv", made)))


def test_a_log_that_looked_at_visitors_and_says_it_did_not_is_refused(tmp_path: Path) -> None:
    """Every item is shown as often as it says, to the wrong people."""
    law = np.array([[0.35, 0.15, 0.25, 0.25], [0.15, 0.35, 0.25, 0.25]])
    found = claiming(tmp_path, rows(4_000, law=law), 0.25)
    assert "depending on the visitor (number 0 of the context)" in found.refusals[0]


def test_a_log_that_shows_something_too_often_is_refused(tmp_path: Path) -> None:
    law = np.tile([0.325, 0.225, 0.225, 0.225], (2, 1))  # 30% more than it says
    found = claiming(tmp_path, rows(4_000, law=law), 0.25)
    assert "too often or too rarely" in found.refusals[0]


def test_an_item_that_a_uniform_log_never_shows_is_found(tmp_path: Path) -> None:
    law = np.tile([1 / 3, 1 / 3, 1 / 3, 0.0], (2, 1))
    found = claiming(tmp_path, rows(1_000, law=law), 0.25)
    assert "propensities are wrong" in found.refusals[0]
    assert "1 of 4 items were never shown" in found.warnings[0]


def test_choices_that_were_never_random_say_nothing(tmp_path: Path) -> None:
    law = np.tile([1.0, 0, 0, 0], (2, 1))
    assert "every propensity is 1" in examine(log_of(tmp_path, 100, law=law)).refusals[0]


def test_some_certain_rows_and_small_propensities_are_said(tmp_path: Path) -> None:
    made = rows(1_000)
    for row in made[:100]:
        row["propensity"], row["candidates"] = 1, ""
    made[200]["propensity"] = 0.0005
    log = read(write(tmp_path / "log.csv", [{"candidates": "", **row} for row in made]))
    warnings = " ".join(examine(log).warnings)
    assert "10.0% of the rows have propensity 1" in warnings
    assert "1 rows have a propensity below 0.001 (the smallest is 0.0005)" in warnings


def test_candidates_are_what_could_have_been_shown(tmp_path: Path) -> None:
    made = rows(3_000)
    rng = np.random.default_rng(0)
    for row in made:
        two = sorted(rng.choice(len(ITEMS), 2, replace=False))
        row["candidates"] = "|".join(ITEMS[at] for at in two)
        row["item"], row["propensity"] = ITEMS[rng.choice(two)], 0.5
    assert examine(read(write(tmp_path / "log.csv", made))).refusals == ()
    for row in made:
        row["candidates"] = ""
    assert examine(read(write(tmp_path / "log.csv", made))).refusals != ()
