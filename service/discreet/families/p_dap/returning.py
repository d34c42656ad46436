"""Feedback travelling back between vendors: what it adds here, and what it sets off.

The asking side counts an arrival in its cell and passes the reward on; it never adds the reward to
what it knows about the vendor, whose rewards are the vendor's secret until the vendor tells their
noisy sum. The vendor's side learns as from any feedback, and adds the reward to its stream.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.families.p_dap.cell import ARRIVALS
from discreet.families.p_dap.contract import Update
from discreet.families.p_dap.notes import Asked, Hosted, read_note
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.families.p_dap.relay import Letter
from discreet.families.p_dap.streams import add_reward
from discreet.families.p_dap.vendors import TRAINED, note_books
from discreet.decisions.tokens import Pending
from discreet.privacy.continual.shared import STEPS

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

Then = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Return:
    """What feedback on a forwarded item adds to a cell, and what follows once it is counted.

    What follows is idempotent, and is repeated for a duplicate: an earlier attempt may have died
    between counting and passing on.
    """

    update: Update
    then: Then
    index: bytes
    """Where the cell is indexed: a guest's cells are apart from our own users'."""
    item: str | None
    """What the caller knows the item by, if that is not an item of ours."""


def returning(
    runtime: "Runtime", recommender: PartitionRecommender, pending: Pending, reward: float, ttl: int
) -> Return:
    """Return what feedback on a forwarded item does, on whichever side we are."""
    note = read_note(pending.note)
    if isinstance(note, Asked):
        return _on_the_asking_side(runtime, recommender, pending, note, reward, ttl)
    return _on_the_vendors_side(runtime, recommender, pending, note, reward, ttl)


def _on_the_asking_side(
    runtime: "Runtime",
    recommender: PartitionRecommender,
    pending: Pending,
    note: Asked,
    reward: float,
    ttl: int,
) -> Return:
    address, slot = pending.decision.address, pending.decision.choices[0].slot

    async def then() -> None:
        if note.training:
            await runtime.store.learn(
                address=note.books,
                increments=((TRAINED, 1),),
                claim=pending.decision_id,
                reward=1,
                claim_ttl=ttl,
            )
            await note_books(runtime, recommender, note.books)
        vendor = recommender.vendor_of.get(slot)
        if vendor is not None:
            await runtime.relay.post(
                pending.decision_id,
                Letter(vendor, recommender.name, note.handle, reward, pending.expires_at),
            )

    # A vendor that is no longer ours to ask has nobody to pass feedback to; the arrival stays.
    return Return(Update(address, ((ARRIVALS, 1),)), then, recommender.generation, note.handle)


def _on_the_vendors_side(
    runtime: "Runtime",
    recommender: PartitionRecommender,
    pending: Pending,
    note: Hosted,
    reward: float,
    ttl: int,
) -> Return:
    async def then() -> None:
        if not note.training:
            await add_reward(
                runtime,
                recommender,
                stream=note.stream,
                claim=pending.decision_id,
                steps=round(reward * STEPS),
                ttl=ttl,
            )

    update = recommender.learner.learn(decision=pending.decision, choice=0, reward=reward)
    return Return(update, then, recommender.guests.generation, None)
