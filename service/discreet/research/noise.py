"""Noise that can be repeated, for experiments only.

`SeededNoise` keeps the promises of `discreet.privacy.noise.NoiseSource` in distribution, not in
secrecy: whoever knows the seed can subtract it, and its tails are those of 53-bit arithmetic. It
lives in this layer, which the server does not import, and `require_production` refuses it by type.
"""

import math
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.privacy.noise import Integers, check_bits, check_draw

_TABLED = 256.0
"""Below this scale the discrete Gaussian is drawn from its table; above, a normal is rounded.

A rounded normal's probabilities differ from the discrete Gaussian's by a relative
(z**2 / scale**2 - 1) / (24 scale**2): less than 3e-5 within 6 standard deviations here.
"""

_BLOCK_BYTES = 4_096


class SeededNoise:
    """The same draws for the same seed, as fast as numpy makes them."""

    production: ClassVar[bool] = False

    def __init__(self, seed: int | np.random.SeedSequence) -> None:
        if isinstance(seed, int) and seed < 0:
            raise InvalidArgument("seed", "must not be negative")
        self._rng = np.random.default_rng(seed)
        self._block = b""
        self._used = 0

    def bits(self, count: int) -> int:
        """Return a uniform integer in [0, 2**count)."""
        check_bits(count)
        whole = (count + 7) // 8
        start = self._used
        if start + whole > len(self._block):
            # Asking numpy for a few bytes costs as much as asking for thousands.
            self._block = self._rng.bytes(max(_BLOCK_BYTES, whole))
            start = 0
        self._used = start + whole
        return int.from_bytes(self._block[start : self._used], "little") >> (8 * whole - count)

    def discrete_laplace(self, *, scale: float, size: int) -> Integers:
        """Return `size` draws: the difference of two geometric variables."""
        check_draw(scale, size)
        if scale > 2.0**40:
            # Continuous at this resolution; numpy's geometric works in probabilities near 0.
            return np.rint(self._rng.laplace(scale=scale, size=size)).astype(np.int64)
        success = -math.expm1(-1 / scale)
        return self._rng.geometric(success, size) - self._rng.geometric(success, size)

    def discrete_gaussian(self, *, scale: float, size: int) -> Integers:
        """Return `size` draws, from the table of probabilities or by rounding a normal."""
        check_draw(scale, size)
        if scale >= _TABLED:
            return np.rint(self._rng.normal(scale=scale, size=size)).astype(np.int64)
        cumulative = _cumulative(float(scale))
        middle = len(cumulative) // 2
        drawn = np.searchsorted(cumulative, self._rng.random(size), side="right")
        return np.minimum(drawn, len(cumulative) - 1).astype(np.int64) - middle


@lru_cache(maxsize=64)
def _cumulative(scale: float) -> npt.NDArray[np.float64]:
    """Return the distribution function on [-r, r]; beyond 9 deviations lies less than 2**-53."""
    reach = math.ceil(9 * scale) + 1
    probabilities = np.exp(-0.5 * (np.arange(-reach, reach + 1) / scale) ** 2)
    cumulative: npt.NDArray[np.float64] = np.cumsum(probabilities)
    cumulative /= cumulative[-1]
    return cumulative
