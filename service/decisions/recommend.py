"""The questions that callers may ask: one, or many at once."""

import asyncio
from collections.abc import Awaitable, Sequence

from service.decisions.asking import Ask, Recommendation
from service.decisions.recommender import Recommender
from service.decisions.retries import recommend_once
from service.decisions.runtime import Runtime
from service.decisions.terms import PrivacyReport
from service.errors import DiscreetError, UnknownRecommender

__all__ = ["Ask", "PrivacyReport", "Recommendation", "recommend", "recommend_batch"]


async def recommend(runtime: Runtime, ask: Ask) -> Recommendation:
    """Answer one question."""
    return await _begin(runtime, await runtime.registry.find(ask.recommender), ask)


async def recommend_batch(
    runtime: Runtime, asks: Sequence[Ask]
) -> list[Recommendation | DiscreetError]:
    """Answer many questions in few round trips; each succeeds or fails by itself, in order."""
    snapshot = runtime.registry.trusted() or await runtime.registry.current()
    begun: list[Awaitable[Recommendation] | DiscreetError] = []
    for ask in asks:
        recommender = snapshot.recommenders.get(ask.recommender)
        try:
            if recommender is None:
                raise UnknownRecommender("no recommender of that name")
            begun.append(_begin(runtime, recommender, ask))
        except DiscreetError as error:
            begun.append(error)
    answers: list[Recommendation | DiscreetError] = []
    for one in begun:
        try:
            answers.append(one if isinstance(one, DiscreetError) else await one)
        except DiscreetError as error:
            answers.append(error)
    return answers


def _begin(runtime: Runtime, recommender: Recommender, ask: Ask) -> Awaitable[Recommendation]:
    family = runtime.families[recommender.algorithm]
    if ask.event_id is None:
        return family.answer(runtime, recommender, ask)
    # Checked before the claim: a question that cannot be asked must not occupy its event id.
    family.check(recommender, ask)
    return asyncio.ensure_future(recommend_once(runtime, recommender, ask))
