"""The reproduction of P-DAP: rows, tables, figures and notes from given runs."""

import numpy as np
import pytest

from discreet.research.reproduce.p_dap import ASIDE, COMPARED, QUICK, report
from discreet.research.reproduce.p_dap_outcomes import PartitionOutcome
from discreet.research.simulate.runs import WorldRun


def run_with(regret: float) -> WorldRun:
    rounds = np.linspace(500.0, 30_000.0, 60)
    return WorldRun(
        rounds=rounds, regret=regret * rounds, reward=0.5 * rounds, optimal=0.8 * rounds, seconds=1
    )


def outcomes() -> list[PartitionOutcome]:
    regrets = {"p-dap": 0.4, "gp-dap": 0.3}
    return [
        PartitionOutcome(
            one,
            tuple(
                run_with(
                    0.1 * (1 + (one.feedback_epsilon or 0.0))
                    if one.algorithm.startswith("served")
                    else regrets.get(one.algorithm, 0.2)
                )
                for _ in range(2)
            ),
        )
        for one in (*COMPARED, *ASIDE)
    ]


def test_rows_are_of_the_comparison_and_details_of_everything() -> None:
    found = report({"default": outcomes()}, seeds=2, rounds=30_000, quick=False)
    assert len(found.results) == len(COMPARED)
    assert found.results[0] == {
        "algorithm": "dap",
        "epsilon": None,
        "feedback_epsilon": None,
        "regret_mean": pytest.approx(6_000),
        "regret_std": 0.0,
        "accuracy": 0.5,
    }
    details = found.details["environments"]["default"]
    assert len(details) == len(COMPARED) + len(ASIDE)
    assert details[0]["share_of_optimal"] == pytest.approx(0.75)


def test_notes_compare_both_kinds_of_feedback() -> None:
    found = report({"default": outcomes()}, seeds=2, rounds=30_000, quick=False)
    assert found.notes[0] == ("served ε=0.01, feedback exact: 4.0 times less regret than P-DAP")
    assert "served-vendors ε=1, feedback exact: 4.0 times less regret than P-DAP" in found.notes
    assert "regret 25.0% below P-DAP" in found.notes[-1]


def test_tables_show_what_was_published_and_a_dash_for_what_was_not_played() -> None:
    found = report({"default": outcomes()}, seeds=2, rounds=30_000, quick=False)
    overview, table_2, *_ = found.tables
    assert len(overview.rows) == len(COMPARED) + len(ASIDE)
    assert table_2.rows[0] == ["5,000", "70.3% / 50.0%", "73.3% / 50.0%", "87.3% / 50.0%"]
    assert table_2.rows[-1][1] == "77.3% / –"
    assert [figure.name for figure in found.figures] == [
        *("figure-6", "figure-7", "figure-8", "served"),
    ]


def test_a_small_run_has_the_same_claims() -> None:
    every = outcomes()
    small = [one for one in every if one.algorithm in QUICK]
    found = [
        report({"default": some}, seeds=2, rounds=30_000, quick=quick)
        for some, quick in ((every, False), (small, True))
    ]
    assert [claim.row() for claim in found[0].claims] == [claim.row() for claim in found[1].claims]
    assert found[1].quick
    assert "provisional" in found[1].claims_table().title


def test_figures_show_the_numbers_that_the_paper_prints() -> None:
    found = report({"default": outcomes()}, seeds=2, rounds=30_000, quick=False)
    told = {
        figure.name: [line for panel in figure.panels for line in panel.lines if line.published]
        for figure in found.figures
    }
    assert [len(told[name]) for name in ("figure-6", "figure-7", "figure-8")] == [4, 6, 3]
    assert told["served"] == []
    assert told["figure-6"][0].y == [0.02, 0.02]
    assert told["figure-6"][-1].y == [0.8734, 0.9021, 0.9102, 0.9217]
    assert {line.label for line in told["figure-8"]} == {
        *("the paper: below 0.03", "p-dap 0.01, the paper", "gp-dap, the paper")
    }
