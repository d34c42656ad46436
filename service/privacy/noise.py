"""Where randomness that protects people comes from.

Production has exactly one source, `SystemNoise`, without a seed, a state or a buffer: every draw
asks the operating system, so two workers forked from one parent can never share a stream. The
seedable source for experiments is another type in another layer (`service.simulation.noise`), and
`require_production` keeps it out of the server.
"""

import os
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from service.errors import SeededNoiseRefused

Integers = npt.NDArray[np.int64]


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


def require_production(noise: NoiseSource) -> NoiseSource:
    """Return `noise` if it is the operating system's; refuse anything reproducible."""
    if type(noise) is not SystemNoise:
        raise SeededNoiseRefused()
    return noise


class SystemNoise:
    """The operating system's randomness, asked anew for every draw."""

    production: ClassVar[bool] = True

    def bits(self, count: int) -> int:
        whole = (count + 7) // 8
        return int.from_bytes(os.urandom(whole), "little") >> (8 * whole - count)
