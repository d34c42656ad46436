"""Estimates, rows and figures of the evaluation of profile perturbation."""

import numpy as np
import pytest

from discreet.research.reproduce.epicrec_tables import (
    RatioEstimate,
    below,
    epsilons,
    figures,
    gain,
    loss,
    mean,
    ratio,
    references,
    row,
    tables,
)
from discreet.research.reproduce.epicrec_theorems import BEYOND
from discreet.research.reproduce.epicrec_trials import LPA, PUBLISHED, SPARSE
from tests.research.reproduce.epicrec_found import invented


def test_an_interval_covers_the_truth_nineteen_times_of_twenty() -> None:
    """Over 2,000 draws of ten parts; one too narrow by 30% would cover it about 86% of the time."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(2_000):
        people = rng.integers(50, 80, 10).astype(float)
        sums = people * (3 + rng.normal(scale=1 / np.sqrt(people)))
        found = ratio(sums, people)
        covered += abs(found.value - 3) <= found.half
    assert 0.92 < covered / 2_000 < 0.98


def test_a_ratio_leaves_out_parts_that_have_nothing() -> None:
    assert ratio(np.array([2.0, 0.0, 4.0]), np.array([1.0, 0.0, 2.0])) == RatioEstimate(2.0, 0.0)
    assert ratio(np.array([2.0]), np.array([1.0])) == RatioEstimate(2.0, float("inf"))
    assert np.isnan(ratio(np.zeros(2), np.zeros(2)).value)


def test_an_estimate_is_sure_when_its_interval_is_above_zero() -> None:
    assert RatioEstimate(0.1, 0.05).sure
    assert not RatioEstimate(0.1, 0.15).sure
    assert not RatioEstimate(-0.1, 0.05).sure
    assert RatioEstimate(0.123, 0.01).percent() == "12.3% ± 1.0%"


def test_losses_and_gains_are_relative_to_the_raw_history() -> None:
    found = invented(lambda system, method, epsilon: {"error": 21.0} if method == PUBLISHED else {})
    key, other = ("single", PUBLISHED, 0.2), ("single", LPA, 0.2)
    assert loss(found[key]).value == pytest.approx(0.05)
    assert loss(found[key], "hidden_").value == pytest.approx(0.04)
    assert gain(found, key, other).value == pytest.approx(-0.01)
    assert references(found)["nothing"]["mae_loss"] == pytest.approx(0.1)
    assert references(found)["raw"]["mae"] == pytest.approx(1.0)


def test_an_error_is_below_another_relative_to_that_one() -> None:
    found = invented(
        lambda system, method, epsilon: {"own": 8.0} if method == LPA else {"own": 6.0}
    )
    assert below(found, ("single", PUBLISHED, 1.0), ("single", LPA, 1.0), "own").value == 0.25


def test_a_row_is_made_of_totals() -> None:
    found = invented()
    made = row("d", found, ("category", PUBLISHED, 1.0))
    assert made["aggregate_mae"] == pytest.approx(2.0, rel=0.05)
    assert made["mae_loss"] == pytest.approx(0.04)
    assert made["mae_loss_no_release"] == pytest.approx(0.04)
    assert made["ndcg10"] == pytest.approx(0.1)
    counted = row("d", found, ("single", SPARSE, 1.0))
    assert "mae_loss" not in counted
    assert counted["seconds"] == pytest.approx(0.004)
    assert mean(found["single", PUBLISHED, 1.0], "bound").value == pytest.approx(6.0)


def test_what_lies_beyond_the_papers_epsilons_is_in_no_figure() -> None:
    found = invented()
    assert BEYOND not in epsilons(found, "single")
    made = figures({"movielens": found})
    names = ["figure-5-movielens", "figure-6-movielens", "figure-7"]
    assert [figure.name for figure in made] == names
    for figure in made:
        for panel in figure.panels:
            assert max(x for line in panel.lines for x in line.x) <= 1.0


def test_published_values_are_drawn_in_and_no_release_has_a_panel() -> None:
    five, six, _ = figures({"movielens": invented()})
    printed = {
        line.label: line
        for panel in (*five.panels, *six.panels)
        for line in panel.lines
        if line.label.startswith("published:")
    }
    assert list(printed) == ["published: up to 5%", 'published: below "perturbed" + 5%']
    point, bound = printed.values()
    assert (list(point.x), list(point.y)) == ([0.2], [0.05])
    assert list(bound.y) == pytest.approx([0.09] * 4)
    assert [panel.title for panel in six.panels][1:] == [
        "MAE loss (the paper proposes ε = 0.29)",
        'MAE loss in "no release" categories',
    ]


def test_tables_show_both_kinds_of_categories() -> None:
    made = {table.title: table for table in tables("movielens", invented())}
    assert len(made) == 4
    losses = made["Figure 6b, movielens: loss of recommendations, everybody perturbed"]
    assert '"no release" items' in losses.columns
    assert all(len(line) == len(losses.columns) for line in losses.rows)
    counts = made["Figure 5a, movielens: error of the counts"]
    assert {line[0] for line in counts.rows} >= {"S-DPDP as published", "published, our phase 2"}
