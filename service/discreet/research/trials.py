"""Many runs at once: every contender on every seed, over the machine's cores.

A trial is a value that another process can be given; what it returns depends on nothing else, so
the number of processes changes only how long it takes.
"""

import asyncio
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Protocol, TypeVar

from discreet.errors import InvalidArgument
from discreet.research.contenders import Contender
from discreet.research.run import Run, run
from discreet.research.worlds import World

Outcome = TypeVar("Outcome")
Outcome_co = TypeVar("Outcome_co", covariant=True)

MakeWorld = Callable[[int], World]
"""A world by its seed. It must be picklable: a partial of something importable."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One contender in one world."""

    contender: Contender
    world: MakeWorld
    rounds: int
    seed: int

    def run(self) -> Run:
        """Play it."""
        return asyncio.run(self._run())

    async def _run(self) -> Run:
        world = self.world(self.seed)
        player = await self.contender.open(world=world, rounds=self.rounds, seed=self.seed)
        try:
            return await run(player=player, world=world, rounds=self.rounds, seed=self.seed)
        finally:
            await player.close()


class Playable(Protocol[Outcome_co]):
    """Something to be played in a process of its own."""

    @property
    def rounds(self) -> int:
        """Return how long it is."""
        ...

    def run(self) -> Outcome_co:
        """Play it."""
        ...


def play_all(
    trials: Sequence[Playable[Outcome]],
    *,
    progress: Callable[[int], None] = lambda at: None,
    processes: int | None = None,
) -> list[Outcome]:
    """Play every trial and return what came of each, in order.

    `progress` hears the position of each that is finished.
    """
    if processes is not None and processes < 1:
        raise InvalidArgument("processes", "must be at least 1")
    workers = min(processes or os.cpu_count() or 1, len(trials))
    if workers <= 1:
        outcomes = []
        for at, trial in enumerate(trials):
            outcomes.append(trial.run())
            progress(at)
        return outcomes
    # Long trials first, so that no core is left waiting for one at the end.
    order = sorted(range(len(trials)), key=lambda at: -trials[at].rounds)
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        futures: dict[Future[Outcome], int] = {pool.submit(trials[at].run): at for at in order}
        try:
            for future in as_completed(futures):
                future.result()
                progress(futures[future])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    done = {at: future.result() for future, at in futures.items()}
    return [done[at] for at in range(len(trials))]
