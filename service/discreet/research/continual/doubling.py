"""A continual sum without a horizon: a new one for every epoch, each twice as long.

Steps 2**e to 2**(e+1) - 1 (counted from 1) form epoch e and have a sum of horizon 2**e of their
own. The release is the noisy totals of the closed epochs plus the release of the open one.

Why epochs do not compose. A step enters one epoch and no other, and where epochs end is fixed by
counting, so two neighbouring streams differ in one epoch only; all other epochs release the same
numbers with the same distribution. The whole stream therefore costs what one epoch costs, and all
epochs cost the same, because noise is set by the multiplier: the sensitivity of longer epochs
grows, and their noise with it.

Closed epochs. An epoch's last release already is a noisy total. For the tree that is one node, and
cannot be bettered; `share` = 0 uses it. For the other sums it has the noise of a whole prefix, and
log2(T) of these add up; a `share` of the privacy is then better spent on one noisy total for each
epoch (as in the logarithmic mechanism of Chan, Shi and Song 2011). Within an epoch the running sum
and the total are two releases about the same step, which compose exactly: for Gaussian noise
1/m**2 = 1/m_sums**2 + 1/m_total**2, with share = (m/m_total)**2; for Laplace 1/m = 1/m_sums +
1/m_total, with share = m/m_total. So the stream is one release of multiplier m.

Memory is that of the open epoch's sum, and one vector.
"""

import math
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.privacy.events import GaussianRelease, LaplaceRelease, Released
from discreet.privacy.noise import MAX_SCALE, Integers, NoiseSource
from discreet.privacy.numeric import GRANULARITY
from discreet.research.continual import contract
from discreet.research.continual.contract import ContinualSum, Floats


class _Counted(Protocol):
    @property
    def step(self) -> int: ...


S = TypeVar("S", bound=_Counted)


