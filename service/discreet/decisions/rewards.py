"""Decisions that await a reward: activated, and counted as the default when none came in time.

A decision is opened with the debit for its answer (`discreet.state.awaiting`). Once it is due, one
worker at a time counts the default for each of its items, the way of any feedback: claimed once,
charged, added if the client's budget pays for it. Then it is closed. A worker that dies in between
leaves decisions open that are counted already; the store knows which of their items were, so
counting them again counts nothing.

How many defaults were counted is reported nowhere: it would tell how many sent feedback.
"""

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

from discreet.decisions.feedback import CLAIM_MARGIN, FeedbackRequests
from discreet.decisions.tokens import SealedDecision, Sealer, open_decision, opened
from discreet.errors import DiscreetError, StoreUnavailable, TokenForged
from discreet.families.contract import Recommender
from discreet.families.observer import FamilyGauge, Observer
from discreet.families.questions import Activation, Feedback, PendingDecision, PendingFeedback
from discreet.state.awaiting import ClosedDecision, DueDecision
from discreet.state.stores import Debit, Store
from discreet.state.tombstones import Tombstones

log = logging.getLogger(__name__)

LEASE_SECONDS = 5.0
_MOST_OF_A_SHARD = 50
_MOST_TOGETHER = 250
"""Items that are counted as one."""
_DOUBTFUL = CLAIM_MARGIN - 60
"""Seconds after which the claim of feedback that came before an activation may have lapsed."""


class Rewards:
    """Activates decisions, and counts the default for those that nobody spoke of."""

    def __init__(
        self,
        *,
        store: Store,
        feedback: FeedbackRequests,
        sealer: Sealer,
        observer: Observer,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._feedback = feedback
        self._sealer = sealer
        self._observer = observer
        self._clock = clock
        self._tombstones = Tombstones(store)
        self._holder = os.urandom(16)

    async def activate(self, activation: Activation) -> bool:
        """Let a decision await its reward from now on; tell whether there was room.

        Idempotent: the first activation counts, and one that was never deferred awaits already.
        Raises as feedback does for an id that is forged, expired or unknown.
        """
        token = await self._feedback.token_of(activation)
        recommender, pending, _ = await self._feedback.find(token, activation.recommenders)
        if not pending.deferred or not recommender.awaits:
            return recommender.awaits
        one = opened(recommender, SealedDecision(token, pending), at=int(self._clock()))
        (debited,) = await self._store.spend([Debit(pending.principal, opened=one)])
        if isinstance(debited, DiscreetError):
            raise debited
        return debited.awaiting

    async def count_defaults(self, recommender: Recommender[Any]) -> bool:
        """Count decisions that are due, unless another worker does; tell whether there were any."""
        lease = recommender.key(b"rewards")
        if not await self._store.hold(lease=lease, holder=self._holder, seconds=LEASE_SECONDS):
            return False
        found = await self._store.due(generation=recommender.generation, most=_MOST_OF_A_SHARD)
        self._observer.gauge(
            recommender=recommender.name, what=FamilyGauge.OPEN_DECISIONS, value=found.open
        )
        return bool(found.due) and await self._count(recommender, found.due)

    async def _count(self, recommender: Recommender[Any], due: Sequence[DueDecision]) -> bool:
        """Count decisions and close them; tell whether any was closed."""
        closed = {(one.principal, one.decision): 1 for one in due}
        """How many items each has that is counted, or that never will be."""
        pending = [each for one in due if (each := self._countable(one)) is not None]
        erased = await self._tombstones.cover([recommender.made_at(each) for each in pending])
        wanted: list[PendingFeedback] = []
        reward = recommender.scaled(recommender.reward.default)
        now = int(self._clock())
        for each, is_erased in zip(pending, erased, strict=True):
            closed[each.principal, each.decision_id] = len(each.choices)
            if not is_erased:
                ttl = max(each.expires_at - now, 0) + CLAIM_MARGIN
                wanted += (
                    PendingFeedback(each, Feedback(reward, scaled=True), ttl, position)
                    for position in range(len(each.choices))
                )
        for start in range(0, len(wanted), _MOST_TOGETHER):
            some = wanted[start : start + _MOST_TOGETHER]
            receipts = await recommender.record_feedback(some)
            for one, receipt in zip(some, receipts, strict=True):
                if isinstance(receipt, StoreUnavailable):
                    # Whether it was counted is not known. It stays open, and is looked at again.
                    closed.pop((one.pending.principal, one.pending.decision_id), None)
        await self._store.close_decisions(
            generation=recommender.generation,
            decisions=[ClosedDecision(*name, items) for name, items in closed.items()],
        )
        return bool(closed)

    def _countable(self, one: DueDecision) -> PendingDecision | None:
        """Return what was decided, or None if nothing can be counted for it."""
        if one.content is None:
            return None
        try:
            pending = open_decision(self._sealer, one.content.decode())
        except TokenForged:
            log.error("a decision that awaits a reward was sealed with a key that is gone")
            return None
        if pending.deferred and self._clock() > pending.expires_at + _DOUBTFUL:
            # Feedback may have come before it was activated, and nobody would know.
            return None
        return pending
