"""The questions that callers may ask: one, or many at once."""

import asyncio
from collections.abc import Sequence

from service.decisions.answering import Ask, Begun, PrivacyReport, Recommendation, begin, finish
from service.decisions.retries import recommend_once
from service.decisions.runtime import Runtime
from service.errors import DiscreetError, UnknownRecommender

__all__ = ["Ask", "PrivacyReport", "Recommendation", "recommend", "recommend_batch"]


async def recommend(runtime: Runtime, ask: Ask) -> Recommendation:
    """Answer one question."""
    recommender = await runtime.registry.find(ask.recommender)
    if ask.event_id is not None:
        return await recommend_once(runtime, recommender, ask)
    return await finish(runtime, begin(runtime, recommender, ask))


async def recommend_batch(
    runtime: Runtime, asks: Sequence[Ask]
) -> list[Recommendation | DiscreetError]:
    """Answer many questions in few round trips; each succeeds or fails by itself, in order."""
    snapshot = runtime.registry.trusted() or await runtime.registry.current()
    begun: list[Begun | asyncio.Task[Recommendation] | DiscreetError] = []
    for ask in asks:
        recommender = snapshot.recommenders.get(ask.recommender)
        try:
            if recommender is None:
                raise UnknownRecommender("no recommender of that name")
            if ask.event_id is not None:
                begun.append(asyncio.create_task(recommend_once(runtime, recommender, ask)))
            elif recommender.vendors:
                # Vendors take their time; one must not hold up the rest of the batch.
                started = begin(runtime, recommender, ask)
                begun.append(asyncio.create_task(finish(runtime, started)))
            else:
                begun.append(begin(runtime, recommender, ask))
        except DiscreetError as error:
            begun.append(error)
    answers: list[Recommendation | DiscreetError] = []
    for one in begun:
        try:
            if isinstance(one, DiscreetError):
                answers.append(one)
            elif isinstance(one, asyncio.Task):
                answers.append(await one)
            else:
                answers.append(await finish(runtime, one))
        except DiscreetError as error:
            answers.append(error)
    return answers
