"""Looking over everything that was learned, now and then, beside the request path.

A learner's shortlist and deepest level come from aggregate statistics, never from the request at
hand. Each worker refreshes them from a bounded sample of cells, off the event loop, and less often
when a look takes long, so that surveys never take more than a small share of a core.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from service.algorithms.contract import Address, Learner, Survey, Vector
from service.decisions.observer import Observer
from service.decisions.recommender import Recommender
from service.errors import StoreUnavailable
from service.state.stores import Store

log = logging.getLogger(__name__)

MOST_CELLS = 2_048
MOST_VALUES = 4_000_000
"""Cells times arms in one look: bounds the memory and time of a survey of a large catalogue."""
_CHUNK = 256


async def survey(*, store: Store, recommender: Recommender, observer: Observer) -> None:
    """Refresh a recommender's aggregate facts from the store, for our own users and for guests."""
    count, found = await _look(store, recommender, recommender.generation, recommender.learners)
    observer.survey(
        recommender=recommender.name,
        algorithm=recommender.algorithm,
        cells=count,
        depth=found.depth,
        splits=found.splits,
        explored=found.explored,
    )
    guests = recommender.guests
    if guests.learners:
        await _look(store, recommender, guests.generation, guests.learners)


async def _look(
    store: Store, recommender: Recommender, generation: bytes, learners: Sequence[Learner]
) -> tuple[int, Survey]:
    """Show a sample of cells to the learners that decide by them; return what the first saw."""
    most = max(16, min(MOST_CELLS, MOST_VALUES // (2 * recommender.stored.next_slot + 1)))
    total, sample = (
        store.count_cells(index=generation),
        store.cells(index=generation, most=most),
    )
    count, levels = await total, await sample
    addresses = [Address(key=key, level=level) for key, level in levels.items()]
    cells: dict[Address, Vector] = {}
    for start in range(0, len(addresses), _CHUNK):
        chunk = addresses[start : start + _CHUNK]
        vectors = await store.read(addresses=[address.key for address in chunk])
        cells.update(zip(chunk, vectors, strict=True))
    found = [await asyncio.to_thread(learner.survey, cells=cells) for learner in learners]
    return count, found[0]


class Surveyor:
    """Surveys every recommender that had traffic, one after the other, for ever."""

    def __init__(
        self,
        *,
        store: Store,
        observer: Observer,
        recommenders: Callable[[], Iterable[Recommender]],
        seconds: float,
    ) -> None:
        self._store = store
        self._observer = observer
        self._recommenders = recommenders
        self._seconds = seconds
        self._task: asyncio.Task[None] | None = None

    async def prepare(self, recommender: Recommender) -> None:
        """Survey a recommender that this worker has just compiled, before it answers from it."""
        await survey(store=self._store, recommender=recommender, observer=self._observer)

    def start(self) -> None:
        """Begin surveying in the background."""
        self._task = asyncio.create_task(self._run(), name="survey")

    async def stop(self) -> None:
        """Stop surveying."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        pause = self._seconds
        while True:
            await asyncio.sleep(pause)
            began = time.monotonic()
            for recommender in list(self._recommenders()):
                if not recommender.touched:
                    continue
                recommender.touched = False
                try:
                    await self.prepare(recommender)
                except StoreUnavailable:
                    recommender.touched = True
                except Exception:
                    log.exception("a survey failed")
            pause = max(self._seconds, 10 * (time.monotonic() - began))
