"""A rival behind our private choice gets answers whose odds are bounded."""

import math

import numpy as np
import pytest

from discreet.research.rivals.private_choice import EXPLORED, PrivateChoice


def test_the_best_item_is_answered_as_often_as_epsilon_allows() -> None:
    estimates = np.tile([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0]], (4_000, 1))
    choice = PrivateChoice(2.0, seed=3)
    choice.renew(estimates, np.arange(3))
    columns, shares = choice.draw(estimates)
    odds = math.exp(2.0)
    expected = (1 - EXPLORED) * odds / (odds + 1) + EXPLORED / 3
    hit = (columns == np.tile([0, 1], 4_000)).mean()
    # The standard error is 0.004; a mechanism at epsilon 2.6 would answer 0.92.
    assert hit == pytest.approx(expected, abs=0.02)
    assert shares[columns == np.tile([0, 1], 4_000)].mean() == pytest.approx(expected, abs=1e-6)


def test_two_visitors_odds_stay_within_epsilon() -> None:
    for epsilon in (0.5, 1.0, 4.0):
        estimates = np.random.default_rng(5).random((200, 6))
        choice = PrivateChoice(epsilon, seed=1)
        choice.renew(estimates, np.arange(6))
        assert choice._law is not None
        laws = [choice._law.law(best) for best in range(len(choice._law.shortlist))]
        worst = max(float(a[item] / b[item]) for a in laws for b in laws for item in a)
        assert worst <= math.exp(epsilon)
