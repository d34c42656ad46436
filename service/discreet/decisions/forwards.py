"""Answering other vendors' users: one item of ours behind a handle.

The handle is sealed with our keys and fresh every time, of one length: neither the item nor
whether two handles mean the same one can be told from it. So the asking vendor learns nothing of
our catalogue.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from discreet.decisions.feedback import FeedbackRequests
from discreet.decisions.registry import RecommenderRegistry
from discreet.decisions.tokens import Sealer, new_decision_ids, open_decision, seal_decisions
from discreet.errors import (
    DiscreetError,
    RewardConflict,
    TokenExpired,
    TokenForged,
    UnknownDecision,
    UnknownItem,
)
from discreet.families.contract import Recommender
from discreet.families.p_dap.sync import Guests, VendorItem
from discreet.families.questions import Feedback, PendingDecision


@dataclass(frozen=True, slots=True)
class OpenedHandle:
    """What a handle stands for. `expires_at` is in seconds since the epoch."""

    recommender: str
    item: str
    expires_at: int


class ForwardRequests:
    """Answers other vendors."""

    def __init__(
        self,
        *,
        registry: RecommenderRegistry,
        sealer: Sealer,
        feedback: FeedbackRequests,
        clock: Callable[[], float],
    ) -> None:
        self._registry = registry
        self._sealer = sealer
        self._feedback = feedback
        self._clock = clock

    async def answer(
        self, *, requester: str, recommender: str, centre: tuple[float, ...], epsilon: float
    ) -> VendorItem:
        """Choose an item of ours for another vendor's user, whom we know by a cell only."""
        found = await self._registry.find(recommender)
        guests = found.part(Guests)
        debit = guests.debit(requester=requester, centre=centre, epsilon=epsilon)
        (debited,) = await found.store.spend([debit])
        if isinstance(debited, DiscreetError):
            raise debited
        principal, choices, note = guests.decide(
            requester=requester, centre=centre, epsilon=epsilon, paid=debited.granted
        )
        expires_at = int(self._clock()) + found.ttl
        (decision_id,) = new_decision_ids(1)
        pending = PendingDecision(
            found.generation, decision_id, expires_at, principal, True, choices, note
        )
        (handle,) = seal_decisions(self._sealer, [pending])
        return VendorItem(handle, expires_at)

    async def record(self, *, requester: str, recommender: str, handle: str, reward: float) -> None:
        """Count feedback that an asking vendor passes on. Only the one that asked may.

        Whether other feedback was counted before, and which, is not told: the user may have given
        it on our side, and the asking vendor could find it out by trying.
        """
        found = await self._registry.find(recommender)
        pending = open_decision(self._sealer, handle)
        asked = found.part(Guests).was_asked_by(pending, requester)
        if pending.generation != found.generation or not asked:
            raise TokenForged("handle was not given to this vendor by this recommender")
        with suppress(RewardConflict):
            await self._feedback.record(Feedback(reward, handle, scaled=True))

    async def open(self, handle: str) -> OpenedHandle:
        """Return the item behind a handle, to whoever serves the user on our side."""
        await self._registry.current()
        pending = open_decision(self._sealer, handle)
        recommender = self._registry.by_generation(pending.generation)
        if recommender is None:
            raise UnknownDecision("the recommender that made this recommendation was removed")
        if not recommender.part(Guests).is_handle(pending):
            raise TokenForged("handle was not given to another vendor by this service")
        if pending.expires_at <= self._clock():
            raise TokenExpired("this handle is no longer accepted")
        return OpenedHandle(recommender.name, _item(recommender, pending), pending.expires_at)


def _item(recommender: Recommender[Any], pending: PendingDecision) -> str:
    item = recommender.id_of.get(pending.choices[0].slot)
    if item is None:
        raise UnknownItem("the item behind this handle was removed")
    return item
