"""The square root of the prefix sum: the least noise, for memory proportional to the horizon.

Prefix sums are A x with A the lower triangle of ones. If A = B C, releasing C x + z and answering
B (C x + z) = A x + B z is one Gaussian release whose sensitivity is the largest column norm of C,
and B may do anything: it is post-processing. Both factors are taken as the square root of A
(Henzinger, Upadhyay and Upadhyay 2023; Fichtenberger, Henzinger and Upadhyay 2023), lower
triangular Toeplitz with coefficients

    f[0] = 1,   f[k] = f[k-1] * (2k - 1) / (2k),       since sum f[k] w**k = (1 - w)**(-1/2).

At multiplier 1 the standard deviation after t of T steps is the root of
(sum of f[k]**2, k < T) * (sum of f[k]**2, k < t), about 1 + ln(T)/pi at the end.

Exactness. z is discrete, so C x must lie on z's lattice, or the support of the answer would tell
inputs apart. The C that is used therefore has the dyadic coefficients F[k] = round(f[k] * 2**20) /
2**20: applied to steps of the grid it gives whole steps of a grid 2**20 times finer, in integers,
without rounding. All claims are about F: the sensitivity is its column norm. B then undoes F, not
f. With e = F - f and series multiplied, A/F = f**2/(f + e) = f - e + e**2/f - ..., of which the
first three terms are used; what is left, B C - A = e**3/f, has coefficients of about 2**-60 each
and stays below what a double of the sum can show. B works on noisy numbers only, so neither that
nor its floating-point rounding concerns privacy.

Adaptivity. A step that changes by v changes row t of C x by F[t-s] v, whatever came before, so
step by step the release is a composition of discrete Gaussians with rhos that add up to the one
of `event`, even if later values are chosen after seeing earlier answers.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument, StateOverflow
from discreet.privacy.events import GaussianRelease, LaplaceRelease, Released
from discreet.privacy.noise import MAX_SCALE, Integers, NoiseSource
from discreet.privacy.numeric import GRANULARITY
from discreet.research.continual import contract
from discreet.research.continual.contract import Floats

_BITS = 20
_UNIT = 2.0**-_BITS
_MOST = 2**62
_MOST_HORIZON = 2**24
"""Memory and time are proportional to the horizon: beyond this, use a tree."""


@dataclass(frozen=True, slots=True, eq=False)
class SquareRootState:
    """The steps themselves (private) and the noisy rows of C x; one row for each step so far."""

    values: Integers
    noisy: Integers

    @property
    def step(self) -> int:
        """How many steps have been observed."""
        return len(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class SquareRoot:
    """Memory: 2 * dimension * step integers. Time of a step or release: dimension * step."""

    horizon: int
    multiplier: float
    dimension: int = 1
    step_sensitivity: float = 1.0
    granularity: float = GRANULARITY

    def __post_init__(self) -> None:
        contract.check_parameters(
            horizon=self.horizon,
            dimension=self.dimension,
            multiplier=self.multiplier,
            step_sensitivity=self.step_sensitivity,
            granularity=self.granularity,
        )
        if self.horizon > _MOST_HORIZON:
            raise InvalidArgument("horizon", "must be at most 2**24 for this sum; use SmoothBinary")
        contract.check_scale(self.scale, self._fine, MAX_SCALE)

    @property
    def _fine(self) -> float:
        return self.granularity * _UNIT

    @property
    def sensitivity(self) -> float:
        """The L2 sensitivity of all rows: the norm of C's first column times one step's."""
        step = contract.l2_after_rounding(self.step_sensitivity, self.dimension, self.granularity)
        return _column_norm(self.horizon) * step * contract.UP

    @property
    def scale(self) -> float:
        """The scale of the noise on every row of C x."""
        return self.multiplier * self.sensitivity * contract.UP

    @property
    def event(self) -> GaussianRelease | LaplaceRelease:
        """One Gaussian release of all rows."""
        return GaussianRelease(scale=self.scale, sensitivity=self.sensitivity)

    def start(self) -> SquareRootState:
        """Return the state before the first step."""
        empty = np.zeros((0, self.dimension), dtype=np.int64)
        return SquareRootState(contract.frozen(empty), contract.frozen(empty))

    def observe(
        self, *, state: SquareRootState, value: npt.ArrayLike, noise: NoiseSource
    ) -> SquareRootState:
        """Add one step: one more row of C x, with noise of its own."""
        contract.check_room(state.step, self.horizon)
        steps = contract.to_steps(value, dimension=self.dimension, granularity=self.granularity)
        values = np.concatenate([state.values, steps[None, :]])
        coefficients = _inner(self.horizon)[: len(values)][::-1]
        row = _apply(coefficients, values)
        row += noise.discrete_gaussian(scale=self.scale / self._fine, size=self.dimension)
        noisy = np.concatenate([state.noisy, row[None, :]])
        return SquareRootState(contract.frozen(values), contract.frozen(noisy))

    def release(self, *, state: SquareRootState) -> Released[Floats]:
        """Return B applied to the noisy rows; before the first step, nothing."""
        weights = _outer(self.horizon)[: state.step][::-1]
        noisy = weights @ state.noisy.astype(np.float64) * self._fine
        return Released(noisy, self.event)

    def variance(self, step: int) -> float:
        """Return the sum of the squares of B's last row times the variance of one noise."""
        contract.check_step(step, self.horizon)
        row = contract.gaussian_variance(self.scale / self._fine) * self._fine**2
        return float((_outer(self.horizon)[:step] ** 2).sum()) * row

    def encode(self, state: SquareRootState) -> Integers:
        """Return the number of steps, the steps and the noisy rows, one after the other."""
        return np.concatenate(
            [np.array([state.step]), state.values.reshape(-1), state.noisy.reshape(-1)]
        )

    def decode(self, vector: Integers) -> SquareRootState:
        """Return the state, refusing a vector of another length or an impossible step."""
        step = int(vector[0]) if vector.ndim == 1 and len(vector) else -1
        if not 0 <= step <= self.horizon or vector.dtype != np.int64:
            raise InvalidArgument("vector", "does not belong to a sum of these parameters")
        if len(vector) != 1 + 2 * step * self.dimension:
            raise InvalidArgument("vector", "must hold two rows of integers for each step")
        values, noisy = vector[1:].copy().reshape(2, step, self.dimension)
        return SquareRootState(contract.frozen(values), contract.frozen(noisy))


