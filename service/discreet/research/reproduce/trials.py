"""Many runs at once, over the machine's cores.

A trial is a value that another process can be given. Its result depends on nothing else, so the
number of processes changes only how long it takes.
"""

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from typing import Protocol, TypeVar

from discreet.errors import InvalidArgument
from discreet.research.reproduce.papers import ProgressWatcher

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class Trial(Protocol[Result_co]):
    """Something to be run in a process of its own. It must be picklable."""

    @property
    def rounds(self) -> int:
        """Return how long it is."""
        ...

    @property
    def label(self) -> str:
        """Return what to show while it runs."""
        ...

    def run(self) -> Result_co:
        """Run it."""
        ...


def _watch_nothing(done: int, total: int, what: str) -> None:
    pass


def run_all(
    trials: Sequence[Trial[Result]],
    *,
    watch: ProgressWatcher = _watch_nothing,
    processes: int | None = None,
) -> list[Result]:
    """Run every trial and return the results in order.

    `watch` is called with the rounds that are done, of all rounds.
    """
    if processes is not None and processes < 1:
        raise InvalidArgument("processes", "must be at least 1")
    total = sum(trial.rounds for trial in trials)
    done = 0

    def finished(trial: Trial[Result]) -> None:
        nonlocal done
        done += trial.rounds
        watch(done, total, trial.label)

    watch(0, total, "starting")
    workers = min(processes or os.cpu_count() or 1, len(trials))
    if workers <= 1:
        results = []
        for trial in trials:
            results.append(trial.run())
            finished(trial)
        return results
    # Long trials first, so that no core is left waiting for one at the end.
    order = sorted(range(len(trials)), key=lambda at: -trials[at].rounds)
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        futures: dict[Future[Result], int] = {pool.submit(trials[at].run): at for at in order}
        try:
            for future in as_completed(futures):
                future.result()
                finished(trials[futures[future]])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    by_place = {at: future.result() for future, at in futures.items()}
    return [by_place[at] for at in range(len(trials))]
