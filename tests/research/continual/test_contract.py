"""The arithmetic that continual sums share."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.research.continual import contract

GRID = 2.0**-4
VECTORS = st.lists(st.floats(-100, 100), min_size=3, max_size=3)


@given(VECTORS, VECTORS)
def test_rounding_is_within_what_the_sensitivity_allows_for_it(
    one: list[float], two: list[float]
) -> None:
    steps = [contract.to_steps(value, dimension=3, granularity=GRID) for value in (one, two)]
    moved = (steps[0] - steps[1]) * GRID
    apart = np.array(one) - np.array(two)
    l2, l1 = float(np.linalg.norm(apart)), float(np.abs(apart).sum())
    assert np.linalg.norm(moved) <= contract.l2_after_rounding(l2, 3, GRID)
    assert np.abs(moved).sum() <= contract.l1_after_rounding(l1, 3, GRID)


def test_rounding_can_cost_all_that_is_allowed_for_it() -> None:
    low, high = GRID * 0.4999, GRID * 0.5001
    steps = [contract.to_steps([v] * 3, dimension=3, granularity=GRID) for v in (low, high)]
    moved = float(np.linalg.norm((steps[1] - steps[0]) * GRID))
    assert moved == pytest.approx(contract.l2_after_rounding(0.0, 3, GRID))


@pytest.mark.parametrize("steps", [0.1, 0.5, 1.0, 3.0, 6.0, 6.01, 25.0])
def test_the_variances_of_discrete_noise(steps: float) -> None:
    z = np.arange(-3000, 3001, dtype=np.float64)
    gaussian, laplace = np.exp(-0.5 * (z / steps) ** 2), np.exp(-np.abs(z) / steps)
    for weights, variance in (
        (gaussian, contract.gaussian_variance(steps)),
        (laplace, contract.laplace_variance(steps)),
    ):
        exact = float((z * z * weights).sum() / weights.sum())
        assert variance == pytest.approx(exact, rel=1e-11, abs=1e-300)


def test_vanishing_noise_has_no_variance() -> None:
    assert contract.laplace_variance(1e-6) == 0
    assert contract.gaussian_variance(1e-3) == 0


def test_a_scalar_is_a_vector_of_one() -> None:
    assert contract.to_steps(0.5, dimension=1, granularity=0.25).tolist() == [2]


def test_states_cannot_be_written_to() -> None:
    total = contract.add(np.array([1]), np.array([2]))
    with pytest.raises(ValueError, match="read-only"):
        total[0] = 5
    assert math.isclose(total[0], 3)
