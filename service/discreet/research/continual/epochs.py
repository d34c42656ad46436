"""A continual sum without a horizon: one of a fixed length after the other.

Steps 1 to L form the first epoch, L + 1 to 2L the second, and so on; each has a sum of horizon L of
its own. The release is the last releases of the closed epochs plus the release of the open one.

Why epochs do not compose. A step enters one epoch and no other, and where epochs end is fixed by
counting, so two neighbouring streams differ in one epoch only; all other epochs release the same
numbers with the same distribution, whatever was chosen after seeing earlier releases. The whole
stream therefore costs what one epoch costs.

When to prefer this to `Doubling`. Closed epochs add their whole noise, so the variance grows with
the number of epochs where `Doubling`'s grows with its logarithm. In exchange the first epoch has
the noise of one sum. With square roots of length 16 this is the smaller noise for the first 60
steps or so; and a caller whose batches grow geometrically never makes many more.

Memory is that of the open epoch's sum, and one vector: it does not grow with the stream.
"""

from dataclasses import dataclass
from typing import Generic

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.privacy.events import GaussianRelease, LaplaceRelease, Released
from discreet.privacy.noise import Integers, NoiseSource
from discreet.privacy.numeric import GRANULARITY
from discreet.research.continual import contract
from discreet.research.continual.contract import ContinualSum, Floats
from discreet.research.continual.doubling import Family, S

_MOST_EPOCHS = 2**31
"""At one step a second an epoch of one step, this is a lifetime."""


@dataclass(frozen=True, slots=True, eq=False)
class EpochsState(Generic[S]):
    """`closed` is the noisy sum of the `epoch` closed epochs; `open` is the open one's state."""

    epoch: int
    closed: Floats
    open: S


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs(Generic[S]):
    """A sum of `family` for every `length` steps."""

    family: Family[S]
    length: int
    multiplier: float
    dimension: int = 1
    step_sensitivity: float = 1.0
    granularity: float = GRANULARITY

    def __post_init__(self) -> None:
        if self.length < 1:
            raise InvalidArgument("length", "must be at least 1")
        self._sum()  # refuses what is wrong with the other parameters

    @property
    def horizon(self) -> None:
        """None: the stream may go on for ever."""
        return

    @property
    def sensitivity(self) -> float:
        """How far one step can move the noisy partial sums of its epoch together."""
        return self._sum().sensitivity

    @property
    def event(self) -> GaussianRelease | LaplaceRelease:
        """What one epoch is, which no step enters twice."""
        return self._sum().event

    def _sum(self) -> ContinualSum[S]:
        return self.family(
            horizon=self.length,
            multiplier=self.multiplier,
            dimension=self.dimension,
            step_sensitivity=self.step_sensitivity,
            granularity=self.granularity,
        )

    def start(self) -> EpochsState[S]:
        """Return the state before the first step."""
        return EpochsState(0, _still(np.zeros(self.dimension)), self._sum().start())

    def observe(
        self, *, state: EpochsState[S], value: npt.ArrayLike, noise: NoiseSource
    ) -> EpochsState[S]:
        """Add one step, closing the epoch first if it is full."""
        sums = self._sum()
        epoch, closed, opened = state.epoch, state.closed, state.open
        if opened.step == self.length:
            closed = _still(closed + sums.release(state=opened).value)
            epoch, opened = epoch + 1, sums.start()
        return EpochsState(epoch, closed, sums.observe(state=opened, value=value, noise=noise))

    def release(self, *, state: EpochsState[S]) -> Released[Floats]:
        """Return the closed epochs' last releases plus the open epoch's."""
        return Released(state.closed + self._sum().release(state=state.open).value, self.event)

    def variance(self, step: int) -> float:
        """Return the closed epochs' variances and the open one's."""
        contract.check_step(step, None)
        if step == 0:
            return 0.0
        closed, place = divmod(step - 1, self.length)
        sums = self._sum()
        return closed * sums.variance(self.length) + sums.variance(place + 1)

    def encode(self, state: EpochsState[S]) -> Integers:
        """Return the epoch, the closed sum's bits and the open sum's state."""
        return np.concatenate(
            [
                np.array([state.epoch]),
                state.closed.view(np.int64),
                self._sum().encode(state.open),
            ]
        )

    def decode(self, vector: Integers) -> EpochsState[S]:
        """Return the state, refusing a vector that is no such state."""
        if vector.ndim != 1 or vector.dtype != np.int64 or len(vector) <= 1 + self.dimension:
            raise InvalidArgument("vector", "does not belong to a sum of these parameters")
        epoch = int(vector[0])
        if not 0 <= epoch < _MOST_EPOCHS:
            raise InvalidArgument("vector", "does not belong to a sum of these parameters")
        closed, rest = np.split(vector[1:].copy(), [self.dimension])
        return EpochsState(epoch, _still(closed.view(np.float64)), self._sum().decode(rest))


def _still(array: Floats) -> Floats:
    array.flags.writeable = False
    return array
