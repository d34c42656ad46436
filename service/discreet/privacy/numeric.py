"""Numbers with noise: Laplace and Gaussian, one value or a vector, on a grid.

Why a grid. A double's low bits depend on where it came from, so noise added in floating point can
be recognised (Mironov 2012). Here a value is rounded to whole steps of `granularity`, an exact
sampler adds a whole number of steps, and the result is read back as a double: everything after the
sampler is a function of its answer.

What rounding costs. It moves each coordinate by at most half a step, so two neighbouring inputs
come at most one step further apart in each of d coordinates: the L1 distance grows by at most
d * granularity and the L2 distance (triangle inequality) by at most sqrt(d) * granularity. The
event says `sensitivity` plus that. Integers, by type, are on the grid already and pay nothing more;
whether a caller passes integers is a property of its code, never of the data.

What the noise gives, in steps (scale t, distance D): the discrete Laplace has P(z) / P(z + c) <=
exp(|c| / t), so d independent ones are (D_1 / t)-DP; the discrete Gaussian is (D_2**2 / (2 t**2))-
zCDP in any dimension (Canonne, Kamath and Steinke 2020, theorem 14), as the continuous one.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import overload

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.privacy.events import GaussianRelease, LaplaceRelease, Released
from discreet.privacy.noise import MAX_SCALE, Integers, NoiseSource

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.floating] | npt.NDArray[np.integer]

GRANULARITY = 2.0**-20

_MOST = 2**62
"""Values must stay below this many steps, and noise does: their sum fits 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceMechanism:
    """Discrete Laplace noise of `scale` on values of L1 sensitivity `sensitivity`."""

    scale: float
    sensitivity: float
    granularity: float = GRANULARITY

    def __post_init__(self) -> None:
        _check(self.scale, self.sensitivity, self.granularity)

    def event(self, *, size: int = 1, integers: bool = False) -> LaplaceRelease:
        """Say what releasing `size` values is, before there are any."""
        rounding = 0 if integers and self.granularity <= 1 else size * Fraction(self.granularity)
        return LaplaceRelease(self.scale, _round_up(Fraction(self.sensitivity) + rounding))

    @overload
    def release(self, values: float | np.number, noise: NoiseSource) -> Released[float]: ...
    @overload
    def release(self, values: Numbers, noise: NoiseSource) -> Released[Floats]: ...
    def release(
        self, values: float | np.number | Numbers, noise: NoiseSource
    ) -> Released[float] | Released[Floats]:
        """Return the number, or the vector, with noise on every entry."""
        steps, integers = _to_steps(values, self.granularity)
        drawn = noise.discrete_laplace(scale=self.scale / self.granularity, size=len(steps))
        event = self.event(size=len(steps), integers=integers)
        noisy: Floats = (steps + drawn).astype(np.float64) * self.granularity
        return Released(noisy, event) if np.ndim(values) else Released(float(noisy[0]), event)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianMechanism:
    """Discrete Gaussian noise of deviation `scale` on values of L2 sensitivity `sensitivity`."""

    scale: float
    sensitivity: float
    granularity: float = GRANULARITY

    def __post_init__(self) -> None:
        _check(self.scale, self.sensitivity, self.granularity)

    def event(self, *, size: int = 1, integers: bool = False) -> GaussianRelease:
        """Say what releasing `size` values is, before there are any."""
        root = Fraction(math.isqrt((size << 80) - 1) + 1, 1 << 40)  # at least sqrt(size)
        rounding = 0 if integers and self.granularity <= 1 else root * Fraction(self.granularity)
        return GaussianRelease(self.scale, _round_up(Fraction(self.sensitivity) + rounding))

    @overload
    def release(self, values: float | np.number, noise: NoiseSource) -> Released[float]: ...
    @overload
    def release(self, values: Numbers, noise: NoiseSource) -> Released[Floats]: ...
    def release(
        self, values: float | np.number | Numbers, noise: NoiseSource
    ) -> Released[float] | Released[Floats]:
        """Return the number, or the vector, with noise on every entry."""
        steps, integers = _to_steps(values, self.granularity)
        drawn = noise.discrete_gaussian(scale=self.scale / self.granularity, size=len(steps))
        event = self.event(size=len(steps), integers=integers)
        noisy: Floats = (steps + drawn).astype(np.float64) * self.granularity
        return Released(noisy, event) if np.ndim(values) else Released(float(noisy[0]), event)


def _check(scale: float, sensitivity: float, granularity: float) -> None:
    if not (math.isfinite(scale) and scale > 0):
        raise InvalidArgument("scale", "must be finite and greater than 0")
    if not (math.isfinite(sensitivity) and sensitivity > 0):
        raise InvalidArgument("sensitivity", "must be finite and greater than 0")
    # A power of two makes every division and multiplication by it exact.
    if not (math.isfinite(granularity) and granularity > 0 and math.frexp(granularity)[0] == 0.5):
        raise InvalidArgument("granularity", "must be a power of two")
    if not 2.0**-512 <= granularity <= 2.0**512:
        raise InvalidArgument("granularity", "must be between 2**-512 and 2**512")
    if scale / granularity > MAX_SCALE:
        raise InvalidArgument("granularity", "must be coarser: scale is more than 2**52 steps")


def _to_steps(values: float | np.number | Numbers, granularity: float) -> tuple[Integers, bool]:
    """Return the values as whole steps, and whether they are integers by type."""
    array = np.asarray(values)
    if array.ndim > 1 or array.size == 0:
        raise InvalidArgument("values", "must be a number or a vector of at least one")
    array = array.reshape(-1)
    if array.dtype.kind in "iu":
        return _integers_to_steps(array, granularity), True
    if array.dtype.kind != "f":
        raise InvalidArgument("values", "must be real numbers")
    steps = np.rint(array.astype(np.float64) / granularity)
    if not np.abs(steps).max() < _MOST:  # a NaN is not below anything
        raise InvalidArgument("values", "must be finite and below 2**62 steps of the granularity")
    return steps.astype(np.int64), False


def _integers_to_steps(array: npt.NDArray[np.integer], granularity: float) -> Integers:
    """Work in integers throughout: a double would lose the low bits of a large one."""
    if granularity <= 1:
        factor = int(1 / granularity)
        if max(int(array.max()), -int(array.min())) * factor >= _MOST:
            raise InvalidArgument("values", "must be below 2**62 steps of the granularity")
        return array.astype(np.int64) * np.int64(factor)
    if max(int(array.max()), -int(array.min())) >= _MOST:
        raise InvalidArgument("values", "must be below 2**62")
    step = int(granularity)
    if step >= 2 * _MOST:
        return np.zeros(len(array), dtype=np.int64)
    return (array.astype(np.int64) + np.int64(step // 2)) // np.int64(step)


def _round_up(exact: Fraction) -> float:
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)
