"""Theorem 2 as a number, and what Theorem 1 overlooks."""

from math import sqrt

import pytest

from discreet.errors import InvalidArgument
from discreet.research.published.mirror_descent_bounds import disclosed, regret_bound


def test_theorem_2_by_hand() -> None:
    size = {"radius": 400.0, "nodes": 2, "dimension": 3, "turns": 4}
    learning, noise = regret_bound(**size, epsilon=2.0, lasso=1.0)  # type: ignore[arg-type]
    assert learning == pytest.approx(400 * sqrt(2 * 2 * 4))
    assert noise == pytest.approx(2 * sqrt(2) * 4 * 3 * 4 / 2 * 1.5)
    assert regret_bound(**size, epsilon=None)[1] == 0  # type: ignore[arg-type]


def test_theorem_1_holds_for_the_round_of_the_record() -> None:
    assert disclosed(rounds=2) == pytest.approx(1.0)
    with pytest.raises(InvalidArgument, match="rounds"):
        disclosed(rounds=1)


def test_a_record_decides_whether_the_next_one_counts() -> None:
    """By hand, with a rate of 0.01 and noise of scale 0.02 / epsilon.

    After a broadcast of 1 the record that differs leaves theta at 1.01 here and at 0.99 there, and
    1.01 is broadcast. Of the next record, of length 1, only the world with 0.99 learns: theta is
    1.01 here and 1.02 there. A broadcast of 0.995 speaks for this one by half an epsilon.
    """
    by_hand = (0.02 + (1.02 - 0.995) - (1.01 - 0.995)) / 0.02
    assert disclosed(rounds=3) == pytest.approx(by_hand) == pytest.approx(1.5)


def test_the_loss_grows_with_every_round() -> None:
    assert disclosed(rounds=100) == pytest.approx(50, rel=0.02)
