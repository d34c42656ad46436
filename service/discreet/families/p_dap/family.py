"""Adaptive partition at work: what the service asks of every family, for this one."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from discreet.families.questions import Ask, Feedback, Receipt, Recommendation
from discreet.decisions.family import Plain, Word
from discreet.families.p_dap.answering import begin, finish
from discreet.families.p_dap.answering_many import joins
from discreet.families.p_dap.hearing import listens, settle, submit, submit_many
from discreet.families.p_dap.learners import LearnerFactory, learner_for
from discreet.families.p_dap.lots import answer_in_lots
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.families.p_dap.surveying import survey
from discreet.decisions.recommender import Recommender, Stored
from discreet.decisions.tokens import Pending
from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime


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

    def joins(self, recommender: Recommender, ask: Ask) -> bool:
        """One item out of the whole catalogue, from nobody but us."""
        assert isinstance(recommender, PartitionRecommender)
        return joins(recommender, ask)

    def answer_many(
        self, runtime: "Runtime", recommender: Recommender, asks: Sequence[Ask]
    ) -> Awaitable[Sequence[Recommendation | DiscreetError]]:
        """Debit and read for all of them in one round trip, which begins now."""
        assert isinstance(recommender, PartitionRecommender)
        together = [row for row, ask in enumerate(asks) if self.joins(recommender, ask)]
        if not together:
            return super().answer_many(runtime, recommender, asks)
        answered = answer_in_lots(runtime, recommender, [asks[row] for row in together])
        if len(together) == len(asks):
            return answered
        apart = sorted(set(range(len(asks))) - set(together))
        others = super().answer_many(runtime, recommender, [asks[row] for row in apart])
        return _in_order(together, answered, apart, others)

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

    def listens(self, recommender: Recommender, word: Word) -> bool:
        """All but feedback on vendors' items."""
        return listens(word)

    def hear_many(
        self, runtime: "Runtime", recommender: Recommender, words: Sequence[Word]
    ) -> Awaitable[Sequence[Receipt | DiscreetError]]:
        """Claim each once and merge, in one round trip, which begins now."""
        assert isinstance(recommender, PartitionRecommender)
        if all(map(listens, words)):
            return submit_many(runtime, recommender, words)
        return super().hear_many(runtime, recommender, words)

    async def refresh(self, runtime: "Runtime", recommender: Recommender) -> None:
        """Look over what was learned."""
        assert isinstance(recommender, PartitionRecommender)
        await survey(store=runtime.store, recommender=recommender, observer=runtime.observer)


async def _in_order(
    together: Sequence[int],
    many: Awaitable[Sequence[Recommendation | DiscreetError]],
    apart: Sequence[int],
    others: Awaitable[Sequence[Recommendation | DiscreetError]],
) -> Sequence[Recommendation | DiscreetError]:
    """Return the answers of both kinds in the order of the questions."""
    answers = dict(zip(together, await many, strict=True))
    answers.update(zip(apart, await others, strict=True))
    return [answers[row] for row in range(len(answers))]
