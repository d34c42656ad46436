"""One learner in one world at two epsilons: a trial, and what came of it.

Results are kept in blocks of 250 rounds, so that one run tells what a run of fewer rounds would
have told: no learner knows how long it will be.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np

from discreet.errors import InvalidArgument
from discreet.research.rivals.context_free import (
    ChanceLearner,
    PopularityLearner,
    PrivatePopularityLearner,
)
from discreet.research.rivals.linucb import LinUcbLearner
from discreet.research.rivals.vowpal import VowpalLearner
from discreet.research.suite.ceiling import private_optimum
from discreet.research.suite.recorded import RECORDED
from discreet.research.suite.served import ALGORITHMS, ServedLearner
from discreet.research.suite.stretches import BLOCK, Places, Stretch, SuiteWorld
from discreet.research.suite.worlds import WORLDS
from discreet.research.worlds.environments import Floats

CONTEXT_FREE = ("popular", "chance")
RIVALS = {"linucb": "mabwiser", "vw": "vowpalwabbit"}
"""Rivals that look at the context, and the packages that they need."""
HOW_TO_RIVAL = "rivals are left out without {missing}: pip install 'discreet[research]'"

_NO_ANSWERS = (None,)


class SuitePlayer(Protocol):
    """A learner at work."""

    async def play(self, stretch: Stretch, *, seed: int) -> Places:
        """Answer every visit of the stretch, learn from it, and return the items' places."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class SuiteResult:
    """Sums over blocks of rounds.

    `earned` is what the answers were worth; `ceilings` holds what the private optimum earns at each
    epsilon of answers, and `fixed` what every item would have earned that was on offer (NaN where
    it was not). `seconds` is the learner's own CPU time.
    """

    dimensions: int
    items: int
    earned: Floats
    ceilings: Mapping[float | None, Floats]
    fixed: Floats
    seconds: Floats


@dataclass(frozen=True, slots=True)
class SuiteTrial:
    """What to run. `answers` and `feedback` are epsilons; None is exact.

    `compared` are the epsilons whose ceilings are wanted: a learner that ignores the context is
    run once and stands beside all of them.
    """

    world: str
    learner: str
    answers: float | None
    feedback: float | None
    rounds: int
    seed: int
    rate: float
    compared: tuple[float | None, ...] = _NO_ANSWERS
    data: Path | None = None

    @property
    def label(self) -> str:
        """Return what to show while it runs."""
        return f"{self.world}: {self.learner}"

    def run(self) -> SuiteResult:
        """Play it."""
        return asyncio.run(self._run())

    async def _run(self) -> SuiteResult:
        world = open_world(self.world, seed=self.seed, data=self.data)
        player = self._player()
        tally = _Tally(self.compared)
        try:
            for stretch in world.stretches(rounds=self.rounds, seed=self.seed):
                began = time.process_time()
                chosen = await player.play(stretch, seed=self.seed)
                tally.add(stretch, chosen, time.process_time() - began)
        finally:
            await player.close()
        return tally.result(world)

    def _player(self) -> SuitePlayer:
        if self.learner in ALGORITHMS:
            return ServedLearner(
                algorithm=self.learner,
                answers=self.answers,
                feedback=self.feedback,
                rate=self.rate,
            )
        if self.learner == "linucb":
            return LinUcbLearner(self.answers)
        if self.learner == "vw":
            return VowpalLearner(self.answers)
        if self.learner == "chance":
            return ChanceLearner()
        if self.feedback is None:
            return PopularityLearner()
        return PrivatePopularityLearner(feedback=self.feedback, rate=self.rate)


def open_world(name: str, *, seed: int, data: Path | None = None) -> SuiteWorld:
    """Return a world of the suite, or raise `InvalidArgument` with the names."""
    if name in WORLDS:
        return WORLDS[name](seed)
    if name in RECORDED and data is not None:
        return RECORDED[name](data)
    needs = " (those of --data too)" if data is None else ""
    known = ", ".join([*WORLDS, *RECORDED])
    raise InvalidArgument("--worlds", f"{name!r} is not there{needs}; there are {known}")


def missing_rivals() -> list[str]:
    """Return the packages that rivals need and that are not installed."""
    return [package for package in RIVALS.values() if find_spec(package) is None]


class _Tally:
    """Adds up what came of stretches, in blocks."""

    def __init__(self, compared: tuple[float | None, ...]) -> None:
        self._earned: list[float] = []
        self._seconds: list[float] = []
        self._ceilings: dict[float | None, list[float]] = {epsilon: [] for epsilon in compared}
        self._fixed: list[dict[int, float]] = []

    def add(self, stretch: Stretch, chosen: Places, seconds: float) -> None:
        worth = stretch.worth(chosen)
        starts = range(0, len(chosen), BLOCK)
        for start in starts:
            rows = slice(start, start + BLOCK)
            self._earned.append(float(worth[rows].sum()))
            self._seconds.append(seconds / len(starts))
            totals = stretch.means[rows].sum(axis=0).tolist()
            self._fixed.append(dict(zip(stretch.offered.tolist(), totals, strict=True)))
        for epsilon, kept in self._ceilings.items():
            best = private_optimum(stretch.means, epsilon)
            kept += [float(best[start : start + BLOCK].sum()) for start in starts]

    def result(self, world: SuiteWorld) -> SuiteResult:
        every = 1 + max(max(offered) for offered in self._fixed)
        fixed = np.full((len(self._fixed), every), np.nan)
        for row, totals in enumerate(self._fixed):
            fixed[row, list(totals)] = list(totals.values())
        return SuiteResult(
            dimensions=world.dimensions,
            items=world.items,
            earned=np.array(self._earned),
            ceilings={epsilon: np.array(kept) for epsilon, kept in self._ceilings.items()},
            fixed=fixed,
            seconds=np.array(self._seconds),
        )
