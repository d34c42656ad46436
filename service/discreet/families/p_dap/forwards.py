"""Answering other vendors' users: one item of ours behind a handle, and a noisy running sum.

What the asking vendor learns. The handle is sealed with our keys and fresh every time, of one
length: neither the item nor whether two handles mean the same one can be told from it. The running
sum is what `streams` pays for. So the asking vendor learns nothing of our catalogue, and of each
reward no more than `vendor_privacy.epsilon`.

What we promise the asking vendor. We are told a cell, and the item that is finally shown tells
others about that cell no more than the epsilon that came with it: the draw is made by a learner
with just that epsilon (`guests`), and an answer whose events say otherwise is withheld.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.families.p_dap.forwarding import Forward, Forwarded
from discreet.families.questions import Ask
from discreet.decisions.feedback import Feedback, Receipt, give_feedback
from discreet.families.p_dap.deciding import decide
from discreet.families.p_dap.notes import Hosted, peer_digest, read_note
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.families.p_dap.streams import pay, release, stream_of
from discreet.decisions.tokens import Pending, new_decision_id, open_decision, seal_decision
from discreet.errors import (
    InvalidArgument,
    NothingToRecommend,
    TokenExpired,
    TokenForged,
    Underpaid,
    UnknownDecision,
    UnknownItem,
    UnknownRecommender,
)
from discreet.privacy.events import RandomisedResponse

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

MOST_LEVEL = 64
LONGEST_STREAM = 64


async def _hosting(runtime: "Runtime", name: str) -> PartitionRecommender:
    recommender = await runtime.registry.find(name)
    if not isinstance(recommender, PartitionRecommender):
        raise UnknownRecommender("that recommender has no items for other vendors' users")
    return recommender


async def answer_forward(runtime: "Runtime", *, requester: str, forward: Forward) -> Forwarded:
    """Choose an item of ours for another vendor's user, whom we know by a cell only."""
    recommender = await _hosting(runtime, forward.recommender)
    _check(forward)
    request = recommender.request(
        Ask(recommender=forward.recommender, client="", context=forward.centre)
    )
    if not len(request.available):
        raise NothingToRecommend("this recommender has no item to offer")
    learner = recommender.guests.learner(forward.epsilon)
    plan = learner.plan(request=request)
    if plan.events not in ((), (RandomisedResponse(forward.epsilon),)):
        raise Underpaid("an answer for another vendor's user would tell more than was allowed")
    recommender.touched = True
    vectors = await runtime.store.read(addresses=[address.key for address in plan.reads])
    decision = await decide(runtime, learner, request, plan, vectors)

    stream = stream_of(recommender, requester=requester, forward=forward)
    paid = await pay(runtime, recommender, requester)
    sums = await release(runtime, recommender, stream) if paid else None
    expires_at = int(runtime.clock()) + recommender.ttl
    note = Hosted(training=forward.training, peer=peer_digest(requester), stream=stream)
    handle = seal_decision(
        runtime.sealer,
        Pending(
            generation=recommender.generation,
            decision_id=new_decision_id(),
            expires_at=expires_at,
            decision=decision,
            note=note.encode(),
        ),
    )
    outcome = "trained" if forward.training else "answered" if paid else "unpaid"
    runtime.observer.hosted(recommender=recommender.name, requester=requester, outcome=outcome)
    return Forwarded(handle=handle, expires_at=expires_at, sums=sums)


def _check(forward: Forward) -> None:
    if not 0 <= forward.level <= MOST_LEVEL:
        raise InvalidArgument("level", f"must be from 0 to {MOST_LEVEL}")
    if not (math.isfinite(forward.epsilon) and 0 < forward.epsilon <= 50):
        raise InvalidArgument("epsilon", "must be greater than 0 and at most 50")
    if len(forward.stream) > LONGEST_STREAM:
        raise InvalidArgument("stream", f"may have at most {LONGEST_STREAM} characters")
    centre = np.array(forward.centre, dtype=np.float64)
    if not (len(centre) and centre.min() >= 0.0 and centre.max() <= 1.0):
        raise InvalidArgument("centre", "every value must be a number from 0 to 1")


async def hear_feedback(
    runtime: "Runtime", *, requester: str, recommender: str, handle: str, reward: float
) -> Receipt:
    """Count feedback that an asking vendor passes on. Only the one that asked may."""
    found = await _hosting(runtime, recommender)
    pending, note = _hosted(runtime, handle)
    if pending.generation != found.generation or note.peer != peer_digest(requester):
        raise TokenForged("handle was not given to this vendor by this recommender")
    return await give_feedback(runtime, Feedback(reward=reward, recommendation_id=handle))


@dataclass(frozen=True, slots=True)
class Opened:
    """What a handle stands for. `expires_at` is in seconds since the epoch."""

    recommender: str
    item: str
    expires_at: int


async def open_handle(runtime: "Runtime", *, handle: str) -> Opened:
    """Return the item behind a handle, to whoever serves the user on our side."""
    await runtime.registry.current()
    pending, _ = _hosted(runtime, handle)
    recommender = runtime.registry.by_generation(pending.generation)
    if not isinstance(recommender, PartitionRecommender):
        raise UnknownDecision("the recommender that made this recommendation has been removed")
    if pending.expires_at <= runtime.clock():
        raise TokenExpired("this handle is no longer accepted")
    return Opened(recommender.name, _item(recommender, pending), pending.expires_at)


def _item(recommender: PartitionRecommender, pending: Pending) -> str:
    item = recommender.id_of.get(pending.decision.choices[0].slot)
    if item is None:
        raise UnknownItem("the item behind this handle has been removed")
    return item


def _hosted(runtime: "Runtime", handle: str) -> tuple[Pending, Hosted]:
    pending = open_decision(runtime.sealer, handle)
    note = read_note(pending.note) if pending.note else None
    if not isinstance(note, Hosted):
        raise TokenForged("handle was not given to another vendor by this service")
    return pending, note
