"""Looking over everything that was learned, now and then, beside the request path.

A learner's shortlist and deepest level come from aggregate statistics, never from the request at
hand. Each worker refreshes them from a bounded sample of cells, off the event loop.
"""

import asyncio
from collections.abc import Sequence

from discreet.families.p_dap.contract import Address, Learner, Survey, Vector
from discreet.families.observer import Observer
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.state.stores import Store

MOST_CELLS = 2_048
MOST_VALUES = 4_000_000
"""Cells times arms in one look: bounds the memory and time of a survey of a large catalogue."""
_CHUNK = 256


async def survey(*, store: Store, recommender: PartitionRecommender, observer: Observer) -> None:
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
    store: Store, recommender: PartitionRecommender, generation: bytes, learners: Sequence[Learner]
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
