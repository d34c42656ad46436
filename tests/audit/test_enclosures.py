"""The enclosures against the standard library's correctly rounded decimals, 120 digits wide."""

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.audit.enclosures import (
    exceeds_exp,
    exp_interval,
    float_above,
    log_interval,
)

EXPONENTS = st.fractions(min_value=-60, max_value=60, max_denominator=10**9)
POSITIVE = st.builds(Fraction, st.integers(1, 10**30), st.integers(1, 10**30))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


@given(EXPONENTS)
@settings(deadline=None, max_examples=300)
def test_exp_lies_inside_and_the_interval_is_narrow(exponent: Fraction) -> None:
    with decimal.localcontext(prec=120):
        truth = _decimal(exponent).exp()
        bounds = exp_interval(exponent)
        assert _decimal(bounds.low) <= truth <= _decimal(bounds.high)
        assert _decimal(bounds.high - bounds.low) <= truth * Decimal(2) ** -75


@given(POSITIVE)
@settings(deadline=None, max_examples=300)
def test_log_lies_inside_and_the_interval_is_narrow(ratio: Fraction) -> None:
    with decimal.localcontext(prec=120):
        truth = _decimal(ratio).ln()
        bounds = log_interval(ratio)
        assert _decimal(bounds.low) <= truth <= _decimal(bounds.high)
        assert bounds.high - bounds.low <= Fraction(1, 2**75)


def test_a_comparison_closer_than_any_double_is_decided() -> None:
    with decimal.localcontext(prec=120):
        below = Fraction(Decimal(1).exp().next_minus())
        above = Fraction(Decimal(1).exp().next_plus())
    assert float(below) == float(above) == math.e
    assert not exceeds_exp(below, Fraction(1))
    assert exceeds_exp(above, Fraction(1))


def test_the_only_rational_power_is_one() -> None:
    assert not exceeds_exp(Fraction(1), Fraction(0))
    assert exceeds_exp(1 + Fraction(1, 10**300), Fraction(0))


@pytest.mark.parametrize("ratio", [Fraction(0), Fraction(-1)])
def test_no_logarithm_of_what_is_not_positive(ratio: Fraction) -> None:
    with pytest.raises(ValueError, match="positive"):
        log_interval(ratio)


@given(POSITIVE)
def test_floats_round_up(value: Fraction) -> None:
    above = float_above(value)
    assert Fraction(above) >= value
    assert Fraction(math.nextafter(above, 0.0)) < value


def test_what_no_double_can_hold_becomes_infinite() -> None:
    assert float_above(Fraction(10**400)) == math.inf
