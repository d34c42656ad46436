"""What an epsilon is worth to a recommender of one's own: its reward and regret by epsilon.

On a synthetic stream the truth is known, and regret is exact. On a logged stream it is not, and
the recommender is evaluated by *rejection* (Li, Chu, Langford and Wang 2011): it answers every
logged row; where it answers what was logged, it learns the logged reward and the row counts; where
it does not, the row is skipped, and nothing is learned from it. If the log's choices were random,
the rows that count are distributed as if the recommender had been live, learning included, so
their mean reward is unbiased for it. With propensities, a row counts with probability (smallest
propensity of the log) / (the row's), which makes the log look uniformly random. Weighting instead
(inverse propensities) would use every row, but would have the recommender learn from choices that
it did not make.

Two dials are tried: the epsilon of answers, and that of feedback, which is as the document says
unless others are asked for. Both budgets are lifted, so that every answer is a personalised one and
all feedback is learned; how many requests the real budget pays for is reported beside. The row
without epsilon has neither protection.
"""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from discreet.errors import InvalidArgument
from discreet.families.budgets import BudgetPolicy
from discreet.families.contexts import Context
from discreet.families.documents import (
    AnswersPrivacyDocument,
    Exact,
    FeedbackPrivacyDocument,
    RecommenderDocument,
    WindowedBudgetDocument,
)
from discreet.families.questions import Recommendation
from discreet.privacy.events import RandomisedResponse
from discreet.research.simulate.runs import run
from discreet.research.simulate.server import (
    ARRIVALS_PER_SECOND,
    NEVER_SPENT,
    TOKEN_SECONDS,
    ServedRecommender,
)
from discreet.research.worlds.callers import coordinates
from discreet.research.worlds.contexts import ClusteredWorld, SparseWorld, World
from discreet.research.worlds.environments import Floats, seeded
from discreet.research.worlds.logged import Log, read_log

VectorDocument = Any
"""The document of any family that learns from a context: `context`, and two dials in `privacy`."""

FeedbackDial = float | Exact | None
"""An epsilon of feedback to try; None is what the document says."""

MANY_DIMENSIONS = 32
"""Beyond this, clumps in a cube look all alike; people with a few of many features do not."""

_NORMAL_95 = 1.959964


@dataclass(frozen=True, slots=True)
class EpsilonResult:
    """One run: `counted` answers, their mean reward and its variance, and exact regret if known."""

    counted: int
    reward: float
    variance: float
    regret: float | None = None
    optimal: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class EpsilonTrial:
    """A recommender at one epsilon (None: without protection) on one seed.

    `rate` is how many arrivals come in a second of the simulated clock.
    """

    document: VectorDocument
    epsilon: float | None
    rounds: int
    seed: int
    log: Path | None = None
    rate: float = ARRIVALS_PER_SECOND
    feedback: FeedbackDial = None

    @property
    def label(self) -> str:
        """Return what to show while it runs."""
        what = "without protection" if self.epsilon is None else f"epsilon {self.epsilon:g}"
        return f"{what}, seed {self.seed}"

    def run(self) -> EpsilonResult:
        """Play it."""
        return asyncio.run(self._run())

    async def _run(self) -> EpsilonResult:
        document = at_epsilon(self.document, self.epsilon, self.feedback)
        player = await ServedRecommender.open(
            document=document, seed=[self.seed, 1], rate=self.rate
        )
        try:
            if self.log is None:
                return await self._live(player)
            log = read_log(
                self.log,
                context=document.context,
                items=tuple(item.id for item in document.items),
                most=self.rounds or None,
            )
            return await replay(player=player, log=log, seed=self.seed)
        finally:
            await player.close()

    async def _live(self, player: ServedRecommender) -> EpsilonResult:
        world = world_for(self.document, self.seed)
        found = await run(player=player, world=world, rounds=self.rounds, seed=self.seed)
        reward = float(found.reward[-1]) / self.rounds
        return EpsilonResult(
            counted=self.rounds,
            reward=reward,
            variance=reward * (1.0 - reward),
            regret=float(found.regret[-1]) / self.rounds,
            optimal=float(found.optimal[-1]) / self.rounds,
        )


def learns_from_vectors(document: RecommenderDocument) -> bool:
    """Tell whether a recommender has a context and both dials, so that it can be tried here."""
    privacy = getattr(document, "privacy", None)
    return hasattr(document, "context") and all(
        hasattr(privacy, dial) for dial in ("answers", "feedback")
    )


def at_epsilon(
    document: VectorDocument, epsilon: float | None, feedback: FeedbackDial = None
) -> VectorDocument:
    """Return the recommender with these epsilons, and without hidden items.

    Its budgets are lifted. Without an epsilon for answers both dials are exact.
    """
    answers: AnswersPrivacyDocument | Exact = "exact"
    dial: FeedbackPrivacyDocument | Exact = "exact"
    if epsilon is not None:
        answers = _lifted(_answers(document), epsilon)
        dial = document.privacy.feedback
        if isinstance(feedback, float):
            shape = FeedbackPrivacyDocument() if isinstance(dial, str) else dial
            dial = _lifted(shape, feedback)
        elif feedback == "exact":
            dial = "exact"
        elif not isinstance(dial, str):
            dial = _lifted(dial, dial.epsilon)
    privacy = document.privacy.model_copy(update={"answers": answers, "feedback": dial})
    return document.model_copy(
        update={
            "privacy": privacy,
            "items": [item for item in document.items if not item.hidden],
            "decision_ttl_seconds": TOKEN_SECONDS,
        }
    )


