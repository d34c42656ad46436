"""Feedback: open the token, then claim once, charge and add in one atomic step, and answer.

Feedback is idempotent by nature. The same reward again is a duplicate and adds nothing; another
reward for the same decision is a conflict and adds nothing. Which of them it is, the store decides
in the same step that adds, so no crash or race can count a click twice.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from discreet.decisions.batcher import Batcher, Waiter
from discreet.decisions.decision_log import DecisionLog
from discreet.decisions.experiments import Experiments
from discreet.decisions.lane import LongWorkLane
from discreet.decisions.registry import RecommenderRegistry
from discreet.decisions.retries import StoredAnswers
from discreet.decisions.tokens import Sealer, open_decision
from discreet.errors import (
    DiscreetError,
    InvalidArgument,
    NotAllowed,
    TokenExpired,
    TokenForged,
    UnknownDecision,
)
from discreet.families.contract import Recommender
from discreet.families.observer import Observer
from discreet.families.questions import (
    Activation,
    Feedback,
    PendingDecision,
    PendingFeedback,
    Receipt,
)

_MOST_TOGETHER = 250
"""Pieces of feedback of a batch that are recorded as one."""
CLAIM_MARGIN = 600
"""Seconds that a claim outlives its token. Both go by the store's clock; a failover may set it."""


class FeedbackRequests:
    """Records feedback."""

    def __init__(
        self,
        *,
        registry: RecommenderRegistry,
        sealer: Sealer,
        answers: StoredAnswers,
        observer: Observer,
        clock: Callable[[], float],
        lane: LongWorkLane,
        decision_log: DecisionLog,
        experiments: Experiments,
    ) -> None:
        self._experiments = experiments
        self._registry = registry
        self._sealer = sealer
        self._answers = answers
        self._observer = observer
        self._clock = clock
        self._lane = lane
        self._decision_log = decision_log
        self._batcher: Batcher[PendingFeedback, Receipt] = Batcher(self._record)

    async def record(self, feedback: Feedback) -> Receipt:
        """Count one reward once, together with those that arrive in the same turn."""
        token = feedback.recommendation_id or await self.token_of(feedback)
        if self._registry.trusted() is None:
            await self._registry.current()
        return await self._batcher.join(*self._open(feedback, token))

    def enter(self, feedback: Feedback, waiter: Waiter) -> bool:
        """Let one reward be counted with those of its turn, if that is all it needs.

        The registry must be trusted now. Returns False for what `record` has to look up; raises
        what is wrong with the feedback.
        """
        token = feedback.recommendation_id
        if token is None:
            return False
        self._batcher.enter(*self._open(feedback, token), waiter)
        return True

    async def record_many(self, many: Sequence[Feedback]) -> list[Receipt | DiscreetError]:
        """Count many rewards in few round trips; each succeeds or fails by itself, in order."""
        await self._registry.current()
        tokens = await asyncio.gather(*map(self.token_of, many), return_exceptions=True)
        receipts: list[Receipt | DiscreetError] = []
        together: dict[Recommender[Any], list[tuple[int, PendingFeedback]]] = {}
        for position, (feedback, token) in enumerate(zip(many, tokens, strict=True)):
            try:
                if isinstance(token, BaseException):
                    raise token
                recommender, pending = self._open(feedback, token)
            except DiscreetError as error:
                receipts.append(error)
                continue
            receipts.append(_NOT_RECORDED)
            together.setdefault(recommender, []).append((position, pending))
        for recommender, group in together.items():
            for start in range(0, len(group), _MOST_TOGETHER):
                some = group[start : start + _MOST_TOGETHER]
                record = partial(self._record, recommender, [pending for _, pending in some])
                outcomes = await self._lane.piece(record)
                for (position, _), outcome in zip(some, outcomes, strict=True):
                    receipts[position] = outcome
        return receipts

    async def _record(
        self, recommender: Recommender[Any], many: Sequence[PendingFeedback]
    ) -> Sequence[Receipt | DiscreetError]:
        try:
            receipts = await recommender.record_feedback(many)
        except DiscreetError as error:
            return [error] * len(many)
        if recommender.stored.document.log is not None:
            self._decision_log.fed_back(recommender, many, receipts)
        return receipts

    async def token_of(self, feedback: Feedback | Activation) -> str:
        """Return the id of the recommendation that is spoken of."""
        if feedback.recommendation_id is not None:
            return feedback.recommendation_id
        if feedback.event_id is None:
            raise InvalidArgument("recommendation_id", "give either recommendation_id or event_id")
        return await self._answers.recommendation_id(feedback.event_id)

    def _open(self, feedback: Feedback, token: str) -> tuple[Recommender[Any], PendingFeedback]:
        """Open the token, and return whose decision it was and what is said about it."""
        recommender, pending, remaining = self._find(token, feedback.recommenders)
        if not feedback.scaled:
            reward = recommender.scaled(feedback.reward)
            _, recommendation_id, event_id, item, recommenders, _ = feedback
            feedback = Feedback(reward, recommendation_id, event_id, item, recommenders, True)
        return recommender, PendingFeedback(pending, feedback, remaining + CLAIM_MARGIN)

    async def find(
        self, token: str, recommenders: frozenset[str] | None
    ) -> tuple[Recommender[Any], PendingDecision, int]:
        """Return whose decision it is, the decision, and for how many seconds it can be spoken of.

        `recommenders` are those that the caller may speak to.
        """
        await self._registry.current()
        return self._find(token, recommenders)

    def _find(
        self, token: str, recommenders: frozenset[str] | None
    ) -> tuple[Recommender[Any], PendingDecision, int]:
        try:
            pending = open_decision(self._sealer, token)
        except TokenForged:
            self._observer.forged()
            raise
        recommender = self._registry.by_generation(pending.generation)
        if recommender is None:
            raise UnknownDecision("the recommender that made this recommendation was removed")
        if recommenders is not None and recommender.name not in recommenders:
            reached = self._experiments.reach(self._registry.latest(), recommenders)
            if recommender.name not in reached:
                raise NotAllowed("this key is bound to other recommenders")
        remaining = pending.expires_at - int(self._clock())
        if remaining <= 0:
            raise TokenExpired(
                "feedback for this recommendation came too late: it was awaited for "
                f"{recommender.reward.wait} (reward.wait), and the default counts since"
                if recommender.awaits
                else "feedback for this recommendation is no longer accepted"
            )
        return recommender, pending, remaining


_NOT_RECORDED = UnknownDecision("nothing became of this feedback")
"""Stands where no receipt has been written yet."""
