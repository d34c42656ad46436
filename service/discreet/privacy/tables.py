"""Tables of integers that stand for exponentials, with ratios that are exact bounds.

A mechanism that claims exp(x) between two weights must keep that claim for the integers it really
uses. Rounding an exponential down breaks it at the low end, where one unit is a large part of the
number: 3 / 1 is more than exp(1). So nothing here is "the exponential, rounded": the integers are
built from one proved bound on exp(x) by a rule that keeps every ratio under it.
"""

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.privacy.charges import decimal
from discreet.privacy.draw import (
    BIAS,
    MOST,
    Limbs,
    Multiples,
    draw_narrow,
    draw_narrow_each,
    draw_wide,
    to_limbs,
)
from discreet.privacy.noise import NoiseSource

Points = npt.NDArray[np.int64]
Weights = npt.NDArray[np.int64] | npt.NDArray[np.object_]
Shares = npt.NDArray[np.float64]

MOST_OCTAVES = 1000
"""The most factors of 2 between the weights of the best and the worst utility."""

LEAST_EPSILON = 1e-9
"""One nano-epsilon, the ledger's unit: less than that cannot be charged for."""


def check_epsilon(epsilon: float) -> None:
    """Refuse an epsilon that is no number, not positive, or too small to be charged."""
    if not LEAST_EPSILON <= epsilon < float("inf"):
        raise InvalidArgument("epsilon", f"must be finite and at least {LEAST_EPSILON}")


def promised(epsilon: float) -> Fraction:
    """Return the epsilon that a mechanism may use up: its decimal, or its binary value if less.

    The ledger charges the decimal that a person wrote (`charges.decimal`), and 0.1 is stored a
    little above one tenth. `BIAS` is kept back for the draw.
    """
    return min(decimal(epsilon), Fraction(epsilon)) - BIAS


