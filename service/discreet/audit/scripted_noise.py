"""Noise that is written down in advance, so that a mechanism's whole distribution can be read off.

A choice asks for one number of so many bits and maps it to an outcome. Handing the *shipped* code
every possible number would give its exact distribution; since a draw walks through cumulative
weights it is monotone in that number, and bisection finds the handful of places where the outcome
changes. Nothing is assumed about the weights, the table or the rounding of the draw: what is
measured is what would be served.

Numeric mechanisms ask for noise of a scale. A constant source answers the same number each time and
writes the request down: at 0 the value that comes back shows how the input was rounded, at 1 how
long a step is, and the request shows the noise that would have hidden the value. That the sampler
then delivers noise of this scale is examined apart, by its fit.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from functools import cache
from itertools import accumulate
from typing import ClassVar, NamedTuple

import numpy as np

from discreet.privacy.noise import Integers, NoiseSource

Answer = tuple[int, int]
"""A number and how many bits it has."""

ZEROS: tuple[Answer, ...] = ((0, 1),) * 64
"""What requests are answered that come after the ones of interest."""


class ScriptedNoise:
    """Uniform bits from a list, the first for the first request and so on."""

    production: ClassVar[bool] = False

    def __init__(self, answers: tuple[Answer, ...]) -> None:
        self._answers = answers
        self.asked: list[int] = []

    def bits(self, count: int) -> int:
        """Return the next number of the script, stretched or cut to `count` bits."""
        number, written = self._answers[len(self.asked)]
        self.asked.append(count)
        return number << (count - written) if count >= written else number >> (written - count)

    def discrete_laplace(self, *, scale: float, size: int) -> Integers:
        raise AssertionError("a choice asks for uniform bits only")

    def discrete_gaussian(self, *, scale: float, size: int) -> Integers:
        raise AssertionError("a choice asks for uniform bits only")


class LaplaceScale(float):
    """A scale that was asked for of Laplace noise; Gaussian noise leaves a plain number."""


class TapedNoise:
    """Uniform bits from one fixed answer after the other, and steps of noise from a list."""

    production: ClassVar[bool] = False

    def __init__(self, *, bits: Sequence[int] = (), steps: Sequence[int] = ()) -> None:
        self._bits = list(bits)
        self._steps = list(steps)
        self.scales: list[float] = []
        """The scale of every step that was asked for."""

    def bits(self, count: int) -> int:
        """Return the next answer; there must be one."""
        return self._bits.pop(0)

    def discrete_laplace(self, *, scale: float, size: int) -> Integers:
        """Return the next steps, zeros after the last."""
        return self._next(LaplaceScale(scale), size)

    def discrete_gaussian(self, *, scale: float, size: int) -> Integers:
        """Return the next steps, zeros after the last."""
        return self._next(scale, size)

    def _next(self, scale: float, size: int) -> Integers:
        start = len(self.scales)
        self.scales += [scale] * size
        taken = self._steps[start : start + size]
        return np.array(taken + [0] * (size - len(taken)), dtype=np.int64)


class ConstantNoise:
    """The same number of steps for every request, and a note of every scale that was asked for."""

    production: ClassVar[bool] = False

    def __init__(self, steps: int = 0) -> None:
        self._steps = steps
        self.laplace: list[float] = []
        self.gaussian: list[float] = []

    def bits(self, count: int) -> int:
        raise AssertionError("a number is hidden by noise, not by a choice")

    def discrete_laplace(self, *, scale: float, size: int) -> Integers:
        """Note the scale, once for each draw."""
        self.laplace.extend([scale] * size)
        return np.full(size, self._steps, dtype=np.int64)

    def discrete_gaussian(self, *, scale: float, size: int) -> Integers:
        """Note the scale, once for each draw."""
        self.gaussian.extend([scale] * size)
        return np.full(size, self._steps, dtype=np.int64)


Draw = Callable[[NoiseSource], Hashable]

_PROBES = 5
"""Parts into which an interval of equal outcomes is cut to see whether they are equal."""
_GUESSES = 32
_RECENT_ENDS: dict[int, deque[int]] = {}
"""Where outcomes began lately, for each number of bits: the same answer in two worlds, or to the
same question asked again, has the same law more often than not."""


def distribution(draw: Draw) -> dict[Hashable, Fraction]:
    """Return the exact distribution of an outcome that is a monotone function of its bits.

    The draw may ask for bits several times (a list of several items does); each further request
    is then explored below every outcome of the ones before.
    """
    found: dict[Hashable, Fraction] = {}
    _explore(draw, (), Fraction(1), found)
    return found


def _explore(
    draw: Draw, fixed: tuple[Answer, ...], mass: Fraction, found: dict[Hashable, Fraction]
) -> None:
    """Add the outcomes that follow `fixed` requests already answered."""
    depth = len(fixed)
    probe = ScriptedNoise(fixed + ZEROS)
    outcome = draw(probe)
    if len(probe.asked) <= depth:
        found[outcome] = found.get(outcome, Fraction(0)) + mass
        return
    bits = probe.asked[depth]
    last = len(probe.asked) == depth + 1

    @cache
    def prefix(number: int) -> Hashable:
        """Name what this request decided: the outcome, or its first depth+1 parts."""
        seen = draw(ScriptedNoise((*fixed, (number, bits), *ZEROS)))
        return seen if last else _parts(seen)[: depth + 1]

    start, width = 0, 1 << bits
    guesses = _RECENT_ENDS.setdefault(bits, deque(maxlen=_GUESSES))
    while start < width:
        here = prefix(start)
        end = _last_same(prefix, here, start, width - 1, guesses) + 1
        if end < width and end not in guesses:
            guesses.append(end)
        share = mass * Fraction(end - start, width)
        if last:
            found[here] = found.get(here, Fraction(0)) + share
        else:
            _explore(draw, (*fixed, (start, bits)), share, found)
        start = end


def _parts(outcome: Hashable) -> tuple[Hashable, ...]:
    if not isinstance(outcome, tuple):
        raise TypeError("an outcome of several draws must be a tuple, in the order of the draws")
    return outcome


def _last_same(
    prefix: Callable[[int], Hashable], value: Hashable, low: int, high: int, guesses: Iterable[int]
) -> int:
    """Return the greatest number up to `high` that still gives `value`, by bisection.

    It begins with guesses where another outcome might begin. A wrong one costs a step.
    """
    first = low
    if prefix(high) == value:
        low = high
    near = sorted({number for guess in guesses for number in (guess - 1, guess)})
    while high - low > 1:
        near = [number for number in near if low < number < high]
        middle = near[len(near) // 2] if near else (low + high) // 2
        if prefix(middle) == value:
            low = middle
        else:
            high = middle
    # Bisection would overlook an outcome that comes and goes; a draw that is monotone has none.
    for part in range(1, _PROBES):
        if prefix(first + (low - first) * part // _PROBES) != value:
            raise ArithmeticError("the outcome is no monotone function of the bits")
    return low


class ExactLaw(NamedTuple):
    """The exact distribution of an answer, and random bits that lead to each of its outcomes."""

    shares: dict[Hashable, Fraction]
    bits: dict[Hashable, tuple[int, ...]]


def coin_law(
    outcome: Callable[[int, int], Hashable], *, coin_bits: int, uniform_bits: int
) -> ExactLaw:
    """Return the law of an answer that is drawn with a coin and a uniform integer.

    Below a threshold the coin leads to one law, above it to another. Both are read off at the ends
    of the coin's range, by bisection of the uniform; the threshold by bisection of the coin, at
    every uniform at which an interval of either law begins. Raises `ArithmeticError` if the answer
    is made in another way.
    """
    top = 2**coin_bits - 1
    sides = []
    for coin in (0, top):

        def answer(noise: NoiseSource, coin: int = coin) -> Hashable:
            return outcome(coin, noise.bits(uniform_bits))

        sides.append(distribution(answer))
    ends = {end for side in sides for end in accumulate(side.values(), initial=Fraction(0))}
    shares = set()
    for start in sorted(ends)[:-1]:
        uniform = int(start * 2**uniform_bits)
        if outcome(0, uniform) != outcome(top, uniform):

            def side_of(noise: NoiseSource, uniform: int = uniform) -> Hashable:
                return outcome(noise.bits(coin_bits), uniform)

            tossed = distribution(side_of)
            if len(tossed) > 2:
                raise ArithmeticError("the coin has several thresholds")
            shares.add(tossed[outcome(0, uniform)])
    if len(shares) > 1:
        raise ArithmeticError("the coin has several thresholds")
    first = shares.pop() if shares else Fraction(0)
    law: dict[Hashable, Fraction] = {}
    bits: dict[Hashable, tuple[int, ...]] = {}
    for coin, share, side in zip((0, top), (first, 1 - first), sides, strict=True):
        starts = accumulate(side.values(), initial=Fraction(0))
        for (seen, mass), start in zip(side.items(), starts, strict=False):
            if share:
                law[seen] = law.get(seen, Fraction(0)) + share * mass
                bits.setdefault(seen, (coin, int(start * 2**uniform_bits)))
    return ExactLaw(law, bits)


def uniform_law(outcome: Callable[[int], Hashable], *, uniform_bits: int) -> ExactLaw:
    """Return the law of an answer that is drawn with one uniform integer."""
    shares = distribution(lambda noise: outcome(noise.bits(uniform_bits)))
    starts = accumulate(shares.values(), initial=Fraction(0))
    bits: dict[Hashable, tuple[int, ...]] = {
        seen: (int(start * 2**uniform_bits),) for seen, start in zip(shares, starts, strict=False)
    }
    return ExactLaw(shares, bits)
