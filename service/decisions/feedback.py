"""Feedback: open the token, claim once and merge in one atomic step, answer.

Feedback is idempotent by nature. The same reward again is a duplicate and adds nothing; another
reward for the same decision is a conflict and adds nothing. Which of them it is, is decided by
the store in the same script that adds, so no crash or race can count a click twice.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from service.algorithms.contract import Address
from service.decisions.observer import Heard
from service.decisions.recommender import Recommender
from service.decisions.retries import answered_id
from service.decisions.returning import Then, returning
from service.decisions.runtime import Runtime
from service.decisions.tokens import Pending, open_decision
from service.errors import (
    DiscreetError,
    InvalidArgument,
    RewardConflict,
    TokenExpired,
    TokenForged,
    UnknownDecision,
)
from service.state.stores import Claim, Learned

REWARD_STEPS = 2**20
"""Rewards are compared in steps this fine: equal after rounding means equal."""
_CLAIM_MARGIN = 60
"""Seconds that a claim outlives its token, so that clocks which disagree cannot count twice."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a caller tells about a recommendation: exactly one of the two ids is given."""

    reward: float
    recommendation_id: str | None = None
    event_id: str | None = None
    item: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """Feedback was accepted; `duplicate` if it had been counted before."""

    duplicate: bool


async def give_feedback(runtime: Runtime, feedback: Feedback) -> Receipt:
    """Count one reward once."""
    token = feedback.recommendation_id
    if token is None:
        token = await _token_of(runtime, feedback.event_id)
    await runtime.registry.current()
    return await _settle(runtime, _submit(runtime, feedback, token))


async def feedback_batch(
    runtime: Runtime, many: Sequence[Feedback]
) -> list[Receipt | DiscreetError]:
    """Count many rewards in few round trips; each succeeds or fails by itself, in order."""
    await runtime.registry.current()
    tokens = await asyncio.gather(
        *(_find_token(runtime, feedback) for feedback in many), return_exceptions=True
    )
    submitted: list[_Submitted | DiscreetError] = []
    for feedback, token in zip(many, tokens, strict=True):
        if isinstance(token, DiscreetError):
            submitted.append(token)
        elif isinstance(token, BaseException):
            raise token
        else:
            try:
                submitted.append(_submit(runtime, feedback, token))
            except DiscreetError as error:
                submitted.append(error)
    receipts: list[Receipt | DiscreetError] = []
    for one in submitted:
        try:
            receipts.append(one if isinstance(one, DiscreetError) else await _settle(runtime, one))
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


@dataclass(frozen=True, slots=True)
class _Submitted:
    """Feedback on its way to the store."""

    recommender: Recommender
    address: Address
    reward: float
    learned: Awaitable[Learned]
    index: bytes
    then: Then | None


def _submit(runtime: Runtime, feedback: Feedback, token: str) -> _Submitted:
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
    ttl = remaining + _CLAIM_MARGIN
    index, then = recommender.generation, None
    if pending.note:
        back = returning(runtime, recommender, pending, feedback.reward, ttl)
        if back.item is None:
            _position(recommender, pending, feedback.item)
        elif feedback.item not in (None, back.item):
            raise InvalidArgument("item", "is not one of the items of this recommendation")
        position, update, index, then = 0, back.update, back.index, back.then
    else:
        position = _position(recommender, pending, feedback.item)
        update = recommender.learner.learn(
            decision=pending.decision, choice=position, reward=feedback.reward
        )
    recommender.touched = True
    return _Submitted(
        recommender=recommender,
        address=update.address,
        reward=feedback.reward,
        learned=runtime.store.learn(
            address=update.address.key,
            increments=update.increments,
            claim=pending.decision_id + position.to_bytes(2, "little"),
            reward=round(feedback.reward * REWARD_STEPS),
            claim_ttl=ttl,
        ),
        index=index,
        then=then,
    )


def _position(recommender: Recommender, pending: Pending, item: str | None) -> int:
    """Return which of the recommended items the feedback is about."""
    choices = pending.decision.choices
    if not choices:
        raise InvalidArgument("recommendation_id", "that recommendation was empty")
    if item is None:
        if len(choices) > 1:
            raise InvalidArgument(
                "item", "must name the item: this recommendation was a list of several"
            )
        return 0
    for position, choice in enumerate(choices):
        if recommender.id_of.get(choice.slot) == item:
            return position
    raise InvalidArgument("item", "is not one of the items of this recommendation")


async def _settle(runtime: Runtime, submitted: _Submitted) -> Receipt:
    recommender = submitted.recommender
    learned = await submitted.learned
    arrivals = learned.arrivals
    if learned.claim is not Claim.CONFLICT and arrivals & (arrivals - 1) == 0:
        # The first arrival makes a cell known to surveys. Saying it again at every power of two
        # costs next to nothing and mends an index entry lost to a crash in between. A duplicate
        # may be the store's answer to our own repeated question, after its first answer was lost.
        await runtime.store.index_cell(
            index=submitted.index,
            address=submitted.address.key,
            level=submitted.address.level,
        )
    if submitted.then is not None and learned.claim is not Claim.CONFLICT:
        await submitted.then()
    runtime.observer.feedback(
        recommender=recommender.name,
        algorithm=recommender.algorithm,
        outcome=Heard(learned.claim.value),
        reward=submitted.reward,
    )
    if learned.claim is Claim.CONFLICT:
        raise RewardConflict("another reward has already been counted for this recommendation")
    return Receipt(duplicate=learned.claim is Claim.DUPLICATE)
