"""Feedback on an answer by adaptive partition: claim once and merge, in one atomic step."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.families.p_dap.contract import Address
from discreet.families.questions import Feedback, Receipt
from discreet.decisions.family import Word, settled
from discreet.decisions.hearing import REWARD_STEPS, note_heard, position_of
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.families.p_dap.returning import Then, returning
from discreet.decisions.tokens import Pending
from discreet.errors import DiscreetError, InvalidArgument, RewardConflict
from discreet.state.stores import Claim, Learned, Learning

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime


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


def listens(word: Word) -> bool:
    """Tell whether feedback can be heard together with others: all but on vendors' items."""
    return not word.pending.note


def submit_many(
    runtime: "Runtime", recommender: PartitionRecommender, words: Sequence[Word]
) -> Awaitable[list[Receipt | DiscreetError]]:
    """Say what each piece of feedback adds, and send all of it to the store."""
    recommender.touched = True
    learnings: list[Learning] = []
    refused: dict[int, DiscreetError] = {}
    for place, (pending, feedback, ttl) in enumerate(words):
        try:
            position = position_of(recommender, pending, feedback.item)
            update = recommender.learner.learn(
                decision=pending.decision, choice=position, reward=feedback.reward
            )
        except InvalidArgument as error:
            refused[place] = error
            continue
        learnings.append(
            Learning(
                update.address.key,
                update.increments,
                pending.decision_id + position.to_bytes(2, "little"),
                round(feedback.reward * REWARD_STEPS),
                ttl,
            )
        )
    learned = runtime.store.learn_each(learnings=learnings)
    return _settle_many(runtime, recommender, words, refused, learned)


async def _settle_many(
    runtime: "Runtime",
    recommender: PartitionRecommender,
    words: Sequence[Word],
    refused: Mapping[int, DiscreetError],
    learned: Awaitable[Sequence[Learned | DiscreetError]],
) -> list[Receipt | DiscreetError]:
    """Await what became of each, index the cells that need it, and count the outcomes."""
    remaining = iter(await learned)
    outcomes: list[Learned | DiscreetError] = [
        refused[place] if place in refused else next(remaining) for place in range(len(words))
    ]
    indexed = list(
        {
            word.pending.decision.address
            for word, one in zip(words, outcomes, strict=True)
            if not isinstance(one, DiscreetError) and _is_to_be_indexed(one)
        }
    )
    noted = await settled(
        [
            runtime.store.index_cell(index=recommender.generation, address=key, level=level)
            for key, level in indexed
        ]
    )
    unindexed = {
        address: error
        for address, error in zip(indexed, noted, strict=True)
        if isinstance(error, DiscreetError)
    }
    receipts: list[Receipt | DiscreetError] = []
    for word, one in zip(words, outcomes, strict=True):
        if isinstance(one, DiscreetError):
            receipts.append(one)
            continue
        recommender.note_arrivals(word.pending.decision.address, one.arrivals)
        if word.pending.decision.address in unindexed and _is_to_be_indexed(one):
            receipts.append(unindexed[word.pending.decision.address])
            continue
        try:
            receipts.append(note_heard(runtime, recommender, one.claim, word.feedback.reward))
        except RewardConflict as conflict:
            receipts.append(conflict)
    return receipts


def _is_to_be_indexed(learned: Learned) -> bool:
    """Tell whether surveys must now be told of a cell.

    The first arrival makes a cell known to them. Saying it again at every power of two costs next
    to nothing and mends an index entry lost to a crash in between. A duplicate may be the store's
    answer to our own repeated question, after its first answer was lost.
    """
    arrivals = learned.arrivals
    return learned.claim is not Claim.CONFLICT and arrivals & (arrivals - 1) == 0


async def settle(runtime: "Runtime", submitted: Submitted) -> Receipt:
    """Await what became of it, and do what follows."""
    learned = await submitted.learned
    if _is_to_be_indexed(learned):
        await runtime.store.index_cell(
            index=submitted.index,
            address=submitted.address.key,
            level=submitted.address.level,
        )
    if submitted.then is not None and learned.claim is not Claim.CONFLICT:
        await submitted.then()
    return note_heard(runtime, submitted.recommender, learned.claim, submitted.reward)
