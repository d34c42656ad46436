"""The paper's regret bounds as formulas."""

from dataclasses import replace
from math import log, pi

import pytest

from discreet.research.published.p_dap_bounds import RegretBounds
from discreet.research.published.p_dap_cells import PartitionParameters

PARAMETERS = PartitionParameters(horizon=30_000, epsilon=1.0)
BOUNDS = RegretBounds(PARAMETERS, items=5, others=3, dimensions=2, arrivals=7_500)


def test_theorem_2_by_hand() -> None:
    expected = 4 * log(7_500) + pi**2 / 3 + (log(5) + log(7_500))
    assert BOUNDS.own_arm(1) == pytest.approx(expected)


def test_no_arm_is_suboptimal_in_a_large_cell() -> None:
    assert [BOUNDS.gap(level) > 1 for level in range(5)] == [True, True, True, False, False]


def test_less_privacy_lowers_every_bound() -> None:
    loose = replace(BOUNDS, parameters=replace(PARAMETERS, epsilon=10.0))
    assert loose.noise == pytest.approx(BOUNDS.noise / 10)
    assert loose.whole() < BOUNDS.whole()
    assert loose.uniform_arrivals() < BOUNDS.uniform_arrivals()
    assert loose.geometric_gain() == pytest.approx(BOUNDS.geometric_gain() / 10)


@pytest.mark.parametrize(
    ("growth", "similarity", "exponent"), [(3.0, 1.0, 0.8), (1.0, 0.5, 1.0), (2.0, 1.0, 1.0)]
)
def test_the_corollary_is_sublinear_only_if_p_is_large(
    growth: float, similarity: float, exponent: float
) -> None:
    chosen = replace(PARAMETERS, growth=growth, similarity=similarity)
    assert replace(BOUNDS, parameters=chosen).exponent() == pytest.approx(exponent)


def test_few_arrivals_bring_about_few_cells() -> None:
    first = replace(BOUNDS, arrivals=299)
    assert first.whole() < replace(BOUNDS, arrivals=300).whole()