def exp_below(exponent: Fraction, bits: int) -> int:
    """Return an integer just below or equal to 2**bits * exp(exponent).

    `decimal` documents its `exp` as correctly rounded, hence within one unit in the last of
    `digits` places; we step one unit down. The exponent is first cut, downwards, to a decimal
    that the context holds exactly. Each step errs downwards only.
    """
    digits = 40 + int(abs(exponent)) // 2 + bits // 3 + 1
    scaled = exponent * 10**digits
    cut = Decimal(scaled.numerator // scaled.denominator).scaleb(-digits, Context(prec=2 * digits))
    context = Context(prec=digits)
    value = context.next_minus(context.exp(cut))
    return int(Fraction(value) * 2**bits)


@lru_cache(maxsize=256)
def geometric_table(*, steps: int, stride: int, exponent: Fraction, bits: int) -> tuple[int, ...]:
    """Return T[0..steps], non-decreasing from about exp(-exponent * steps / stride) to 2**bits.

    Promise: T[q] >= 1, and T[a] / T[b] <= exp(exponent) whenever a - b <= stride.

    Proof. Let E <= exp(exponent) be the rational `bound` / 2**places. The top `stride` entries
    lie between ceil(T[steps] / E) and T[steps], so any two of them have a ratio of at most E.
    Each lower entry is T[q] = ceil(T[q + stride] / E), so T[q + stride] / T[q] <= E. Since x ->
    ceil(x / E) is monotone, the whole table is non-decreasing when the top is, and for
    a - b <= stride: if b + stride <= steps, T[a] <= T[b + stride] <= E * T[b]; otherwise both lie
    in the top block. The exponential's shape inside the top block is for usefulness only; the
    proof does not need it.
    """
    places = bits + 64
    bound = exp_below(exponent, places)
    top = 1 << bits
    least = _divide(top, bound, places)
    factor = exp_below(-exponent / stride, places)
    table = [top]
    power = 1 << places
    for _ in range(min(stride - 1, steps)):
        power = power * factor >> places
        table.append(max(least, -((-power * top) >> places)))
    while len(table) <= steps:
        table.append(_divide(table[-stride], bound, places))
    table.reverse()
    return tuple(table)


def _divide(number: int, bound: int, places: int) -> int:
    """Return ceil(number / (bound / 2**places))."""
    return -((-number << places) // bound)


class NarrowTable:
    """Weights of up to 42 bits, looked up, multiplied and summed in 64-bit integers."""

    BITS = 42
    most_base = MOST >> BITS
    """The most that a base may sum to, and the most arms there may be without one."""

    def __init__(self, entries: tuple[int, ...]) -> None:
        self._entries = np.array(entries, dtype=np.int64)
        self._entries.flags.writeable = False

    def weights(self, points: Points, base: Multiples | None) -> Weights:
        """Return the weights of arms at these grid points."""
        weights = self._entries[points]
        return weights if base is None else weights * base

    def draw(self, points: Points, base: Multiples | None, noise: NoiseSource) -> int:
        """Draw one of the arms at these grid points."""
        weights = self._entries.take(points)
        return draw_narrow(weights if base is None else weights * base, noise)

    def draw_each(self, points: Points, noise: NoiseSource) -> tuple[Points, Shares]:
        """Draw one of the arms of each row, independently; return them with their probability."""
        weights = self._entries.take(points)
        chosen = draw_narrow_each(weights, noise)
        totals = np.add.reduce(weights, axis=1)
        return chosen, weights[np.arange(len(chosen)), chosen] / totals


class WideTable:
    """Weights of any width, summed in columns of 32-bit digits."""

    most_base = 2**31 - 1

    def __init__(self, entries: tuple[int, ...]) -> None:
        self._entries = np.array(entries, dtype=object)
        self._limbs: Limbs = to_limbs(entries)

    def weights(self, points: Points, base: Multiples | None) -> Weights:
        """Return the weights of arms at these grid points, as Python integers."""
        weights: npt.NDArray[np.object_] = self._entries[points]
        return weights if base is None else weights * base.astype(object)

    def draw(self, points: Points, base: Multiples | None, noise: NoiseSource) -> int:
        """Draw one of the arms at these grid points."""
        return draw_wide(self._limbs[points], noise, base=base)

    def draw_each(self, points: Points, noise: NoiseSource) -> tuple[Points, Shares]:
        """Draw one of the arms of each row, independently; return them with their probability."""
        chosen = [self.draw(row, None, noise) for row in points]
        weights = [self.weights(row, None) for row in points]
        shares = [row[at] / row.sum() for row, at in zip(weights, chosen, strict=True)]
        return np.array(chosen, dtype=np.int64), np.array(shares, dtype=np.float64)


def weight_table(epsilon: float, steps: int, stride: int) -> NarrowTable | WideTable:
    """Return the weights of an exponential mechanism whose grid points move by at most `stride`.

    Between two points at most `stride` apart they differ by at most exp((epsilon - BIAS) / 2).
    """
    exponent = promised(epsilon) / 2
    octaves = math.ceil(exponent * steps / stride / Fraction(math.log(2)))
    if octaves > MOST_OCTAVES:
        raise InvalidArgument(
            "epsilon",
            "times the range of utilities over their sensitivity must be at most "
            f"{MOST_OCTAVES * 2 * math.log(2):.0f}: narrow the range or lower epsilon",
        )
    return _build(steps, stride, exponent, octaves)


@lru_cache(maxsize=64)
def _build(steps: int, stride: int, exponent: Fraction, octaves: int) -> NarrowTable | WideTable:
    if octaves <= NarrowTable.BITS - 5:
        bits = NarrowTable.BITS
        return NarrowTable(
            geometric_table(steps=steps, stride=stride, exponent=exponent, bits=bits)
        )
    bits = octaves + 20
    return WideTable(geometric_table(steps=steps, stride=stride, exponent=exponent, bits=bits))
