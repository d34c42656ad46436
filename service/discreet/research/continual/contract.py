"""What every continual sum promises, and the arithmetic that they share.

A continual sum is a frozen set of parameters; what it has seen is a state beside it:

    state = sums.start()
    state = sums.observe(state=state, value=..., noise=...)    once for each step of the stream
    sums.release(state=state)                                  as often as one likes

Unit of privacy: one step. Neighbouring streams differ in the value of one step, by at most
`step_sensitivity` (in L2 for Gaussian noise, in L1 for Laplace), whatever later steps were chosen
after seeing earlier releases. A step may be the sum over a batch of records, each of which may
change it by that much.

Payment: `event` is the whole stream, every release of every step. It is charged once, before the
first release; charging it more often only overpays.

States and noise: `observe` draws the noise of the partial sums that the step completes, keeps it
in the state that it returns, and never draws it again; `release` draws nothing, so the same state
always gives the same answer, and an average over repeated releases learns nothing. The other side
of that coin: **from one state, observe once**. Save the new state before anything is released from
it. Two futures drawn from one past would put two different noises on the same partial sum, and
their difference would pay for neither.
"""

import math
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument, StateOverflow
from discreet.privacy.events import GaussianRelease, LaplaceRelease, Released
from discreet.privacy.noise import Integers, NoiseSource

Floats = npt.NDArray[np.float64]

S = TypeVar("S")

UP = 1 + 2.0**-50
"""More than the few roundings of a closed formula can lose."""

MOST_HORIZON = 2**50

_MOST = 2**62


class ContinualSum(Protocol[S]):
    """Prefix sums of a stream of vectors. See the module's page for the rules."""

    @property
    def horizon(self) -> int | None:
        """The most steps that the stream may have; None if it may go on for ever."""
        ...

    @property
    def dimension(self) -> int:
        """How many numbers one step has."""
        ...

    @property
    def sensitivity(self) -> float:
        """How far one step can move all noisy partial sums together, rounded up."""
        ...

    @property
    def event(self) -> GaussianRelease | LaplaceRelease:
        """What releasing the whole stream is."""
        ...

    def start(self) -> S:
        """Return the state before the first step."""
        ...

    def observe(self, *, state: S, value: npt.ArrayLike, noise: NoiseSource) -> S:
        """Return the state after one more step; `state` itself must not be used again."""
        ...

    def release(self, *, state: S) -> Released[Floats]:
        """Return the noisy sum of all steps so far. Before the first step it is exactly 0."""
        ...

    def variance(self, step: int) -> float:
        """Return the exact variance of each coordinate of the sum released after `step` steps."""
        ...

    def encode(self, state: S) -> Integers:
        """Return the state as one vector of 64-bit integers. It holds exact sums: keep it safe."""
        ...

    def decode(self, vector: Integers) -> S:
        """Return the state that `encode` gave, refusing anything else by its shape."""
        ...


def check_parameters(
    *, horizon: int, dimension: int, multiplier: float, step_sensitivity: float, granularity: float
) -> None:
    """Refuse parameters that describe no stream."""
    if not 1 <= horizon <= MOST_HORIZON:
        raise InvalidArgument("horizon", "must lie between 1 and 2**50")
    if dimension < 1:
        raise InvalidArgument("dimension", "must be at least 1")
    if not (math.isfinite(multiplier) and multiplier > 0):
        raise InvalidArgument("multiplier", "must be finite and greater than 0")
    if not (math.isfinite(step_sensitivity) and step_sensitivity > 0):
        raise InvalidArgument("step_sensitivity", "must be finite and greater than 0")
    if not (2.0**-512 <= granularity <= 2.0**512 and math.frexp(granularity)[0] == 0.5):
        raise InvalidArgument("granularity", "must be a power of two")


def check_scale(scale: float, granularity: float, most: float) -> None:
    """Refuse noise so wide in steps of the grid that 64 bits might not hold it."""
    if not scale / granularity <= most:
        raise InvalidArgument("granularity", "must be coarser for noise of this scale")


def check_step(step: int, horizon: int | None) -> None:
    """Refuse a step that the stream cannot reach."""
    if step < 0 or (horizon is not None and step > horizon):
        raise InvalidArgument("step", "must lie between 0 and the horizon")


def check_room(step: int, horizon: int) -> None:
    """Refuse to observe past the horizon: the noise was calibrated for that many steps."""
    if step >= horizon:
        raise InvalidArgument("state", "has reached its horizon; start a new sum or use Doubling")


def l2_after_rounding(step_sensitivity: float, dimension: int, granularity: float) -> float:
    """Return the L2 sensitivity of a step on the grid: rounding moves each coordinate by half."""
    return (step_sensitivity + math.sqrt(dimension) * granularity) * UP


def l1_after_rounding(step_sensitivity: float, dimension: int, granularity: float) -> float:
    """Return the same in L1."""
    return (step_sensitivity + dimension * granularity) * UP


def to_steps(value: npt.ArrayLike, *, dimension: int, granularity: float) -> Integers:
    """Return one step's value in whole steps of the grid."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgument("value", "must be real numbers") from error
    array = array.reshape(1) if array.ndim == 0 else array
    if array.shape != (dimension,):
        raise InvalidArgument("value", f"must be a vector of length {dimension}")
    steps = np.rint(array / granularity)
    if not np.abs(steps).max() < _MOST:  # a NaN is not below anything
        raise InvalidArgument("value", "must be finite and below 2**62 steps of the granularity")
    return steps.astype(np.int64)


def add(total: Integers, steps: Integers) -> Integers:
    """Return the sum of two vectors below 2**62 each, refusing one that is not."""
    result = total + steps  # each below 2**62, so that this cannot wrap
    if not np.abs(result).max() < _MOST:
        raise StateOverflow("a running sum would leave its 64-bit field; use a coarser granularity")
    return frozen(result)


def frozen(array: Integers) -> Integers:
    """Make an array of a state as immutable as the dataclass that holds it."""
    array.flags.writeable = False
    return array


def gaussian_variance(steps: float) -> float:
    """Return the exact variance of the discrete Gaussian of this scale, in steps.

    Beyond scale 6 it differs from the square of the scale by a relative 1e-300 (Poisson
    summation); below, the sum is taken.
    """
    if steps > 6:
        return steps * steps
    z = np.arange(1, 100, dtype=np.float64)
    weights = np.exp(-0.5 * (z / steps) ** 2)
    return float(2 * (z * z * weights).sum() / (1 + 2 * weights.sum()))


def laplace_variance(steps: float) -> float:
    """Return the exact variance of the discrete Laplace of this scale, in steps."""
    half = 0.5 / steps
    return 0.0 if half > 350 else 0.5 / math.sinh(half) ** 2
