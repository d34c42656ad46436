"""Feedback: pay for the record, then add its gradient to the sums. Never the other way round.

The client's ledger is debited under a mark of this feedback, so that a retry pays once. If the
debit is refused, the feedback is claimed and counted as heard, and nothing is learned from it. If
its fate is unknown, nothing is added.

A record's gradient lies in several slices of the sums, each with a claim of its own: a retry after
a crash adds what is missing and nothing twice. Whatever is missing or, after a change of the model
in between, differs from what was added first, is y x or nothing in each slice; so the record as a
whole is never longer than the clipped x, which is all that the guarantee needs. That x is the same
every time is seen to by the first claim, which names the record by a digest of x and y: if the
catalogue's features of an item have changed since, a retry is a conflict and adds nothing.
"""

import asyncio
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from discreet.families.mirror_descent.descent import label_of
from discreet.families.questions import Feedback, Receipt
from discreet.decisions.hearing import REWARD_STEPS, note_heard, position_of
from discreet.families.mirror_descent.notes import Note, id_digest, read_note
from discreet.families.mirror_descent.recommender import SLICE, MirrorRecommender
from discreet.decisions.tokens import Pending
from discreet.errors import InvalidArgument
from discreet.state.stores import Claim, Learned

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

HEAD = -1
LEARNED, UNLEARNED = 0, 1
"""Fields where records are counted; of the slices, field 0 counts as well."""

Increments = list[tuple[int, int]]


def _position(
    recommender: MirrorRecommender, pending: Pending, note: Note, item: str | None
) -> int:
    if note.items is None:
        return position_of(recommender, pending, item)
    if item is None:
        # Ids of a caller's own candidates are not in the catalogue, but their number is known.
        return position_of(recommender, pending, None)
    digest = id_digest(item)
    for position, (known, _) in enumerate(note.items):
        if known == digest:
            return position
    raise InvalidArgument("item", "is not one of the items of this recommendation")


def record_of(
    recommender: MirrorRecommender, pending: Pending, feedback: Feedback
) -> tuple[int, Note, dict[int, Increments], int]:
    """Return which item it is about, what the record adds to each slice, and a digest of it."""
    note = read_note(pending.note)
    position = _position(recommender, pending, note, feedback.item)
    label = label_of(feedback.reward)
    if note.items is not None:
        features = note.items[position][1]
    else:
        found = recommender.features_of(pending.decision.choices[position].slot)
        if found is None:
            raise InvalidArgument("recommendation_id", "its item has no features any more")
        features = found
    rows = recommender.record(note.client, features)
    _, amounts = recommender.learner.gradients(
        model=recommender.model, rows=rows, labels=np.array([label])
    )
    slices: dict[int, Increments] = {}
    for index, amount in zip(rows.indices.tolist(), amounts.tolist(), strict=True):
        if amount:
            slices.setdefault(index // SLICE, []).append((1 + index % SLICE, amount))
    content = rows.indices.tobytes() + rows.steps.tobytes() + bytes([label > 0])
    named = int.from_bytes(blake2b(content, digest_size=8).digest(), "little", signed=True)
    return position, note, slices, named


async def hear(
    runtime: "Runtime",
    recommender: MirrorRecommender,
    pending: Pending,
    feedback: Feedback,
    ttl: int,
) -> Receipt:
    """Count feedback once, learning from it if it can be paid for."""
    position, note, slices, named = record_of(recommender, pending, feedback)
    claim = pending.decision_id + position.to_bytes(2, "little")
    reward = round(feedback.reward * REWARD_STEPS)
    recommender.touched = True

    async def add(place: int, increments: Increments) -> Learned:
        learned = await runtime.store.learn(
            address=recommender.address(place),
            increments=increments,
            claim=claim,
            reward=named if place == HEAD else reward,
            claim_ttl=ttl,
        )
        if learned.claim is not Claim.CONFLICT and learned.arrivals & (learned.arrivals - 1) == 0:
            # Said again at every power of two, in case a crash came in between.
            await runtime.store.index_cell(
                index=recommender.generation, address=recommender.address(place), level=0
            )
        return learned

    terms = recommender.terms
    if terms is not None:
        charge = terms.charge((recommender.learner.event,))
        account = await runtime.store.spend(
            principal=note.principal,
            charge=charge,
            limit=terms.limit,
            marker=claim,
            marker_ttl=ttl,
        )
        if not account.granted:
            runtime.observer.exhausted(
                recommender=recommender.name, algorithm=recommender.algorithm
            )
            told = await add(HEAD, [(UNLEARNED, 1)])
            return note_heard(runtime, recommender, told.claim, feedback.reward)
    # The head first: another reward for the same item may have a gradient where the first had none.
    head = await add(HEAD, [(LEARNED, 1)])
    if head.claim is not Claim.CONFLICT:
        await asyncio.gather(
            *(add(place, [(0, 1), *increments]) for place, increments in slices.items())
        )
    recommender.arrivals = max(recommender.arrivals, head.arrivals)
    if terms is not None and head.claim is Claim.COUNTED:
        runtime.observer.spent(
            recommender=recommender.name, algorithm=recommender.algorithm, charge=charge
        )
    return note_heard(runtime, recommender, head.claim, feedback.reward)
