"""What is worth exploring."""

import numpy as np
import pytest

from discreet.families.contextual.exploring import (
    FIRST_TRIED,
    expected_improvement,
    first_curiosity,
    private_gains,
)


def test_what_is_surely_ahead_improves_by_that_and_what_is_surely_behind_by_nothing() -> None:
    found = expected_improvement(np.array([0.3, -0.3, 0.0]), np.array([1e-6, 1e-6, 1.0]))
    assert found == pytest.approx([0.3, 0.0, 1.0 / np.sqrt(2.0 * np.pi)], abs=1e-6)


def test_expected_improvement_is_the_mean_of_the_positive_part() -> None:
    drawn = np.random.default_rng(0).normal(-0.2, 0.5, 400_000)
    found = expected_improvement(np.array([-0.2]), np.array([0.5]))
    assert found[0] == pytest.approx(np.maximum(drawn, 0.0).mean(), abs=0.002)


def test_an_unknown_item_is_worth_more_to_know_than_a_known_one() -> None:
    shares, means = np.ones(4) / 4, np.full((4, 3), 0.5)
    improvement = np.zeros((4, 3))
    errors = np.array([0.0, 0.1, 0.3])
    gains, worth = private_gains(shares, means, improvement, means[:, :1], errors, odds=7.0)
    assert worth == pytest.approx(0.5)
    assert gains[0] < gains[1] < gains[2]


@pytest.mark.parametrize("exact", [True, False])
def test_a_few_items_are_tried_alike(exact: bool) -> None:
    visible = np.arange(2, 2 + FIRST_TRIED, dtype=np.intp)
    assert first_curiosity(40, visible, exact=exact).tolist() == [1] * 40


def test_of_many_items_some_are_tried_first_where_noise_would_hide_a_few_visits_of_each() -> None:
    visible = np.arange(5, 60, dtype=np.intp)
    weights = first_curiosity(60, visible, exact=False)
    share = weights[visible[:FIRST_TRIED]].sum() / weights[visible].sum()
    assert share > 0.999
    assert (weights > 0).all()
    assert (first_curiosity(60, visible, exact=True) == 1).all()
