"""The algorithms that are compared with P-DAP, by name, each as a player for a world."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from discreet.errors import InvalidArgument
from discreet.families.p_dap.document import AdaptivePartitionDocument
from discreet.research.published.p_dap_cells import PartitionParameters
from discreet.research.published.p_dap_vendors import (
    PublishedAlone,
    PublishedVendors,
    explorable_level,
    uniform_level,
)
from discreet.research.simulate.runs import Player, WorldRun, run
from discreet.research.simulate.server import NEVER_SPENT, TOKEN_SECONDS, ServedRecommender
from discreet.research.simulate.vendors import ServedVendors
from discreet.research.worlds.contexts import World

SERVED = ("served", "served-vendors")
UNPROTECTED = ("dap", "cap", "dup", "dup-larger")
ALGORITHMS = (*UNPROTECTED, "p-dap", "gp-dap", "p-dap-alone", *SERVED)

STREAM_SECONDS = 150.0
"""How long a run lasts on the simulated clock, however many arrivals it has: 30,000 are 200 a
second. It decides how often the served algorithms release a model (`ReleasesDocument`)."""

MakeWorld = Callable[[int], World]
"""A world by its seed. It must be picklable: a partial of something importable."""


@dataclass(frozen=True, slots=True)
class PartitionAlgorithm:
    """An algorithm, its epsilons where it has them, and the paper's constants where it has those.

    dap, dup, p-dap, gp-dap   vendors with Algorithms 1 and 2, as published
    dup-larger                dup, with cells so large that it has time to explore them
    cap                       one learner that owns all items, as published, without privacy
    p-dap-alone               the same with the exponential mechanism: P-DAP of one vendor
    served                    what Discreet serves: one recommender that owns all items
    served-vendors            the same as instances, one a vendor, that forward to one another

    `epsilon` is that of an answer. `feedback_epsilon`, of the served ones, is that of one piece of
    feedback; None releases models from exact sums. The published ones learn from exact sums.
    """

    algorithm: str
    epsilon: float | None = None
    feedback_epsilon: float | None = None
    base: float = 300.0
    growth: float = 3.0
    similarity: float = 1.0

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise InvalidArgument("algorithm", f"must be one of {', '.join(ALGORITHMS)}")
        private = self.algorithm not in UNPROTECTED
        if private != (self.epsilon is not None):
            raise InvalidArgument("epsilon", "must be given for private algorithms, and only those")
        if self.feedback_epsilon is not None and self.algorithm not in SERVED:
            raise InvalidArgument("feedback_epsilon", "is of the served algorithms only")

    @property
    def label(self) -> str:
        """Return a name for people."""
        if self.algorithm not in SERVED:
            name = (
                self.algorithm.upper()
                .replace("-ALONE", " alone")
                .replace("-LARGER", ", larger cells")
            )
            return name if self.epsilon is None else f"{name} ε={self.epsilon:g}"
        feedback = "exact" if self.feedback_epsilon is None else f"ε={self.feedback_epsilon:g}"
        return f"{self.algorithm} ε={self.epsilon:g}, feedback {feedback}"

    async def open(self, *, world: World, rounds: int, seed: int) -> Player:
        """Return the player, ready for the first of so many rounds."""
        entropy = [seed, 1]  # the same noise for all: less chance in their differences
        if self.algorithm == "served":
            items = [item for catalogue in world.catalogues for item in catalogue]
            return await ServedRecommender.open(
                document=self._document(items, world.dimensions),
                seed=entropy,
                rate=rounds / STREAM_SECONDS,
            )
        if self.algorithm == "served-vendors":
            return await ServedVendors.open(
                documents=[self._document(own, world.dimensions) for own in world.catalogues],
                seed=entropy,
                rate=rounds / STREAM_SECONDS,
            )
        sizes = [len(catalogue) for catalogue in world.catalogues]
        parameters = self._parameters(world, rounds)
        if self.algorithm in ("cap", "p-dap-alone"):
            return PublishedAlone(
                items=sum(sizes), dimensions=world.dimensions, parameters=parameters, seed=entropy
            )
        return PublishedVendors(
            sizes=sizes, dimensions=world.dimensions, parameters=parameters, seed=entropy
        )

    def _parameters(self, world: World, rounds: int) -> PartitionParameters:
        parameters = PartitionParameters(
            mode="none" if self.epsilon is None else "uniform",
            horizon=max(2, rounds),
            epsilon=self.epsilon or 1.0,
            base=self.base,
            growth=self.growth,
            similarity=self.similarity,
        )
        if self.algorithm == "gp-dap":
            return replace(parameters, mode="geometric")
        if self.algorithm == "dup":
            level = uniform_level(parameters, dimensions=world.dimensions)
            return replace(parameters, uniform_level=level)
        if self.algorithm == "dup-larger":
            vendors = len(world.catalogues)
            level = explorable_level(
                parameters,
                dimensions=world.dimensions,
                slots=max(map(len, world.catalogues)) + 2 * (vendors - 1),
                arrivals=rounds // vendors,
            )
            return replace(parameters, uniform_level=level)
        return parameters

    def _document(self, items: Sequence[str], dimensions: int) -> AdaptivePartitionDocument:
        return served_document(
            items,
            dimensions=dimensions,
            epsilon=self.epsilon,
            feedback_epsilon=self.feedback_epsilon,
        )


@dataclass(frozen=True, slots=True)
class PartitionTrial:
    """One algorithm in one world."""

    algorithm: PartitionAlgorithm
    world: MakeWorld
    rounds: int
    seed: int

    @property
    def label(self) -> str:
        """Return what to show while it runs."""
        return f"{self.algorithm.label}, seed {self.seed}"

    def run(self) -> WorldRun:
        """Play it."""
        return asyncio.run(self._run())

    async def _run(self) -> WorldRun:
        world = self.world(self.seed)
        player = await self.algorithm.open(world=world, rounds=self.rounds, seed=self.seed)
        try:
            return await run(player=player, world=world, rounds=self.rounds, seed=self.seed)
        finally:
            await player.close()


def served_document(
    items: Sequence[str],
    *,
    dimensions: int,
    epsilon: float | None,
    feedback_epsilon: float | None,
) -> AdaptivePartitionDocument:
    """Return the document of a served recommender with every default but these.

    An epsilon of None turns that dial off. Budgets are lifted.
    """
    never_spent = {"epsilon": NEVER_SPENT}
    answers: Any = "exact"
    if epsilon is not None:
        answers = {"epsilon": epsilon, "budget": never_spent}
    feedback: Any = "exact"
    if feedback_epsilon is not None:
        feedback = {"epsilon": feedback_epsilon, "budget": never_spent}
    return AdaptivePartitionDocument.model_validate(
        {
            "algorithm": "p-dap",
            "items": list(items),
            "context": {"dimensions": dimensions},
            "privacy": {"answers": answers, "feedback": feedback},
            "decision_ttl_seconds": TOKEN_SECONDS,
        }
    )
