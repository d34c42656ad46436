"""Decisions that await a reward: activated, and counted once their time has come.

A decision is opened with the debit for its answer, and what is said about it is held
(`discreet.state.awaiting`). Once it is due, one worker at a time counts each of its items, with the
reward that is held or with the default, the way of any feedback: claimed once, charged, added if
the client's budget pays for it. Then it is closed. A worker that dies in between leaves decisions
open that are counted already; the store knows which of their items were, so counting them again
counts nothing.

How many defaults were counted is reported nowhere: it would tell how many sent feedback.
"""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from discreet.decisions.feedback import CLAIM_MARGIN, FeedbackRequests
from discreet.decisions.tokens import SealedDecision, Sealer, open_decision, opened
from discreet.errors import DiscreetError, StoreUnavailable, TokenForged
from discreet.families.contract import REWARD_STEPS, Recommender
from discreet.families.observer import FamilyGauge, Observer
from discreet.families.questions import (
    Activation,
    Feedback,
    PendingDecision,
    PendingFeedback,
    Receipt,
)
from discreet.state.awaiting import Counted, DueDecision
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
    """Activates decisions, and counts them when they are due."""

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

    async def settle_due(self, recommender: Recommender[Any]) -> bool:
        """Count decisions that are due, unless another worker does; tell whether any was closed."""
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
        done = {(one.principal, one.decision) for one in due}
        countable = [(one, each) for one in due if (each := self._countable(one)) is not None]
        erased = await self._tombstones.cover([recommender.made_at(each) for _, each in countable])
        wanted = [
            feedback
            for (one, each), is_erased in zip(countable, erased, strict=True)
            if not is_erased
            for feedback in self._items(recommender, one, each)
        ]
        for start in range(0, len(wanted), _MOST_TOGETHER):
            some = wanted[start : start + _MOST_TOGETHER]
            receipts = await recommender.record_feedback(some)
            for feedback, receipt in zip(some, receipts, strict=True):
                # Whether it was counted is not known, or another reward came: looked at again.
                if isinstance(receipt, StoreUnavailable) or (
                    isinstance(receipt, Receipt) and receipt.changed
                ):
                    done.discard((feedback.pending.principal, feedback.pending.decision_id))
        await self._store.close_decisions(generation=recommender.generation, decisions=sorted(done))
        return bool(done)

    def _items(
        self, recommender: Recommender[Any], one: DueDecision, pending: PendingDecision
    ) -> Iterator[PendingFeedback]:
        """Yield what counts for each item that was not counted yet."""
        ttl = max(pending.expires_at - int(self._clock()), 0) + CLAIM_MARGIN
        default = recommender.scaled(recommender.reward.default)
        for position, held in enumerate(one.rewards):
            if not isinstance(held, Counted):
                reward = default if held is None else held / REWARD_STEPS
                yield PendingFeedback(
                    pending, Feedback(reward, scaled=True), ttl, position=position, held=held
                )

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
