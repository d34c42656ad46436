"""Continual sums broken on purpose, put before the examinations of `sums`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.audit.claims import PlantedFault
from discreet.audit.mechanisms.sums import (
    STEPS,
    Sums,
    examine_stream,
    examine_stream_by_sampling,
    examine_variance,
)
from discreet.privacy.events import Released
from discreet.privacy.noise import NoiseSource
from discreet.research.continual import BinaryTree, DyadicState, SmoothBinary

Floats = npt.NDArray[np.float64]

VALUES = (0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneLevelTooFew(BinaryTree):
    """The noise of a tree with a level less than it has."""

    @property
    def most_nodes(self) -> int:
        return self.height - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OneNoiseForAll(BinaryTree):
    """The first node's noise, kept and added to every release: steps are differences of two."""

    def observe(
        self, *, state: DyadicState, value: npt.ArrayLike, noise: NoiseSource
    ) -> DyadicState:
        after = BinaryTree.observe(self, state=state, value=value, noise=noise)
        kept = np.zeros_like(after.noise)
        kept[0] = state.noise[0] if state.step else after.noise[0]
        return DyadicState(after.step, after.leaf, after.total, kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseDrawnAnew(BinaryTree):
    """Fresh noise on old nodes at every step: looking often enough averages it away."""

    def observe(
        self, *, state: DyadicState, value: npt.ArrayLike, noise: NoiseSource
    ) -> DyadicState:
        after = BinaryTree.observe(self, state=state, value=value, noise=noise)
        fresh = after.noise.copy()
        for bit in range(self.height):
            if after.leaf >> bit & 1:
                fresh[bit] = self._draw(noise, self.dimension)
        return DyadicState(after.step, after.leaf, after.total, fresh)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallerThanStated(SmoothBinary):
    """Seven tenths of the noise that `variance` and `event` speak of."""

    def release(self, *, state: DyadicState) -> Released[Floats]:
        honest = SmoothBinary.release(self, state=state)
        exact = state.total.astype(np.float64) * self.granularity
        return Released(exact + 0.7 * (honest.value - exact), honest.event)


def _of(kind: Callable[..., Any]) -> Callable[[int], Sums]:
    def family(dimension: int) -> Sums:
        sums: Sums = kind(horizon=STEPS, multiplier=1.0, dimension=dimension)
        return sums

    return family


def faults() -> Iterator[PlantedFault]:
    """Yield every broken sum with the examination that must notice it."""
    yield PlantedFault(
        "tree calibrated for one level too few",
        lambda _: examine_stream(_of(OneLevelTooFew)(1), steps=STEPS, values=VALUES),
    )
    yield PlantedFault(
        "reused noise: one draw for a whole stream",
        lambda _: examine_stream(_of(OneNoiseForAll)(1), steps=STEPS, values=VALUES),
    )
    yield PlantedFault(
        "reused noise, found by sampling alone",
        lambda run: examine_stream_by_sampling(run, _of(OneNoiseForAll), steps=3, size=4_000),
    )
    yield PlantedFault(
        "node noise drawn anew at every release",
        lambda _: examine_stream(_of(NoiseDrawnAnew)(1), steps=STEPS, values=VALUES),
    )
    yield PlantedFault(
        "continual sum with 0.7 times the noise of its stated variance",
        lambda run: examine_variance(run, _of(SmallerThanStated), steps=5, size=8_000),
    )
    yield PlantedFault(
        "continual sum with 0.7 times the noise that is charged",
        lambda _: examine_stream(_of(SmallerThanStated)(1), steps=STEPS, values=VALUES),
    )
