"""One draw: its law, its lists, and the bound of its proof."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.families.p_dap.mixture import Mixture, Odds
from discreet.families.p_dap.outlook import COIN_SIDES
from discreet.privacy.choice import ShortlistResponse
from discreet.research.noise import SeededNoise


def mixture(
    *,
    utilities: tuple[float, ...] = (0.1, 0.9, 0.4, 0.2),
    size: int = 3,
    coin: int = COIN_SIDES // 4,
    epsilon: float | None = 1.0,
    curiosity: tuple[int, ...] = (1, 2, 3, 4),
) -> Mixture:
    """Return a mixture over the arms 2, 3, 5 and 7, ranked 5, 3, 7, 2."""
    odds = Odds(
        arms=np.array([2, 3, 5, 7]),
        curiosity=np.array(curiosity),
        coin=coin,
        ranking=np.array([5, 3, 7, 2]),
        size=size,
        response=None if epsilon is None else ShortlistResponse(epsilon=epsilon),
    )
    return Mixture(odds, np.array(utilities))


def test_the_law_is_the_formula() -> None:
    law = mixture().law()
    a = 1 / (math.e + 2)
    expected = {
        2: 0.25 * 0.1,
        3: 0.25 * 0.2 + 0.75 * math.e * a,
        5: 0.25 * 0.3 + 0.75 * a,
        7: 0.25 * 0.4 + 0.75 * a,
    }
    assert sum(law.values()) == 1
    assert all(math.isclose(law[slot], expected[slot], rel_tol=1e-12) for slot in expected)


def test_without_protection_the_best_arm_is_answered() -> None:
    assert mixture(epsilon=None, coin=0).law() == {2: 0, 3: 1, 5: 0, 7: 0}
    assert mixture(epsilon=None, coin=0).draw(SeededNoise(0)).propensity == 1.0


def test_among_equals_the_better_ranked_arm_is_best() -> None:
    assert mixture(utilities=(0.5, 0.5, 0.5, 0.5)).best == 0


def test_arms_beyond_the_shortlist_cannot_be_best() -> None:
    assert mixture(utilities=(0.1, 0.2, 0.3, 0.9)).best == 2


@pytest.mark.parametrize("epsilon", [0.3, 3.0, None])
@pytest.mark.parametrize("coin", [0, COIN_SIDES // 3, COIN_SIDES])
def test_draws_follow_the_law(epsilon: float | None, coin: int) -> None:
    """6,000 draws; an arm's count is within 5.5 standard deviations (false alarm below 1e-6)."""
    one = mixture(epsilon=epsilon, coin=coin)
    noise = SeededNoise(3)
    draws = 6_000
    counted = Counter(one.draw(noise).slot for _ in range(draws))
    for slot, share in one.law().items():
        sigma = math.sqrt(draws * float(share) * (1 - float(share)))
        assert abs(counted[slot] - draws * float(share)) <= 5.5 * sigma


def test_a_list_goes_on_with_what_is_left() -> None:
    rest = mixture().without(3)
    assert rest.odds.arms.tolist() == [2, 5, 7]
    assert rest.odds.curiosity.tolist() == [1, 3, 4]
    assert rest.odds.shortlist.tolist() == [5, 7, 2]
    assert int(rest.odds.ranking[rest.best]) == 7
    assert sum(rest.law().values()) == 1
    explored_beyond = mixture(size=2).without(2)
    assert explored_beyond.odds.shortlist.tolist() == [5, 3]


def test_the_last_arm_is_certain() -> None:
    last = mixture().without(3).without(7).without(5)
    choice = last.draw(SeededNoise(0))
    assert (choice.slot, choice.propensity) == (2, 1.0)


@given(
    epsilon=st.floats(0.01, 6.0),
    coin=st.integers(0, COIN_SIDES),
    size=st.integers(1, 4),
    weights=st.tuples(*[st.integers(1, 1000)] * 4),
)
def test_the_ratio_is_within_the_finer_bound_of_the_proof(
    epsilon: float, coin: int, size: int, weights: tuple[int, ...]
) -> None:
    laws = []
    for best in range(size):
        utilities = tuple(float(index == best) for index in range(4))
        one = mixture(epsilon=epsilon, coin=coin, size=size, curiosity=weights, utilities=utilities)
        assert one.best == best
        laws.append(one.law())
    g = coin / COIN_SIDES
    a = 1 / (math.exp(epsilon) + size - 1)
    listed = set(one.odds.shortlist.tolist())
    for slot, weight in zip((2, 3, 5, 7), weights, strict=True):
        shares = [law[slot] for law in laws]
        if slot not in listed or size == 1:
            assert len(set(shares)) == 1
            continue
        q = weight / sum(weights)
        bound = ((1 - g) * math.exp(epsilon) * a + g * q) / ((1 - g) * a + g * q)
        assert max(shares) / min(shares) <= Fraction(bound) * (1 + Fraction(1, 10**9))
