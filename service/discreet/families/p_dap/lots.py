"""Long batches, cut into lots: few enough not to hold up everybody else, by time or memory."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from discreet.families.questions import Ask, Recommendation
from discreet.families.p_dap.answering_many import BegunMany, begin_many, finish_many
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

_MOST = 250
_FEWEST = 16
_MOST_VALUES = 200_000
"""Questions times items, or times dimensions, of one lot."""


def answer_in_lots(
    runtime: "Runtime", recommender: PartitionRecommender, asks: Sequence[Ask]
) -> Awaitable[list[Recommendation | DiscreetError]]:
    """Begin every lot now: the store works on one while the next is being planned."""
    wide = max(recommender.stored.next_slot, recommender.dimensions)
    size = max(_FEWEST, min(_MOST, _MOST_VALUES // wide))
    lots = [
        begin_many(runtime, recommender, asks[start : start + size])
        for start in range(0, len(asks), size)
    ]
    return _finish(runtime, lots)


async def _finish(
    runtime: "Runtime", lots: Sequence[BegunMany]
) -> list[Recommendation | DiscreetError]:
    """Return all answers, letting others have a turn between two lots; each lot fails alone."""
    answers: list[Recommendation | DiscreetError] = []
    for lot in lots:
        if answers:
            await asyncio.sleep(0)
        try:
            answers += await finish_many(runtime, lot)
        except DiscreetError as error:
            answers += [error] * len(lot.contexts)
    return answers
