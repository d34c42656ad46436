"""Feedback: open the token, claim once and merge in one atomic step, answer.

Feedback is idempotent by nature. The same reward again is a duplicate and adds nothing; another
reward for the same decision is a conflict and adds nothing. Which of them it is, is decided by
the store in the same script that adds, so no crash or race can count a click twice.
"""

import asyncio
from collections.abc import Awaitable, Sequence

from service.decisions.asking import Feedback, Receipt
from service.decisions.observer import Heard
from service.decisions.retries import answered_id
from service.decisions.runtime import Runtime
from service.decisions.tokens import open_decision
from service.errors import (
    DiscreetError,
    InvalidArgument,
    TokenExpired,
    TokenForged,
    UnknownDecision,
)

__all__ = ["Feedback", "Receipt", "feedback_batch", "give_feedback"]

_CLAIM_MARGIN = 60
"""Seconds that a claim outlives its token, so that clocks which disagree cannot count twice."""


async def give_feedback(runtime: Runtime, feedback: Feedback) -> Receipt:
    """Count one reward once."""
    token = feedback.recommendation_id
    if token is None:
        token = await _token_of(runtime, feedback.event_id)
    await runtime.registry.current()
    return await _hear(runtime, feedback, token)


async def feedback_batch(
    runtime: Runtime, many: Sequence[Feedback]
) -> list[Receipt | DiscreetError]:
    """Count many rewards in few round trips; each succeeds or fails by itself, in order."""
    await runtime.registry.current()
    tokens = await asyncio.gather(
        *(_find_token(runtime, feedback) for feedback in many), return_exceptions=True
    )
    submitted: list[Awaitable[Receipt] | DiscreetError] = []
    for feedback, token in zip(many, tokens, strict=True):
        if isinstance(token, DiscreetError):
            submitted.append(token)
        elif isinstance(token, BaseException):
            raise token
        else:
            try:
                submitted.append(_hear(runtime, feedback, token))
            except DiscreetError as error:
                submitted.append(error)
    receipts: list[Receipt | DiscreetError] = []
    for one in submitted:
        try:
            receipts.append(one if isinstance(one, DiscreetError) else await one)
        except DiscreetError as error:
            receipts.append(error)
    return receipts


async def _find_token(runtime: Runtime, feedback: Feedback) -> str:
    if feedback.recommendation_id is not None:
        return feedback.recommendation_id
    return await _token_of(runtime, feedback.event_id)


async def _token_of(runtime: Runtime, event_id: str | None) -> str:
    if event_id is None:
        raise InvalidArgument("recommendation_id", "give either recommendation_id or event_id")
    event = await runtime.store.find_event(event=runtime.principals.event(event_id))
    if event is None or event.answer is None:
        raise UnknownDecision("no recommendation was made under that event_id, or it has expired")
    return answered_id(runtime, event.answer)


def _hear(runtime: Runtime, feedback: Feedback, token: str) -> Awaitable[Receipt]:
    """Open the token and let the recommender's family count what it heard."""
    try:
        pending = open_decision(runtime.sealer, token)
    except TokenForged:
        runtime.observer.feedback(recommender="", algorithm="", outcome=Heard.FORGED, reward=0.0)
        raise
    recommender = runtime.registry.by_generation(pending.generation)
    if recommender is None:
        raise UnknownDecision("the recommender that made this recommendation has been removed")
    remaining = pending.expires_at - int(runtime.clock())
    if remaining <= 0:
        runtime.observer.feedback(
            recommender=recommender.name,
            algorithm=recommender.algorithm,
            outcome=Heard.EXPIRED,
            reward=0.0,
        )
        raise TokenExpired("feedback for this recommendation is no longer accepted")
    family = runtime.families[recommender.algorithm]
    return family.hear(runtime, recommender, pending, feedback, remaining + _CLAIM_MARGIN)