class Family(Protocol[S]):
    """What makes the sum of one epoch: any of the classes of this package with a horizon."""

    def __call__(
        self,
        *,
        horizon: int,
        multiplier: float,
        dimension: int,
        step_sensitivity: float,
        granularity: float,
    ) -> ContinualSum[S]:
        """Return a sum of that horizon and privacy."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class DoublingState(Generic[S]):
    """`closed` is the noisy sum of closed epochs; `total` and `open` are the open one's."""

    epoch: int
    closed: Floats
    total: Integers
    open: S


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubling(Generic[S]):
    """A sum of `family` for every epoch. Its scale is in units of its own sensitivity, 1."""

    family: Family[S]
    multiplier: float
    share: float = 0.5
    dimension: int = 1
    step_sensitivity: float = 1.0
    granularity: float = GRANULARITY

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise InvalidArgument("share", "must lie in [0, 1)")
        self._sum(0)  # refuses what is wrong with the other parameters
        if self.share > 0:
            contract.check_scale(self._total_scale, self.granularity, MAX_SCALE)

    @property
    def horizon(self) -> None:
        """None: the stream may go on for ever."""
        return

    @property
    def sensitivity(self) -> float:
        """The unit in which `event` states its scale."""
        return 1.0

    @property
    def event(self) -> GaussianRelease | LaplaceRelease:
        """One release of this multiplier, which every epoch is and no step enters twice."""
        if self._is_laplace:
            return LaplaceRelease(scale=self.multiplier, sensitivity=1.0)
        return GaussianRelease(scale=self.multiplier, sensitivity=1.0)

    @property
    def _is_laplace(self) -> bool:
        probe = self.family(
            horizon=1, multiplier=1.0, dimension=1, step_sensitivity=1.0, granularity=1.0
        )
        return isinstance(probe.event, LaplaceRelease)

    def _part(self, share: float) -> float:
        """Return the multiplier of a release that may spend this share of the privacy."""
        portion = share if self._is_laplace else math.sqrt(share)
        return self.multiplier / portion * contract.UP

    def _sum(self, epoch: int) -> ContinualSum[S]:
        return self.family(
            horizon=1 << epoch,
            multiplier=self._part(1 - self.share),
            dimension=self.dimension,
            step_sensitivity=self.step_sensitivity,
            granularity=self.granularity,
        )

    @property
    def _total_scale(self) -> float:
        grid = contract.l1_after_rounding if self._is_laplace else contract.l2_after_rounding
        step = grid(self.step_sensitivity, self.dimension, self.granularity)
        return self._part(self.share) * step * contract.UP

    def start(self) -> DoublingState[S]:
        """Return the state before the first step."""
        return DoublingState(
            epoch=0,
            closed=_still(np.zeros(self.dimension)),
            total=contract.frozen(np.zeros(self.dimension, dtype=np.int64)),
            open=self._sum(0).start(),
        )

    def observe(
        self, *, state: DoublingState[S], value: npt.ArrayLike, noise: NoiseSource
    ) -> DoublingState[S]:
        """Add one step, closing the epoch first if it is full."""
        steps = contract.to_steps(value, dimension=self.dimension, granularity=self.granularity)
        if state.open.step == 1 << state.epoch:
            state = self._close(state, noise)
        return DoublingState(
            epoch=state.epoch,
            closed=state.closed,
            total=contract.add(state.total, steps),
            open=self._sum(state.epoch).observe(state=state.open, value=value, noise=noise),
        )

    def _close(self, state: DoublingState[S], noise: NoiseSource) -> DoublingState[S]:
        if self.share > 0:
            draw = noise.discrete_laplace if self._is_laplace else noise.discrete_gaussian
            drawn = draw(scale=self._total_scale / self.granularity, size=self.dimension)
            noisy = (state.total + drawn).astype(np.float64) * self.granularity
        else:
            noisy = self._sum(state.epoch).release(state=state.open).value
        return DoublingState(
            epoch=state.epoch + 1,
            closed=_still(state.closed + noisy),
            total=contract.frozen(np.zeros(self.dimension, dtype=np.int64)),
            open=self._sum(state.epoch + 1).start(),
        )

    def release(self, *, state: DoublingState[S]) -> Released[Floats]:
        """Return the closed epochs' noisy totals plus the open epoch's release."""
        running = self._sum(state.epoch).release(state=state.open).value
        return Released(state.closed + running, self.event)

    def variance(self, step: int) -> float:
        """Return the sum of the closed epochs' variances and the open one's."""
        contract.check_step(step, None)
        if step == 0:
            return 0.0
        epoch = step.bit_length() - 1
        running = self._sum(epoch).variance(step - (1 << epoch) + 1)
        if self.share == 0:
            return running + sum(self._sum(e).variance(1 << e) for e in range(epoch))
        exact = contract.laplace_variance if self._is_laplace else contract.gaussian_variance
        return running + epoch * exact(self._total_scale / self.granularity) * self.granularity**2

    def encode(self, state: DoublingState[S]) -> Integers:
        """Return the epoch, the closed sum's bits, the open total and the open sum's state."""
        return np.concatenate(
            [
                np.array([state.epoch]),
                state.closed.view(np.int64),
                state.total,
                self._sum(state.epoch).encode(state.open),
            ]
        )

    def decode(self, vector: Integers) -> DoublingState[S]:
        """Return the state, refusing a vector that is no such state."""
        if vector.ndim != 1 or vector.dtype != np.int64 or len(vector) <= 2 * self.dimension:
            raise InvalidArgument("vector", "does not belong to a sum of these parameters")
        epoch = int(vector[0])
        if not 0 <= epoch < contract.MOST_HORIZON.bit_length():
            raise InvalidArgument("vector", "does not belong to a sum of these parameters")
        closed, total, rest = np.split(vector[1:].copy(), [self.dimension, 2 * self.dimension])
        return DoublingState(
            epoch=epoch,
            closed=_still(closed.view(np.float64)),
            total=contract.frozen(total),
            open=self._sum(epoch).decode(rest),
        )


def _still(array: Floats) -> Floats:
    array.flags.writeable = False
    return array