_Dial = TypeVar("_Dial", AnswersPrivacyDocument, FeedbackPrivacyDocument)


def _lifted(dial: _Dial, epsilon: float) -> _Dial:
    """Return a dial at this epsilon with a budget that is never spent."""
    budget = WindowedBudgetDocument(epsilon=NEVER_SPENT, delta=dial.budget.delta)
    return dial.model_copy(update={"epsilon": epsilon, "budget": budget})


def _answers(document: VectorDocument) -> AnswersPrivacyDocument:
    """Return how answers are protected; a document that turns it off has the defaults."""
    answers = document.privacy.answers
    if isinstance(answers, str):
        answers = type(document.privacy)().answers
    assert isinstance(answers, AnswersPrivacyDocument)
    return answers


def world_for(document: VectorDocument, seed: int) -> World:
    """Return a synthetic world with this recommender's items and dimensions."""
    items = tuple(item.id for item in document.items if not item.hidden)
    if not items:
        raise InvalidArgument("items", "the recommender has no items to recommend")
    dimensions = coordinates(document.context)
    if dimensions <= MANY_DIMENSIONS:
        return ClusteredWorld(catalogues=(items,), dimensions=dimensions, seed=seed)
    return SparseWorld(
        catalogues=(items,), dimensions=dimensions, active=min(20, dimensions // 8), seed=seed
    )


class ReplayPlayer(Protocol):
    """A recommender that a log can be replayed to."""

    async def recommend(self, context: Context | Floats) -> tuple[int, Recommendation]:
        """Recommend; return the item's position and the answer."""
        ...

    async def record(self, answer: Recommendation, reward: float) -> None:
        """Learn from feedback."""
        ...


async def replay(*, player: ReplayPlayer, log: Log, seed: int) -> EpsilonResult:
    """Evaluate by rejection; see the module's page."""
    accepts = seeded("replay", seed).random(len(log)) < log.propensities.min() / log.propensities
    rewards: list[float] = []
    rows = zip(log.contexts, log.items.tolist(), log.rewards.tolist(), accepts, strict=True)
    for context, item, reward, accepted in rows:
        answered, answer = await player.recommend(context)
        if answered == item and accepted:
            await player.record(answer, reward)
            rewards.append(reward)
    count = len(rewards)
    return EpsilonResult(
        counted=count,
        reward=float(np.mean(rewards)) if count else math.nan,
        variance=float(np.var(rewards, ddof=1)) if count > 1 else math.nan,
    )


def requests_per_budget(document: VectorDocument, epsilon: float) -> int:
    """Return how many requests for one item the budget for answers pays at this epsilon.

    In geometric mode, which charges by depth, this is the number while nothing has split.
    """
    budget = _answers(document).budget
    policy = BudgetPolicy(epsilon=budget.epsilon, delta=budget.delta)
    charge = policy.charge((RandomisedResponse(epsilon),))
    limit = policy.limit  # either rule may admit it
    return max(0, limit.nano_epsilon // charge.nano_epsilon, limit.nano_rho // charge.nano_rho)


def result_row(
    *,
    document: VectorDocument,
    epsilon: float | None,
    feedback: FeedbackDial = None,
    runs: Sequence[EpsilonResult],
    unprotected: Sequence[EpsilonResult],
) -> dict[str, Any]:
    """Return one row: reward with a 95% interval, and regret of an answer.

    The interval on a log is that of one run: seeds share the rows, so they add little. Regret on a
    log is the reward of the same recommender without protection, minus this one's.
    """
    reward = float(np.mean([one.reward for one in runs]))
    counted = float(np.mean([one.counted for one in runs]))
    row: dict[str, Any] = {
        "epsilon": epsilon,
        "feedback_epsilon": feedback_epsilon(at_epsilon(document, epsilon, feedback)),
        "reward_mean": _known(reward),
        "answers_counted": round(counted),
    }
    if runs[0].regret is None:
        variance = float(np.mean([one.variance for one in runs]))
        half = _NORMAL_95 * math.sqrt(variance / counted) if counted > 1 else math.nan
        free = float(np.mean([one.reward for one in unprotected]))
        row |= {"regret_mean": _known(free - reward), "regret_std": None, "share_of_optimal": None}
    else:
        rewards = [one.reward for one in runs]
        within = math.sqrt(runs[0].variance / counted)
        between = float(np.std(rewards, ddof=1)) if len(rewards) > 1 else within
        half = _NORMAL_95 * max(within, between) / math.sqrt(len(runs))
        regrets = [one.regret or 0.0 for one in runs]
        optimal = float(np.mean([one.optimal or 0.0 for one in runs]))
        row |= {
            "regret_mean": float(np.mean(regrets)),
            "regret_std": float(np.std(regrets, ddof=1)) if len(regrets) > 1 else 0.0,
            "share_of_optimal": 1.0 - float(np.mean(regrets)) / optimal,
        }
    row |= {"reward_low": _known(reward - half), "reward_high": _known(reward + half)}
    row["requests_per_budget"] = None if epsilon is None else requests_per_budget(document, epsilon)
    return row


def feedback_epsilon(document: VectorDocument) -> float | None:
    """Return the epsilon of one piece of feedback; None if it is exact."""
    feedback = document.privacy.feedback
    return None if isinstance(feedback, str) else float(feedback.epsilon)


def _known(value: float) -> float | None:
    """Return None for what could not be measured: JSON has no NaN."""
    return value if math.isfinite(value) else None
