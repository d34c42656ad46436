"""What every family does with feedback alike: find the item, count the outcome, say it."""

from typing import TYPE_CHECKING

from discreet.families.questions import Receipt
from discreet.families.observer import Heard
from discreet.decisions.recommender import Recommender
from discreet.decisions.tokens import Pending
from discreet.errors import InvalidArgument, RewardConflict
from discreet.state.stores import Claim

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

REWARD_STEPS = 2**20
"""Rewards are compared in steps this fine: equal after rounding means equal."""


def position_of(recommender: Recommender, pending: Pending, item: str | None) -> int:
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


def note_heard(
    runtime: "Runtime", recommender: Recommender, claim: Claim, reward: float
) -> Receipt:
    """Count what became of feedback, and return its receipt; a contradiction is raised."""
    runtime.observer.feedback(
        recommender=recommender.name,
        algorithm=recommender.algorithm,
        outcome=Heard(claim.value),
        reward=reward,
    )
    if claim is Claim.CONFLICT:
        raise RewardConflict("another reward has already been counted for this recommendation")
    return Receipt(duplicate=claim is Claim.DUPLICATE)
