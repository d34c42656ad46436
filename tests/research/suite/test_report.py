"""Rows: exactly these columns, and numbers that follow from the sums."""

import json
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.suite.report import (
    best_fixed,
    completed,
    curve_of,
    rows_of,
    suite_report,
    suite_tables,
)
from discreet.research.suite.trials import SuiteResult, SuiteTrial

COLUMNS = [
    *("world", "dimensions", "items", "learner", "answers_epsilon", "feedback_epsilon"),
    *("rounds", "reward_late", "share_late", "share_fixed", "seconds"),
]
TRIAL = SuiteTrial("bumps", "p-dap", 2.0, 1.0, 4_000, 0, 200.0, (2.0,))


def result(**changes: object) -> SuiteResult:
    """Return 16 blocks: 100 of 250 are earned in each of the first half, 150 in the second."""
    fixed = np.tile([50.0, 75.0], (16, 1))
    fixed[-1, 1] = np.nan
    fields = {
        "dimensions": 2,
        "items": 16,
        "earned": np.repeat([100.0, 150.0], 8),
        "ceilings": {2.0: np.full(16, 200.0)},
        "fixed": fixed,
        "seconds": np.full(16, 0.5),
    }
    return SuiteResult(**{**fields, **changes})  # type: ignore[arg-type]


def test_a_row_has_exactly_these_columns() -> None:
    short, long = rows_of(TRIAL, result())
    assert list(short) == list(long) == COLUMNS
    assert (short["rounds"], long["rounds"]) == (3_000, 4_000)
    assert (long["answers_epsilon"], long["feedback_epsilon"]) == (2.0, 1.0)
    assert long["reward_late"] == 0.6
    assert long["share_late"] == 0.75
    assert long["share_fixed"] == 0.25  # the other item left before the end
    assert short["share_fixed"] == 0.375
    assert (short["seconds"], long["seconds"]) == (6.0, 8.0)


def test_a_share_of_nothing_is_null() -> None:
    nothing = result(earned=np.zeros(16), ceilings={2.0: np.zeros(16)})
    rows = list(rows_of(TRIAL, nothing))
    assert [(row["reward_late"], row["share_late"]) for row in rows] == [(0.0, None)] * 2
    curve = curve_of(TRIAL, nothing, 2.0)
    assert (curve["share"], curve["share_overall"]) == ([None] * 4, None)
    json.dumps([rows, curve], allow_nan=False)


def test_no_item_may_have_stayed() -> None:
    assert np.isnan(best_fixed(result(fixed=np.full((16, 2), np.nan)), slice(12, 16)))


def test_a_curve_has_a_point_every_thousand_rounds() -> None:
    curve = curve_of(TRIAL, result(), 2.0)
    assert curve["rounds"] == [1_000, 2_000, 3_000, 4_000]
    assert curve["share"] == [0.5, 0.5, 0.75, 0.75]
    assert curve["reward"] == [0.4, 0.4, 0.6, 0.6]
    assert curve["share_overall"] == pytest.approx(0.625)


def test_a_learner_that_ignores_contexts_stands_beside_every_epsilon() -> None:
    trial = SuiteTrial("bumps", "chance", None, None, 4_000, 0, 200.0, (None, 2.0))
    both = result(ceilings={None: np.full(16, 300.0), 2.0: np.full(16, 200.0)})
    rows = [row for row in rows_of(trial, both) if row["rounds"] == 4_000]
    assert [row["answers_epsilon"] for row in rows] == [None, 2.0]
    assert [row["share_late"] for row in rows] == [0.5, 0.75]


def test_the_report_says_what_it_is() -> None:
    report = suite_report([(TRIAL, result())], quick=True, seed=3, rate=200.0)
    assert (report["suite"], report["seed"], report["visits_per_second"]) == ("quick", 3, 200.0)
    assert len(report["rows"]) == 2
    assert len(report["curves"]) == 1
    (table,) = suite_tables(report)
    assert table.title == "bumps: 16 items, 2 numbers"
    (row,) = table.rows
    assert row[:7] == ("p-dap", "2", "1", "4,000", "0.600", "0.750", "0.625")


def report_of(learner: str, earned: float = 100.0, seed: int = 3) -> dict[str, Any]:
    trial = SuiteTrial("bumps", learner, 2.0, 1.0, 4_000, seed, 200.0, (2.0,))
    return suite_report(
        [(trial, result(earned=np.full(16, earned)))], quick=True, seed=seed, rate=200.0
    )


def test_an_earlier_report_adds_what_was_left_out() -> None:
    earlier = completed(report_of("linucb"), report_of("contextual"))
    both = completed(report_of("contextual", earned=150.0), earlier)
    (table,) = suite_tables(both)
    assert sorted((row[0], row[4]) for row in table.rows) == [
        ("contextual", "0.600"),
        ("linucb", "0.400"),
    ]
    assert len(both["rows"]) == 4
    assert len(both["curves"]) == 2
    with pytest.raises(InvalidArgument, match="--beside: has seed 4, not 3"):
        completed(report_of("contextual"), report_of("linucb", seed=4))


def test_beside_a_learner_stands_the_best_item_learned_under_the_same_privacy() -> None:
    popular = SuiteTrial("bumps", "popular", None, 1.0, 4_000, 0, 200.0, (2.0,))
    exact = SuiteTrial("bumps", "popular", None, None, 4_000, 0, 200.0, (2.0,))
    less = result(earned=np.full(16, 80.0))
    runs = [(TRIAL, result()), (popular, less), (exact, result(earned=np.full(16, 90.0)))]
    (table,) = suite_tables(suite_report(runs, quick=False, seed=0, rate=200.0))
    column = table.columns.index("the same, learned")
    assert [row[column] for row in table.rows] == ["0.400", "0.400", "0.450"]
