"""The normal's tails against arithmetic with forty digits, and against scipy's."""

import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from discreet.privacy.normal import cumulative, cumulatives, erfcx, quantiles

PLACES = np.concatenate(
    [np.linspace(-26.0, 12.0, 1001), np.logspace(-12.0, 0.95, 200), np.logspace(0.9, 5.0, 200)]
).tolist()


def _exact(x: float) -> mpmath.mpf:
    with mpmath.workdps(40):
        number = mpmath.mpf(x)
        return mpmath.exp(number**2) * mpmath.erfc(number)


def test_the_scaled_tail_is_right_to_the_digits_that_calibration_allows_for() -> None:
    """`gaussian_delta` adds four times 2**-50 of what it has: no error here may come near that."""
    worst = max(abs(float(mpmath.mpf(erfcx(x)) / _exact(x) - 1)) for x in PLACES)
    assert worst < 2.0**-50


def test_the_scaled_tail_has_limits() -> None:
    assert erfcx(0.0) == 1.0
    assert erfcx(-40.0) == math.inf
    assert erfcx(math.inf) == 0.0
    assert erfcx(1e200) == pytest.approx(1e-200 / math.sqrt(math.pi), rel=1e-15)


def test_probabilities_of_numbers_and_of_arrays_are_the_same() -> None:
    values = np.linspace(-37.0, 37.0, 20_001)
    expected = ndtr(values)
    assert np.abs(cumulatives(values) / expected - 1.0).max() < 1e-13
    assert max(abs(cumulative(x) / p - 1) for x, p in zip(values, expected, strict=True)) < 1e-12
    assert cumulatives(np.array([-math.inf, 0.0, math.inf])).tolist() == [0.0, 0.5, 1.0]


def test_arrays_keep_their_shape() -> None:
    values = np.arange(-3.0, 3.0).reshape(2, 3)
    assert cumulatives(values).shape == (2, 3)
    assert cumulatives(np.zeros((0, 4))).shape == (0, 4)
    assert quantiles(cumulatives(values)) == pytest.approx(values, rel=1e-12, abs=1e-15)


def test_quantiles_are_the_usual_ones() -> None:
    probabilities = np.concatenate([np.logspace(-300, -1, 200), np.linspace(0.1, 1 - 1e-9, 500)])
    assert np.abs(quantiles(probabilities) / ndtri(probabilities) - 1.0).max() < 1e-13
