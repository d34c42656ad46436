"""Where randomness that protects people comes from.

Production has exactly one source, `SystemNoise`, without a seed, a state or a buffer of ours, so
two workers forked from one parent can never share a stream. The seedable source for experiments
is another type in another layer (`discreet.research.noise`), and `require_production` keeps it
out of the server.

What "the operating system's randomness" means, call by call:

- `bits` reads `os.urandom` anew every time: the kernel's generator, nothing in between. So does
  `discrete_laplace`, whose sampler is ours (`discreet.privacy.laplace`): requests wait for it, and
  it takes a tenth of the time of OpenDP's for the few draws of a turn.
- `discrete_gaussian` is OpenDP's sampler (Canonne, Kamath and Steinke, 2020). It draws its bits
  from OpenSSL's generator, which the kernel seeds and which compares process ids at every request,
  so that a forked child seeds itself afresh. `tests/privacy/test_noise.py` really forks.

Both are exact: comparisons of uniform bits with known numbers, no floating-point logarithm whose
low bits would tell what the noise was added to. They know nothing of what the caller adds them to,
so how long they take tells about the noise alone.
"""

import math
import os
from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian
from opendp.metrics import l2_distance
from opendp.mod import enable_features

from discreet.errors import InvalidArgument, SeededNoiseRefused, StateOverflow
from discreet.privacy.laplace import LaplaceSampler

Integers = npt.NDArray[np.int64]

MAX_SCALE = 2.0**52
"""The widest noise, in steps.

Draws are 64-bit integers, and OpenDP replaces one outside them by the nearest end. Adding such
an end to a value would show the value, so it must not happen: at this scale a draw beyond 2**62
has probability below 2 exp(-2**10) < 10**-444 for either shape, whatever the data, and
`SystemNoise` raises instead of returning it.
"""

_MOST = 2**62
_AT_ONCE = 4_096


class NoiseSource(Protocol):
    """Uniform bits, and integer noise of two shapes. Scales are in integer steps."""

    production: ClassVar[bool]

    def bits(self, count: int) -> int:
        """Return a uniform integer in [0, 2**count)."""
        ...

    def discrete_laplace(self, *, scale: float, size: int) -> Integers:
        """Return `size` draws with P(z) proportional to exp(-|z| / scale)."""
        ...

    def discrete_gaussian(self, *, scale: float, size: int) -> Integers:
        """Return `size` draws with P(z) proportional to exp(-z**2 / (2 scale**2))."""
        ...


def check_bits(count: int) -> None:
    """Refuse a number of bits that is not one."""
    if count < 0:
        raise InvalidArgument("count", "must be at least 0")


def check_draw(scale: float, size: int) -> None:
    """Refuse a scale or a size that no source can serve."""
    if not (math.isfinite(scale) and scale > 0):
        raise InvalidArgument("scale", "must be finite and greater than 0")
    if scale > MAX_SCALE:
        raise InvalidArgument("scale", "must be at most 2**52 steps: use a coarser granularity")
    if size < 0:
        raise InvalidArgument("size", "must be at least 0")


class SystemNoise:
    """The operating system's randomness, asked anew for every draw."""

    production: ClassVar[bool] = True

    def bits(self, count: int) -> int:
        """Return a uniform integer in [0, 2**count), straight from the kernel."""
        if count < 0:
            check_bits(count)
        whole = (count + 7) // 8
        return int.from_bytes(os.urandom(whole), "little") >> (8 * whole - count)

    def discrete_laplace(self, *, scale: float, size: int) -> Integers:
        """Return `size` exact draws with P(z) proportional to exp(-|z| / scale)."""
        check_draw(scale, size)
        return _drawn(_laplace(float(scale)).draw, size)

    def discrete_gaussian(self, *, scale: float, size: int) -> Integers:
        """Return `size` exact draws with P(z) proportional to exp(-z**2 / (2 scale**2))."""
        check_draw(scale, size)
        sampler = _gaussian(float(scale))
        return _drawn(lambda many: _within_range(sampler([0] * many)), size)


def require_production(noise: NoiseSource) -> NoiseSource:
    """Return `noise` if it is the operating system's; refuse anything reproducible.

    The rule is the exact type. A subclass may have overridden anything, and whatever its
    `production` says is its own word.
    """
    if type(noise) is not SystemNoise:
        raise SeededNoiseRefused()
    return noise


Sampler = Callable[[list[int]], list[int]]

# Building a sampler takes longer than drawing from it. A sampler holds what follows from its scale
# and nothing else, so keeping it keeps no randomness. Scales are configuration, never data, so the
# number of distinct ones is small.


@lru_cache(maxsize=256)
def _laplace(scale: float) -> LaplaceSampler:
    return LaplaceSampler(scale)


@lru_cache(maxsize=256)
def _gaussian(scale: float) -> Sampler:
    enable_features("contrib")
    sampler: Sampler = make_gaussian(
        vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=scale
    )
    return sampler


def _drawn(draw: Callable[[int], Integers], size: int) -> Integers:
    """Draw some at a time: a long call holds the interpreter, and takes much memory."""
    drawn = np.empty(size, dtype=np.int64)
    for start in range(0, size, _AT_ONCE):
        some = drawn[start : start + _AT_ONCE]
        some[:] = draw(len(some))
    return drawn


def _within_range(draws: list[int]) -> Integers:
    if draws and not (min(draws) > -_MOST and max(draws) < _MOST):
        raise StateOverflow("a draw left the range in which adding it is exact")
    return np.array(draws, dtype=np.int64)
