"""The algorithms that are compared, by name, each as a player for a world."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from discreet.families.p_dap.contract import Learner
from discreet.families.p_dap.document import AdaptivePartitionDocument
from discreet.errors import InvalidArgument
from discreet.research.joined import JoinedInstances
from discreet.research.network import Network, Published, uniform_level, unprotected
from discreet.research.players import TOKEN_SECONDS, OneRecommender, Player
from discreet.research.worlds import World

ALGORITHMS = ("dap", "cap", "dup", "p-dap", "gp-dap", "p-dap-alone", "served", "served-joined")

NEVER_SPENT = 1e6
"""A budget that no simulated client uses up, so that every answer is the one being measured."""


@dataclass(frozen=True, slots=True)
class Contender:
    """An algorithm, its epsilon where it has one, and the paper's parameters where it has those.

    dap, dup, p-dap, gp-dap   vendors with Algorithms 1 and 2, as published
    cap                       one learner that owns all items, as published, without privacy
    p-dap-alone               the same with the exponential mechanism: P-DAP of one vendor
    served                    what Discreet serves: one recommender that owns all items
    served-joined             the same as instances, one a vendor, that forward to one another
    """

    algorithm: str
    epsilon: float | None = None
    base: float = 300.0
    growth: float = 1.0
    similarity: float = 0.5

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise InvalidArgument("algorithm", f"must be one of {', '.join(ALGORITHMS)}")
        private = self.algorithm not in ("dap", "cap", "dup")
        if private != (self.epsilon is not None):
            raise InvalidArgument("epsilon", "must be given for private algorithms, and only those")

    @property
    def label(self) -> str:
        """Return a name for people."""
        served = self.algorithm.startswith("served")
        name = self.algorithm if served else self.algorithm.upper()
        return name if self.epsilon is None else f"{name} ε={self.epsilon:g}"

    async def open(self, *, world: World, rounds: int, seed: int) -> Player:
        """Return the player, ready for the first of so many rounds."""
        items = [item for catalogue in world.catalogues for item in catalogue]
        entropy = [seed, 1]  # the same noise for all contenders: less chance in their differences
        if self.algorithm == "served":
            document = served_document(items, dimensions=world.dimensions, epsilon=self.epsilon)
            return await OneRecommender.open(document=document, seed=entropy)
        if self.algorithm == "served-joined":
            documents = [
                served_document(own, dimensions=world.dimensions, epsilon=self.epsilon)
                for own in world.catalogues
            ]
            return await JoinedInstances.open(documents=documents, seed=entropy)
        published = self._published(world, rounds)
        if self.algorithm in ("cap", "p-dap-alone"):
            return await _alone(published, items, world.dimensions, entropy)
        return await Network.open(
            catalogues=world.catalogues,
            dimensions=world.dimensions,
            published=published,
            seed=entropy,
        )

    def _published(self, world: World, rounds: int) -> Published:
        published = Published(
            mode="none" if self.epsilon is None else "uniform",
            horizon=max(2, rounds),
            epsilon=self.epsilon or 1.0,
            base=self.base,
            growth=self.growth,
            similarity=self.similarity,
        )
        if self.algorithm == "gp-dap":
            return dataclasses.replace(published, mode="geometric")
        if self.algorithm == "dup":
            level = uniform_level(
                horizon=rounds,
                dimensions=world.dimensions,
                similarity=self.similarity,
                segments=published.segments,
            )
            return dataclasses.replace(published, uniform_level=level)
        return published


async def _alone(
    published: Published, items: Sequence[str], dimensions: int, entropy: Sequence[int]
) -> OneRecommender:
    def learners(*, document: AdaptivePartitionDocument, generation: bytes, arms: int) -> Learner:
        return published.own(vendors=0, dimensions=dimensions, generation=generation, arms=arms)

    return await OneRecommender.open(
        document=unprotected(items, dimensions), seed=entropy, learners=learners
    )


def served_document(
    items: Sequence[str], *, dimensions: int, epsilon: float | None
) -> AdaptivePartitionDocument:
    """Return the document of a served recommender with every default but these."""
    return AdaptivePartitionDocument.model_validate(
        {
            "algorithm": "p-dap",
            "items": list(items),
            "context": {"dimensions": dimensions},
            "privacy": {"epsilon": epsilon, "budget": {"epsilon": NEVER_SPENT}},
            "decision_ttl_seconds": TOKEN_SECONDS,
        }
    )
