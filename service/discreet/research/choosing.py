"""What an epsilon is worth to a recommender of one's own: its reward and regret by epsilon.

On a synthetic stream the truth is known, and regret is exact. On a logged stream it is not, and
the recommender is evaluated by *rejection* (Li, Chu, Langford and Wang 2011): it answers every
logged row; where it answers what was logged, it is told the logged reward and the row counts;
where it does not, the row is passed over, and nothing is learned from it. If the log's choices were
random, the rows that count are distributed as if the recommender had been live, learning included,
so their mean reward is unbiased for it. With propensities, a row counts with probability (smallest
propensity of the log) / (the row's), which makes the log look uniformly random. Weighting instead
(inverse propensities) would use every row, but would have the recommender learn from choices that
it did not make.

Only epsilon is changed. The budget is lifted, so that every answer is a personalised one; how many
answers the real budget buys at that epsilon is reported beside.
"""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from discreet.families.documents import BudgetDocument
from discreet.families.p_dap.document import AdaptivePartitionDocument, PrivacyDocument
from discreet.decisions.recommend import Recommendation
from discreet.errors import InvalidArgument
from discreet.privacy.accountants import Budget, accountant
from discreet.privacy.charges import UNLIMITED
from discreet.privacy.events import RandomisedResponse
from discreet.research.contenders import NEVER_SPENT
from discreet.research.environments import Floats, seeded
from discreet.research.logged import Log, read_log
from discreet.research.players import TOKEN_SECONDS, OneRecommender
from discreet.research.run import run
from discreet.research.worlds import ClusteredWorld, SparseWorld, World

MANY_DIMENSIONS = 32
"""Beyond this, clumps in a cube look all alike; people with a few of many features do not."""

_NORMAL_95 = 1.959964


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: `counted` answers, their mean reward and its variance, and exact regret if known."""

    counted: int
    reward: float
    variance: float
    regret: float | None = None
    optimal: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Try:
    """A recommender at one epsilon (None: without protection) on one seed."""

    document: AdaptivePartitionDocument
    epsilon: float | None
    rounds: int
    seed: int
    log: Path | None = None

    def run(self) -> Measured:
        """Play it."""
        return asyncio.run(self._run())

    async def _run(self) -> Measured:
        document = at_epsilon(self.document, self.epsilon)
        player = await OneRecommender.open(document=document, seed=[self.seed, 1])
        try:
            if self.log is None:
                return await self._live(player)
            items = tuple(item.id for item in document.items)
            log = read_log(
                self.log,
                dimensions=document.context.dimensions,
                items=items,
                most=self.rounds or None,
            )
            return await replay(player=player, log=log, seed=self.seed)
        finally:
            await player.close()

    async def _live(self, player: OneRecommender) -> Measured:
        world = world_for(self.document, self.seed)
        found = await run(player=player, world=world, rounds=self.rounds, seed=self.seed)
        reward = float(found.reward[-1]) / self.rounds
        return Measured(
            counted=self.rounds,
            reward=reward,
            variance=reward * (1.0 - reward),
            regret=float(found.regret[-1]) / self.rounds,
            optimal=float(found.optimal[-1]) / self.rounds,
        )


def at_epsilon(
    document: AdaptivePartitionDocument, epsilon: float | None
) -> AdaptivePartitionDocument:
    """Return the recommender with this epsilon, its budget lifted and its hidden items left out."""
    privacy = document.privacy.model_dump()
    privacy["budget"] = BudgetDocument(epsilon=NEVER_SPENT, delta=document.privacy.budget.delta)
    if epsilon is None:
        privacy["mode"] = "none"
    else:
        privacy["epsilon"] = epsilon
        if privacy["mode"] == "none":
            privacy["mode"] = "uniform"
    return document.model_copy(
        update={
            "privacy": PrivacyDocument.model_validate(privacy),
            "items": [item for item in document.items if not item.hidden],
            "decision_ttl_seconds": TOKEN_SECONDS,
        }
    )


def world_for(document: AdaptivePartitionDocument, seed: int) -> World:
    """Return a made-up world with this recommender's items and dimensions."""
    items = tuple(item.id for item in document.items if not item.hidden)
    if not items:
        raise InvalidArgument("items", "the recommender has no items to recommend")
    dimensions = document.context.dimensions
    if dimensions <= MANY_DIMENSIONS:
        return ClusteredWorld(catalogues=(items,), dimensions=dimensions, seed=seed)
    return SparseWorld(
        catalogues=(items,), dimensions=dimensions, active=min(20, dimensions // 8), seed=seed
    )


class Answering(Protocol):
    """Whoever can be replayed a log."""

    async def answer(self, context: Floats) -> tuple[int, Recommendation]:
        """Recommend; return the item's position and the answer."""
        ...

    async def hear(self, answer: Recommendation, reward: float) -> None:
        """Learn from feedback."""
        ...


async def replay(*, player: Answering, log: Log, seed: int) -> Measured:
    """Evaluate by rejection; see the module's page."""
    accepts = seeded("replay", seed).random(len(log)) < log.propensities.min() / log.propensities
    rewards: list[float] = []
    rows = zip(log.contexts, log.items.tolist(), log.rewards.tolist(), accepts, strict=True)
    for context, item, reward, accepted in rows:
        answered, answer = await player.answer(context)
        if answered == item and accepted:
            await player.hear(answer, reward)
            rewards.append(reward)
    count = len(rewards)
    return Measured(
        counted=count,
        reward=float(np.mean(rewards)) if count else math.nan,
        variance=float(np.var(rewards, ddof=1)) if count > 1 else math.nan,
    )


def answers_within_budget(document: AdaptivePartitionDocument, epsilon: float) -> int:
    """Return how many single answers the recommender's budget buys one client at this epsilon.

    In geometric mode, which charges by depth, this is the number while nothing has split.
    """
    privacy = document.privacy
    books = accountant(privacy.accounting)
    limit = books.limit(Budget(epsilon=privacy.budget.epsilon, delta=privacy.budget.delta))
    charge = books.charge(RandomisedResponse(epsilon))
    columns = (
        (limit.nano_epsilon, charge.nano_epsilon),
        (limit.nano_rho, charge.nano_rho),
        (limit.pico_delta, charge.pico_delta),
    )
    return min(most // cost for most, cost in columns if cost and most != UNLIMITED)


def summarised(
    *,
    document: AdaptivePartitionDocument,
    epsilon: float | None,
    runs: Sequence[Measured],
    unprotected: Sequence[Measured],
) -> dict[str, Any]:
    """Return one row: reward with a 95% interval, and regret of an answer.

    The interval on a log is that of one run: seeds share the rows, so they add little. Regret on a
    log is the reward that the same recommender earns without protection, minus this one's.
    """
    reward = float(np.mean([one.reward for one in runs]))
    counted = float(np.mean([one.counted for one in runs]))
    row: dict[str, Any] = {
        "epsilon": epsilon,
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
    row["answers_within_budget"] = (
        None if epsilon is None else answers_within_budget(document, epsilon)
    )
    return row


def _known(value: float) -> float | None:
    """Return None for what could not be measured: JSON has no NaN."""
    return value if math.isfinite(value) else None
