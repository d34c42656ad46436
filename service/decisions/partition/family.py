"""Adaptive partition at work: what the service asks of every family, for this one."""

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from service.decisions.asking import Ask, Feedback, Receipt, Recommendation
from service.decisions.family import Plain
from service.decisions.partition.answering import begin, finish
from service.decisions.partition.hearing import settle, submit
from service.decisions.partition.learners import LearnerFactory, learner_for
from service.decisions.partition.recommender import PartitionRecommender
from service.decisions.partition.surveying import survey
from service.decisions.recommender import Recommender, Stored
from service.decisions.tokens import Pending

if TYPE_CHECKING:
    from service.decisions.runtime import Runtime


class PartitionFamily(Plain):
    """`learners` lets a simulation drive learners that no document can ask for."""

    def __init__(self, *, learners: LearnerFactory = learner_for) -> None:
        self._learners = learners

    def compile(self, *, name: str, stored: Stored) -> PartitionRecommender:
        """Build the learners that the document describes."""
        return PartitionRecommender(name=name, stored=stored, learner_for=self._learners)

    def check(self, recommender: Recommender, ask: Ask) -> None:
        """A context of the right size, ids for candidates, and nothing that other families use."""
        assert isinstance(recommender, PartitionRecommender)
        recommender.request(ask)

    def answer(
        self, runtime: "Runtime", recommender: Recommender, ask: Ask, marker: bytes | None = None
    ) -> Awaitable[Recommendation]:
        """Debit and read in one round trip, which begins now; decide once it is back."""
        assert isinstance(recommender, PartitionRecommender)
        answered = finish(runtime, begin(runtime, recommender, ask, marker))
        # Vendors take their time; one must not hold up the rest of a batch.
        return asyncio.ensure_future(answered) if recommender.vendors else answered

    def hear(
        self,
        runtime: "Runtime",
        recommender: Recommender,
        pending: Pending,
        feedback: Feedback,
        ttl: int,
    ) -> Awaitable[Receipt]:
        """Claim once and merge."""
        assert isinstance(recommender, PartitionRecommender)
        return settle(runtime, submit(runtime, recommender, pending, feedback, ttl))

    async def refresh(self, runtime: "Runtime", recommender: Recommender) -> None:
        """Look over what was learned."""
        assert isinstance(recommender, PartitionRecommender)
        await survey(store=runtime.store, recommender=recommender, observer=runtime.observer)
