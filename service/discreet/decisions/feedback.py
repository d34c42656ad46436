"""Feedback: open the token, claim once and merge in one atomic step, answer.

Feedback is idempotent by nature. The same reward again is a duplicate and adds nothing; another
reward for the same decision is a conflict and adds nothing. Which of them it is, is decided by
the store in the same script that adds, so no crash or race can count a click twice.
"""

import asyncio
from collections.abc import Awaitable, Sequence

from discreet.families.questions import Feedback, Receipt
from discreet.decisions.family import Word, begun, settled
from discreet.families.observer import Heard
from discreet.decisions.recommender import Recommender
from discreet.decisions.retries import answered_id
from discreet.decisions.runtime import Runtime
from discreet.decisions.tokens import open_decision
from discreet.errors import (
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
    recommender, word = _open(runtime, feedback, token)
    family = runtime.families[recommender.algorithm]
    if runtime.told is not None and family.listens(recommender, word):
        return await runtime.told.join(recommender, word)
    return await family.hear(runtime, recommender, *word)


async def feedback_batch(
    runtime: Runtime, many: Sequence[Feedback]
) -> list[Receipt | DiscreetError]:
    """Count many rewards in few round trips; each succeeds or fails by itself, in order."""
    await runtime.registry.current()
    named = [one.event_id for one in many if one.recommendation_id is None]
    found = iter(await _tokens_of(runtime, named) if named else ())
    receipts: list[Receipt | DiscreetError] = []
    together: dict[Recommender, list[tuple[int, Word]]] = {}
    for position, feedback in enumerate(many):
        token = feedback.recommendation_id
        known = next(found) if token is None else token
        opened = known if isinstance(known, DiscreetError) else _opened(runtime, feedback, known)
        if isinstance(opened, DiscreetError):
            receipts.append(opened)
        else:
            recommender, word = opened
            receipts.append(_UNHEARD)
            together.setdefault(recommender, []).append((position, word))
    groups = [
        (words, _begin_many(runtime, recommender, [word for _, word in words]))
        for recommender, words in together.items()
    ]
    for words, group in groups:
        [whole] = await settled([group])
        for place, (position, _) in enumerate(words):
            receipts[position] = whole if isinstance(whole, DiscreetError) else whole[place]
    return receipts


_UNHEARD = UnknownDecision("nothing became of this feedback")
"""Stands where no receipt has been written yet."""


def _begin_many(
    runtime: Runtime, recommender: Recommender, words: Sequence[Word]
) -> Awaitable[Sequence[Receipt | DiscreetError]] | DiscreetError:
    return begun(runtime.families[recommender.algorithm].hear_many, runtime, recommender, words)


async def _tokens_of(
    runtime: Runtime, event_ids: Sequence[str | None]
) -> list[str | DiscreetError]:
    """Look up the tokens of answers that were kept under event ids, in one round trip."""
    asked = [asyncio.ensure_future(_token_of(runtime, each)) for each in event_ids]
    return await settled(asked)


async def _token_of(runtime: Runtime, event_id: str | None) -> str:
    if event_id is None:
        raise InvalidArgument("recommendation_id", "give either recommendation_id or event_id")
    event = await runtime.store.find_event(event=runtime.principals.event(event_id))
    if event is None or event.answer is None:
        raise UnknownDecision("no recommendation was made under that event_id, or it has expired")
    return answered_id(runtime, event.answer)


def _opened(
    runtime: Runtime, feedback: Feedback, token: str
) -> tuple[Recommender, Word] | DiscreetError:
    try:
        return _open(runtime, feedback, token)
    except DiscreetError as error:
        return error


def _open(runtime: Runtime, feedback: Feedback, token: str) -> tuple[Recommender, Word]:
    """Open the token, and return whose decision it was and what is told about it."""
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
    return recommender, Word(pending, feedback, remaining + _CLAIM_MARGIN)
