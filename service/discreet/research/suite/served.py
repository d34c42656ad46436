"""Our own learners in the suite: the shipped decisions over the store in memory.

Answers and feedback go through `recommend_many` and `record_many`, as a batch request does. Time
is simulated: visits come at a constant rate, and the recommender's own `releases:` say when a model
is due. Answers between two releases come from one model, so they are asked together.

Every visitor is a new person with the document's default budgets: what is measured is the price of
one answer and of one piece of feedback. Everything in the document that is not named here has its
default.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.errors import DiscreetError
from discreet.families.documents import RecommenderDocument
from discreet.families.questions import Ask, Feedback, Recommendation
from discreet.families.registration import FAMILIES, read_document
from discreet.research.simulate.server import SimulatedClock, SimulatedServer
from discreet.research.suite.stretches import Places, Stretch

ALGORITHMS = ("contextual", "p-dap")
"""What the suite judges, of the families that learn from a vector of numbers."""

_NAME = "suite"
_TOKEN_SECONDS = 60
_STEP = 25
"""Visits by which the time of the next release is looked for."""
_MOST_TOGETHER = 1_000


def judged() -> tuple[str, ...]:
    """Return the algorithms that there are."""
    return tuple(algorithm for algorithm in ALGORITHMS if algorithm in FAMILIES)


def suite_document(
    *,
    algorithm: str,
    dimensions: int,
    items: Sequence[str],
    answers: float | None,
    feedback: float | None,
) -> RecommenderDocument:
    """Return a document with these epsilons (None: exact) and defaults for all else."""
    privacy: dict[str, Any] = {
        "answers": "exact" if answers is None else {"epsilon": answers},
        "feedback": "exact" if feedback is None else {"epsilon": feedback},
    }
    return read_document(
        {
            "algorithm": algorithm,
            "items": list(items),
            "context": {"dimensions": dimensions},
            "privacy": privacy,
            "decision_ttl_seconds": _TOKEN_SECONDS,
        }
    )


class ServedLearner:
    """One recommender, served."""

    def __init__(
        self,
        *,
        algorithm: str,
        answers: float | None,
        feedback: float | None,
        rate: float,
    ) -> None:
        self._algorithm = algorithm
        self._answers = answers
        self._feedback = feedback
        self._rate = rate
        self._clock = SimulatedClock(rate)
        self._server: SimulatedServer | None = None
        self._offered: Places | None = None
        self._visitors = 0

    async def play(self, stretch: Stretch, *, seed: int) -> Places:
        """Answer every visit of the stretch, learn from it, and return the items' places."""
        if self._server is None:
            self._server = await SimulatedServer.open(seed=[seed, 1], clock=self._clock)
        await self._offer(self._server, stretch)
        chosen = np.empty(len(stretch.contexts), dtype=np.intp)
        start = 0
        while start < len(chosen):
            await self._server.release_due()
            rows = np.arange(start, start + await self._until_due(len(chosen) - start))
            answers = await self._ask(self._server, stretch, rows)
            chosen[rows] = [int(answer.items[0]) for answer in answers]
            rewards = stretch.rewards(rows, chosen[rows])
            await self._record(self._server, answers, rewards.tolist())
            self._clock.tick(len(rows))
            start += len(rows)
        return chosen

    async def close(self) -> None:
        """Let go of the server."""
        if self._server is not None:
            await self._server.close()

    async def _offer(self, server: SimulatedServer, stretch: Stretch) -> None:
        if self._offered is not None and np.array_equal(self._offered, stretch.offered):
            return
        self._offered = stretch.offered
        document = suite_document(
            algorithm=self._algorithm,
            dimensions=stretch.contexts.shape[1],
            items=[str(place) for place in stretch.offered.tolist()],
            answers=self._answers,
            feedback=self._feedback,
        )
        await server.put(_NAME, document)

    async def _until_due(self, most: int) -> int:
        assert self._server is not None
        recommender = await self._server.services.registry.find(_NAME)
        most = min(most, _MOST_TOGETHER)
        count = min(_STEP, most)
        while count < most and not recommender.due(self._clock() + count / self._rate):
            count = min(count + _STEP, most)
        return count

    async def _ask(
        self, server: SimulatedServer, stretch: Stretch, rows: Places
    ) -> list[Recommendation]:
        asks = []
        for context in stretch.contexts[rows].tolist():
            asks.append(Ask(_NAME, f"visitor {self._visitors}", context))
            self._visitors += 1
        answers = []
        for answer in await server.services.recommend.recommend_many(asks):
            if isinstance(answer, DiscreetError):
                raise answer
            answers.append(answer)
        return answers

    async def _record(
        self, server: SimulatedServer, answers: Sequence[Recommendation], rewards: Sequence[float]
    ) -> None:
        many = [
            Feedback(reward, answer.recommendation_id, scaled=True)
            for answer, reward in zip(answers, rewards, strict=True)
        ]
        for receipt in await server.services.feedback.record_many(many):
            if isinstance(receipt, DiscreetError):
                raise receipt
