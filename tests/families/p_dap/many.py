"""Asking a played learner many questions at once, as the decisions layer would."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from discreet.families.p_dap.adaptive_partition import AdaptivePartition
from discreet.families.p_dap.adaptive_partition_many import ManyPlan, decide_many, plan_many
from discreet.families.p_dap.contract import Choice, Decision, Deeper, Floats
from discreet.families.shortlist import Slots
from discreet.audit.mechanisms.scripted import Script
from discreet.privacy.noise import NoiseSource
from tests.families.p_dap.playing import NOTHING, Played

ARMS = 4
EVERY = np.arange(ARMS)


class Best(Script):
    """Coins that never explore and uniforms that fall upon the best arm, by turns."""

    def __init__(self) -> None:
        super().__init__(())

    def bits(self, count: int) -> int:
        self.asked.append(count)
        return 2**count - 1 if len(self.asked) % 2 else 0


class Tossed(Script):
    """A coin and a uniform of 320 bits for each row, told in whatever lots they are asked for."""

    def __init__(self, coins: Sequence[int], uniforms: Sequence[int]) -> None:
        super().__init__(())
        self._answers_of = {4 * len(coins): coins, 40 * len(uniforms): uniforms}

    def bits(self, count: int) -> int:
        self.asked.append(count)
        many = self._answers_of.pop(count // 8)
        width = count // 8 // len(many)
        return int.from_bytes(b"".join(one.to_bytes(width, "little") for one in many), "little")


def learner(**changes: Any) -> AdaptivePartition:
    parameters: dict[str, Any] = {
        "generation": b"g",
        "dimensions": 2,
        "arms": ARMS,
        "base": 8.0,
        "growth": 1.0,
        "exploration_rate": 0.1,
        "epsilon": 4.0,
    }
    return AdaptivePartition(**(parameters | changes))


def clustered(seed: int, count: int, dimensions: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return contexts around a few centres, the first the busiest: cells of all depths come about.

    Different seeds have the same centres.
    """
    centres = np.random.default_rng(dimensions).random((5, dimensions))
    rng = np.random.default_rng([seed, dimensions])
    which = rng.choice(5, count, p=[0.4, 0.15, 0.15, 0.15, 0.15])
    width = rng.choice([0.0, 0.01, 0.3], (count, 1))
    return np.clip(centres[which] + width * (rng.random((count, dimensions)) - 0.5), 0.0, 1.0)


def taught(seed: int = 0, *, lessons: int = 200, survey: bool = True, **changes: Any) -> Played:
    played = Played(learner(**changes))
    teach(played, clustered(seed, lessons, learner_of(played).dimensions), seed=seed)
    if survey:
        played.survey()
    return played


def learner_of(played: Played) -> AdaptivePartition:
    assert isinstance(played.learner, AdaptivePartition)
    return played.learner


def read_rows(
    played: Played, plan: ManyPlan
) -> tuple[list[int], np.ndarray[tuple[int, int], np.dtype[np.int64]]]:
    """Return where each row's vectors begin, and all vectors, cut or filled up to the arms."""
    reads = [address for row in plan.reads for address in row]
    sums = np.zeros((len(reads), 1 + 2 * learner_of(played).arms), dtype=np.int64)
    for row, address in zip(sums, reads, strict=True):
        known = played.state.get(address, row)[: len(row)]
        row[: len(known)] = known
    return list(accumulate(map(len, plan.reads), initial=0)), sums


def decide_rows(
    played: Played, plan: ManyPlan, noise: NoiseSource, rows: Sequence[int] | None = None
) -> list[Decision | Deeper]:
    """Return the first answer to these rows of a plan, or to all."""
    starts, sums = read_rows(played, plan)
    return decide_many(
        learner_of(played),
        plan=plan,
        rows=range(len(plan.reads)) if rows is None else rows,
        starts=starts,
        sums=sums,
        noise=noise,
    )


def ask_all(
    played: Played, contexts: Floats, available: Slots, noise: NoiseSource
) -> tuple[ManyPlan, list[Decision | Deeper]]:
    plan = plan_many(learner_of(played), contexts=contexts, available=available)
    return plan, decide_rows(played, plan, noise)


def teach(played: Played, contexts: Floats, *, seed: int) -> None:
    """Let every context see two arms; which it likes best is told by its first value."""
    rng = np.random.default_rng(seed)
    learner = learner_of(played)
    for context in contexts:
        route = learner.partition.route(context)
        favourite = int(min(context[0], 0.999) * learner.arms)
        level = 0
        while learner.has_split(
            route.address(level), played.state.get(route.address(level), NOTHING)
        ):
            level += 1
        for arm in rng.choice(learner.arms, min(2, learner.arms), replace=False).tolist():
            decision = Decision(choices=(Choice(arm, 1.0),), address=route.address(level))
            played.learn(decision, float(rng.random() < (0.9 if arm == favourite else 0.3)))