def _apply(coefficients: Integers, values: Integers) -> Integers:
    """Return the next row of C x, exactly."""
    if int(np.abs(values).max()) * int(coefficients.sum()) >= _MOST:
        raise StateOverflow("a running sum would leave 64 bits; use a coarser granularity")
    return coefficients @ values


@lru_cache(maxsize=8)
def _root(horizon: int) -> Floats:
    k = np.arange(1, horizon, dtype=np.float64)
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])


@lru_cache(maxsize=8)
def _inner(horizon: int) -> Integers:
    """Return F in units of 2**-20: the first column of C."""
    return contract.frozen(np.rint(_root(horizon) / _UNIT).astype(np.int64))


@lru_cache(maxsize=8)
def _outer(horizon: int) -> Floats:
    """Return the first column of B: f - e + e**2/f, where 1/f = (1 - w)**(1/2)."""
    f = _root(horizon)
    e = _inner(horizon) * _UNIT - f
    k = np.arange(1, horizon, dtype=np.float64)
    inverse = np.concatenate([[1.0], np.cumprod((2 * k - 3) / (2 * k))])
    outer = f - e + _multiply(_multiply(e, e), inverse)
    outer.flags.writeable = False
    return outer


def _multiply(one: Floats, two: Floats) -> Floats:
    """Return the product of two power series, as far as they go."""
    size = 1 << (2 * len(one) - 1).bit_length()
    product: Floats = np.fft.irfft(np.fft.rfft(one, size) * np.fft.rfft(two, size), size)
    return product[: len(one)]


@lru_cache(maxsize=8)
def _column_norm(horizon: int) -> float:
    """Return the Euclidean norm of F, rounded up, from exact integers."""
    column = _inner(horizon)
    total = int(column @ column)  # below 2**40 * (2 + ln(2**24)), far from 2**63
    root = Fraction(math.isqrt((total << 64) - 1) + 1, 1 << (32 + _BITS))
    return math.nextafter(float(root), math.inf)
