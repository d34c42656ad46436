"""The questions that callers may ask: one, or many at once."""

import asyncio
from collections.abc import Awaitable, Sequence

from discreet.families.questions import Ask, Recommendation
from discreet.decisions.family import begun, settled
from discreet.decisions.recommender import Recommender
from discreet.decisions.retries import recommend_once
from discreet.decisions.runtime import Runtime
from discreet.families.budgets import PrivacyReport
from discreet.errors import DiscreetError, UnknownRecommender

__all__ = ["Ask", "PrivacyReport", "Recommendation", "recommend", "recommend_batch"]


async def recommend(runtime: Runtime, ask: Ask) -> Recommendation:
    """Answer one question."""
    recommender = await runtime.registry.find(ask.recommender)
    turns = runtime.asked
    if turns is not None and ask.event_id is None:
        family = runtime.families[recommender.algorithm]
        if family.joins(recommender, ask):
            return await turns.join(recommender, ask)
    return await _begin(runtime, recommender, ask)


async def recommend_batch(
    runtime: Runtime, asks: Sequence[Ask]
) -> list[Recommendation | DiscreetError]:
    """Answer many questions in few round trips; each succeeds or fails by itself, in order."""
    snapshot = runtime.registry.trusted() or await runtime.registry.current()
    answers: list[Recommendation | DiscreetError] = [_UNKNOWN] * len(asks)
    together: dict[str, list[int]] = {}
    retried: dict[int, Awaitable[Recommendation] | DiscreetError] = {}
    for position, ask in enumerate(asks):
        recommender = snapshot.recommenders.get(ask.recommender)
        if recommender is None:
            continue
        if ask.event_id is None:
            together.setdefault(ask.recommender, []).append(position)
        else:
            retried[position] = begun(_begin, runtime, recommender, ask)
    many = [
        (positions, _begin_many(runtime, snapshot.recommenders[name], asks, positions))
        for name, positions in together.items()
    ]
    for positions, group in many:
        outcomes = await settled([group])
        for place, position in enumerate(positions):
            whole = outcomes[0]
            answers[position] = whole if isinstance(whole, DiscreetError) else whole[place]
    for position, one in zip(retried, await settled(list(retried.values())), strict=True):
        answers[position] = one
    return answers


_UNKNOWN = UnknownRecommender("no recommender of that name")


def _begin_many(
    runtime: Runtime, recommender: Recommender, asks: Sequence[Ask], positions: Sequence[int]
) -> Awaitable[Sequence[Recommendation | DiscreetError]] | DiscreetError:
    family = runtime.families[recommender.algorithm]
    return begun(family.answer_many, runtime, recommender, [asks[each] for each in positions])


def _begin(runtime: Runtime, recommender: Recommender, ask: Ask) -> Awaitable[Recommendation]:
    family = runtime.families[recommender.algorithm]
    if ask.event_id is None:
        return family.answer(runtime, recommender, ask)
    # Checked before the claim: a question that cannot be asked must not occupy its event id.
    family.check(recommender, ask)
    return asyncio.ensure_future(recommend_once(runtime, recommender, ask))
