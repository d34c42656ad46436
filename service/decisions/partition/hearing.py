"""Feedback on an answer by adaptive partition: claim once and merge, in one atomic step."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.algorithms.contract import Address
from service.decisions.asking import Feedback, Receipt
from service.decisions.hearing import REWARD_STEPS, note_heard, position_of
from service.decisions.partition.recommender import PartitionRecommender
from service.decisions.partition.returning import Then, returning
from service.decisions.tokens import Pending
from service.errors import InvalidArgument
from service.state.stores import Claim, Learned

if TYPE_CHECKING:
    from service.decisions.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Submitted:
    """Feedback on its way to the store."""

    recommender: PartitionRecommender
    address: Address
    reward: float
    learned: Awaitable[Learned]
    index: bytes
    then: Then | None


def submit(
    runtime: "Runtime",
    recommender: PartitionRecommender,
    pending: Pending,
    feedback: Feedback,
    ttl: int,
) -> Submitted:
    """Say what the feedback adds, and send it to the store."""
    index, then = recommender.generation, None
    if pending.note:
        back = returning(runtime, recommender, pending, feedback.reward, ttl)
        if back.item is None:
            position_of(recommender, pending, feedback.item)
        elif feedback.item not in (None, back.item):
            raise InvalidArgument("item", "is not one of the items of this recommendation")
        position, update, index, then = 0, back.update, back.index, back.then
    else:
        position = position_of(recommender, pending, feedback.item)
        update = recommender.learner.learn(
            decision=pending.decision, choice=position, reward=feedback.reward
        )
    recommender.touched = True
    return Submitted(
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


async def settle(runtime: "Runtime", submitted: Submitted) -> Receipt:
    """Await what became of it, and do what follows."""
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
    return note_heard(runtime, submitted.recommender, learned.claim, submitted.reward)
