"""Certified enclosures of exp and log: two rationals with the truth between them.

An audit that compares a privacy loss with its charge in floating point proves nothing about the
last bits, and the last bits are where floors, tables and rounding go wrong. So both functions are
summed here in integers: every step of a lower bound rounds down, every step of an upper bound
rounds up, and the tail of the series is bounded by its last term.

A rational is never equal to e to another rational, except 1 = e**0 (Lindemann), so a comparison
of the two is decided by enough digits. `exceeds_exp` takes as many as it needs.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

DIGITS = 96
"""Binary digits after the point, unless a comparison asks for more."""

_MOST_DIGITS = 8192


class Interval(NamedTuple):
    """A number known to lie between two rationals, ends included."""

    low: Fraction
    high: Fraction


def _ceil_shift(value: int, digits: int) -> int:
    return -(-value >> digits)


def _atanh(numerator: int, denominator: int, digits: int) -> tuple[int, int]:
    """Enclose 2**digits * atanh(z) for z = numerator/denominator in [0, 1/3]: sum z^(2j+1)/(2j+1).

    The tail after a term t is below t * (z^2 + z^4 + ...) <= t/8, so one more unit than the last
    term covers it.
    """
    low_z = (numerator << digits) // denominator
    high_z = -((-numerator << digits) // denominator)
    low_square, high_square = low_z * low_z >> digits, _ceil_shift(high_z * high_z, digits)
    low = high = 0
    low_power, high_power, odd = low_z, high_z, 1
    while True:
        low += low_power // odd
        term = -(-high_power // odd)
        high += term
        if term <= 1:
            return low, high + 2
        low_power = low_power * low_square >> digits
        high_power = _ceil_shift(high_power * high_square, digits)
        odd += 2


@lru_cache(maxsize=32)
def _log_two(digits: int) -> tuple[int, int]:
    low, high = _atanh(1, 3, digits)
    return 2 * low, 2 * high


@lru_cache(maxsize=65_536)
def log_interval(ratio: Fraction, digits: int = DIGITS) -> Interval:
    """Enclose the natural logarithm of a positive rational."""
    if ratio <= 0:
        raise ValueError("the logarithm is taken of a positive number")
    numerator, denominator = ratio.numerator, ratio.denominator
    shift = numerator.bit_length() - denominator.bit_length()
    # Scale to f in (1/2, 2), then to [1, 2), where (f-1)/(f+1) lies in [0, 1/3).
    if shift >= 0:
        denominator <<= shift
    else:
        numerator <<= -shift
    if numerator < denominator:
        numerator <<= 1
        shift -= 1
    low, high = _atanh(numerator - denominator, numerator + denominator, digits)
    two_low, two_high = _log_two(digits)
    low, high = 2 * low, 2 * high
    low += shift * (two_low if shift >= 0 else two_high)
    high += shift * (two_high if shift >= 0 else two_low)
    unit = 1 << digits
    return Interval(Fraction(low, unit), Fraction(high, unit))


def _exp_series(x: int, digits: int) -> int:
    """Return a lower bound of 2**digits * exp(x / 2**digits) for 0 <= x < 2**digits."""
    total = term = 1 << digits
    k = 1
    while term:
        term = (term * x >> digits) // k
        total += term
        k += 1
    return total


def _exp_series_above(x: int, digits: int) -> int:
    """Return an upper bound of the same; the tail after a term is below the term itself."""
    total = term = 1 << digits
    k = 1
    while term > 1 or k < 3:
        term = -(-_ceil_shift(term * x, digits) // k)
        total += term
        k += 1
    return total + term


def exp_interval(exponent: Fraction, digits: int = DIGITS) -> Interval:
    """Enclose e to a rational power, to about `digits` significant binary digits."""
    two_low, two_high = _log_two(digits)
    unit = 1 << digits
    scaled_low = (exponent.numerator << digits) // exponent.denominator
    scaled_high = -((-exponent.numerator << digits) // exponent.denominator)
    halvings = scaled_low // two_high if scaled_low >= 0 else -(-scaled_low // two_low)
    # The remainder lies in [0, log 2) up to the enclosure's width; step down if it does not.
    while scaled_low - halvings * (two_high if halvings >= 0 else two_low) < 0:
        halvings -= 1
    low_rest = scaled_low - halvings * (two_high if halvings >= 0 else two_low)
    high_rest = scaled_high - halvings * (two_low if halvings >= 0 else two_high)
    if high_rest >= unit:
        raise ValueError("too few digits for an exponent of this size")
    factor = Fraction(1 << halvings) if halvings >= 0 else Fraction(1, 1 << -halvings)
    return Interval(
        factor * Fraction(_exp_series(low_rest, digits), unit),
        factor * Fraction(_exp_series_above(high_rest, digits), unit),
    )


def exceeds_exp(ratio: Fraction, exponent: Fraction) -> bool:
    """Decide ratio > e**exponent, without error."""
    if exponent == 0:
        return ratio > 1
    digits = DIGITS
    while digits <= _MOST_DIGITS:
        bounds = exp_interval(exponent, digits)
        if ratio > bounds.high:
            return True
        if ratio < bounds.low:
            return False
        digits *= 2
    raise ArithmeticError("undecided: the two numbers agree to thousands of digits")


def float_above(value: Fraction) -> float:
    """Return a double that is not below `value`."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.nextafter(math.inf, 0.0)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
