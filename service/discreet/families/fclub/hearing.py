"""Feedback on an answer by federated clusters: claim once and merge, in one atomic step."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING

import numpy as np

from discreet.families.questions import Feedback, Receipt
from discreet.families.fclub.recommender import ID_BYTES, ClusterRecommender, digest_of
from discreet.families.fclub.vectors import Coordinates, decoded
from discreet.decisions.hearing import REWARD_STEPS, note_heard
from discreet.decisions.tokens import Pending
from discreet.errors import InvalidArgument, UnknownDecision
from discreet.state.stores import Claim, Learned

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime


def hear(
    runtime: "Runtime",
    recommender: ClusterRecommender,
    pending: Pending,
    feedback: Feedback,
    ttl: int,
) -> Awaitable[Receipt]:
    """Add what was observed to the client's own sums."""
    position, x = _shown(recommender, pending, feedback.item)
    steps = recommender.privatizer.observation(x=decoded(x), reward=feedback.reward)
    places = np.flatnonzero(steps)
    recommender.touched = True
    address = pending.decision.address.key
    learned = runtime.store.learn(
        address=address,
        increments=list(zip(places.tolist(), steps[places].tolist(), strict=True)),
        claim=pending.decision_id + position.to_bytes(2, "little"),
        reward=round(feedback.reward * REWARD_STEPS),
        claim_ttl=ttl,
    )
    return _settle(runtime, recommender, address, feedback.reward, learned)


async def _settle(
    runtime: "Runtime",
    recommender: ClusterRecommender,
    address: bytes,
    reward: float,
    learned: Awaitable[Learned],
) -> Receipt:
    became = await learned
    arrivals = became.arrivals
    if became.claim is not Claim.CONFLICT and arrivals & (arrivals - 1) == 0:
        # Said again at every power of two, which mends an entry lost to a crash.
        await runtime.store.index_cell(index=recommender.generation, address=address, level=0)
    return note_heard(runtime, recommender, became.claim, reward)


def _shown(
    recommender: ClusterRecommender, pending: Pending, item: str | None
) -> tuple[int, Coordinates]:
    """Return which of the recommended items the feedback is about, and its features."""
    size = ID_BYTES + 2 * recommender.dimensions
    shown = len(pending.decision.choices)
    if len(pending.note) != shown * size:
        raise UnknownDecision("the recommender that made this recommendation has changed")
    if not shown:
        raise InvalidArgument("recommendation_id", "that recommendation was empty")
    if item is None and shown > 1:
        raise InvalidArgument(
            "item", "must name the item: this recommendation was a list of several"
        )
    wanted = None if item is None else digest_of(item)
    for position in range(shown):
        entry = pending.note[position * size : (position + 1) * size]
        if wanted is None or entry[:ID_BYTES] == wanted:
            return position, np.frombuffer(entry[ID_BYTES:], dtype="<i2").astype(np.int16)
    raise InvalidArgument("item", "is not one of the items of this recommendation")
