"""Recommenders that come and go, thousands of times: nothing of them stays in any worker.

python -m tests.chaos.soak --cycles 1000
"""

import argparse
import asyncio
import gc
import statistics
import sys
import tempfile
import tracemalloc
import weakref
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from discreet.decisions.services import DecisionServices, open_services
from discreet.errors import DiscreetError
from discreet.families.contract import Recommender
from discreet.families.questions import Feedback
from discreet.families.registration import read_document
from discreet.metrics import Metrics
from discreet.privacy.noise import SystemNoise
from discreet.state.embedded import EmbeddedStore
from discreet.state.redis_store import open_store
from tests.contracts.samples import SAMPLES, asks

WORKERS = 2
_LEASE = 0.02


Recommenders = weakref.WeakSet[Recommender[Any]]


def live() -> Recommenders:
    """Return the recommenders in memory, of all workers: what is gone they have to free."""
    return weakref.WeakSet(each for each in gc.get_objects() if isinstance(each, Recommender))


def kept(services: DecisionServices) -> int:
    """Return how much a worker keeps by recommender beside the recommenders themselves."""
    background = services.background
    return len(background._tasks) + len(background._rest_until) + len(services.registry.loaded())


async def soak(url: str, cycles: int, look: "list[tuple[int, int, int]]") -> None:
    """Create, use and remove recommenders of every family in turn; note what is left.

    Each look is: recommenders in memory, entries kept by workers, bytes allocated by Python.
    """
    others = live()  # of other tests in this process
    counted = [Metrics(version="soak") for _ in range(WORKERS)]
    workers = [await _worker(url, metrics) for metrics in counted]
    families = sorted(SAMPLES)
    gc.collect()
    gc.disable()  # a worker in service looks for garbage by itself next to never
    tracemalloc.start()
    try:
        for cycle in range(cycles):
            algorithm = families[cycle % len(families)]
            name = f"r{cycle}"
            maker, user = workers[cycle % WORKERS], workers[(cycle + 1) % WORKERS]
            await maker.registry.put(name, _document(algorithm))
            for worker in (maker, user):
                await worker.registry.refresh()
                await _use(worker, algorithm, name)
            if SAMPLES[algorithm].releases:
                await maker.releaser.release(await maker.registry.find(name))
            await maker.registry.remove(name)
            for worker, metrics in zip(workers, counted, strict=True):
                await worker.registry.refresh()
                for _ in range(2):  # as the application does every second
                    metrics.set_recommenders(
                        {one.name: one.algorithm for one in worker.registry.loaded()}
                    )
            if cycle % len(families) == len(families) - 1:
                look.append(await _look(workers, others))
    finally:
        tracemalloc.stop()
        gc.enable()
        for worker in workers:
            await worker.close()


def _document(algorithm: str) -> Any:
    return read_document({"algorithm": algorithm, **SAMPLES[algorithm].document})


async def _worker(url: str, metrics: Metrics) -> DecisionServices:
    return await open_services(
        store=open_store(url, timeout=30),
        noise=SystemNoise(),
        observer=metrics,
        lease_seconds=_LEASE,
    )


async def _use(worker: DecisionServices, algorithm: str, name: str) -> None:
    for ask in asks(algorithm)[:2]:
        # Some families have nothing to answer from before they were given more.
        with suppress(DiscreetError):
            answer = await worker.recommend.recommend(ask._replace(recommender=name))
            feedback = Feedback(reward=1.0, recommendation_id=answer.recommendation_id)
            await worker.feedback.record(feedback)


async def _look(workers: Sequence[DecisionServices], others: Recommenders) -> tuple[int, int, int]:
    for worker in workers:
        await worker.registry.refresh()
    async with asyncio.timeout(600):
        # What is under way for a recommender that was just removed ends by itself.
        while len(live() - others) or any(map(kept, workers)):  # noqa: ASYNC110  nobody tells us
            await asyncio.sleep(0.05)
    left = len(live() - others)
    gc.collect()  # of what else is garbage we count no bytes
    return left, sum(map(kept, workers)), tracemalloc.get_traced_memory()[0]


def growth(looks: "Sequence[tuple[int, int, int]]") -> float:
    """Return by how many bytes a look exceeds the one before: the median over the second half.

    What stays of every recommender is in each difference; a table that grows once is in one.
    """
    later = [taken for _, _, taken in looks[len(looks) // 2 :]]
    return statistics.median(b - a for a, b in pairwise(later))


def main(arguments: Sequence[str]) -> int:
    """Soak by hand."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak")
    parser.add_argument("--cycles", type=int, default=1_000)
    chosen = parser.parse_args(arguments)
    looks: list[tuple[int, int, int]] = []
    with tempfile.TemporaryDirectory() as folder, EmbeddedStore(folder) as url:
        asyncio.run(soak(url, chosen.cycles, looks))
    for place in (0, len(looks) // 2, len(looks) - 1):
        found: Any = looks[place]
        print(f"after {(place + 1) * len(SAMPLES)} cycles: recommenders, entries, bytes {found}")
    print(f"growth in the second half: {growth(looks) / len(SAMPLES):.0f} bytes a cycle")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
