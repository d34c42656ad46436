"""Vendors who forward users to one another, as published: Algorithms 1 and 2 at play together.

Every vendor is a runtime with a store of its own, in which Algorithm 1 serves its own users and
Algorithm 2 those of the others. Both run through the shipped decisions; this module carries a
forward from one to the other, as the paper's cloud would, and adds line 9's noise on the way back.

Named exactly as the paper compares them: DAP (no privacy), DUP (no privacy, one size of cells),
P-DAP and GP-DAP.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from discreet.research.published.p_dap import PublishedAdaptivePartition
from discreet.research.published.p_dap_others import PublishedForOthers, RewardTrees
from discreet.families.p_dap.contract import Learner
from discreet.families.p_dap.document import AdaptivePartitionDocument
from discreet.research.environments import Floats
from discreet.research.noise import SeededNoise
from discreet.research.players import TOKEN_SECONDS, Respond, Seat

OWN = "own"
OTHERS = "others"

_FORWARD = "forward to "
_TRAINING = " for training"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The paper's parameters. `horizon` is T; `vendors` how many others each vendor may ask."""

    mode: Literal["uniform", "geometric", "none"]
    horizon: int
    epsilon: float = 1.0
    segments: int = 2
    base: float = 300.0
    growth: float = 1.0
    similarity: float = 0.5
    lipschitz: float = 1.0
    uniform_level: int | None = None

    def own(self, *, vendors: int, dimensions: int, generation: bytes, arms: int) -> Learner:
        """Return Algorithm 1."""
        return PublishedAdaptivePartition(
            generation=generation,
            dimensions=dimensions,
            arms=arms,
            vendors=vendors,
            segments=self.segments,
            base=self.base,
            growth=self.growth,
            similarity=self.similarity,
            horizon=self.horizon,
            uniform_level=self.uniform_level,
            lipschitz=self.lipschitz,
            epsilon=self.epsilon,
            mode=self.mode,
        )

    def others(self, *, dimensions: int, generation: bytes, arms: int) -> Learner:
        """Return Algorithm 2."""
        return PublishedForOthers(
            generation=generation,
            dimensions=dimensions,
            arms=arms,
            segments=self.segments,
            base=self.base,
            growth=self.growth,
            similarity=self.similarity,
            horizon=self.horizon,
            uniform_level=self.uniform_level,
        )

    def exploration(self, *, level: int, items: int) -> float:
        """Return G_3 of a vendor with so many items."""
        control = self.segments ** (2 * self.similarity * level) * math.log(self.horizon)
        return float(control / items)

    def epsilon_at(self, level: int) -> float:
        """Return the epsilon of a cell of this level."""
        if self.mode != "geometric":
            return self.epsilon
        return float(self.epsilon * self.segments ** (self.similarity * level))


def uniform_level(*, horizon: int, dimensions: int, similarity: float, segments: int) -> int:
    """Return the level of DUP's cells: T^(1 / (3 alpha + d)) along every side, as in its paper."""
    along = horizon ** (1.0 / (3.0 * similarity + dimensions))
    return max(1, round(math.log(along, segments)))


def unprotected(items: Sequence[str], dimensions: int) -> AdaptivePartitionDocument:
    """Return a document for a learner that protects nobody and says so."""
    return AdaptivePartitionDocument.model_validate(
        {
            "algorithm": "p-dap",
            "items": list(items),
            "context": {"dimensions": dimensions},
            "privacy": {"mode": "none"},
            "decision_ttl_seconds": TOKEN_SECONDS,
        }
    )


class Network:
    """Vendors at play."""

    def __init__(
        self,
        *,
        seats: Sequence[Seat],
        catalogues: Sequence[Sequence[str]],
        published: Published,
        trees: RewardTrees,
    ) -> None:
        self.seats = seats
        self._published = published
        self._trees = trees
        self._tried: Counter[tuple[object, ...]] = Counter()
        self._position: list[dict[str, int]] = []
        start = 0
        for catalogue in catalogues:
            self._position.append({item: start + at for at, item in enumerate(catalogue)})
            start += len(catalogue)

    @classmethod
    async def open(
        cls,
        *,
        catalogues: Sequence[Sequence[str]],
        dimensions: int,
        published: Published,
        seed: Sequence[int],
    ) -> "Network":
        """Open a runtime for every vendor, with both algorithms in it."""
        count = len(catalogues)

        def learners(
            *, document: AdaptivePartitionDocument, generation: bytes, arms: int
        ) -> Learner:
            # Only Algorithm 1 has vendors among its items.
            if any(item.id.startswith(_FORWARD) for item in document.items):
                return published.own(
                    vendors=count - 1, dimensions=dimensions, generation=generation, arms=arms
                )
            return published.others(dimensions=dimensions, generation=generation, arms=arms)

        seats = []
        for vendor, catalogue in enumerate(catalogues):
            seat = await Seat.open(seed=[*seed, vendor], learners=learners)
            others = [other for other in range(count) if other != vendor]
            forwards = [f"{_FORWARD}{other}" for other in others]
            forwards += [f"{_FORWARD}{other}{_TRAINING}" for other in others]
            await seat.place(OWN, unprotected([*catalogue, *forwards], dimensions))
            await seat.place(OTHERS, unprotected(catalogue, dimensions))
            seats.append(seat)
        entropy = np.random.SeedSequence([*seed, count])
        trees = RewardTrees(horizon=published.horizon, noise=SeededNoise(entropy))
        return cls(seats=seats, catalogues=catalogues, published=published, trees=trees)

    async def play(self, *, vendor: int, context: Floats, respond: Respond) -> int:
        """Serve a user of this vendor, who may be forwarded to another."""
        seat = self.seats[vendor]
        answer = await seat.ask(OWN, context)
        chosen = answer.items[0]
        item = self._position[vendor].get(chosen)
        if item is not None:
            await seat.tell(answer, respond(item))
            return item
        training = chosen.endswith(_TRAINING)
        other = int(chosen.removeprefix(_FORWARD).removesuffix(_TRAINING))
        item, reward = await self._forwarded(other, context, respond)
        if training:
            told = 0.0  # line 7: only that it was a training forward is counted
        else:
            asking = seat.decision(answer).address
            told = self._noisy(("vendor", vendor, other, asking.key), reward, asking.level)
        await seat.tell(answer, told)
        return item

    async def _forwarded(self, vendor: int, context: Floats, respond: Respond) -> tuple[int, float]:
        """Let a vendor serve another's user by Algorithm 2; return the item and its reward."""
        seat = self.seats[vendor]
        answer = await seat.ask(OTHERS, context)
        item = self._position[vendor][answer.items[0]]
        reward = respond(item)
        decision = seat.decision(answer)
        slot, place = decision.choices[0].slot, decision.address
        stream = ("video", vendor, slot, place.key)
        # Line 6 inserts what was observed; line 9 the noisy growth of the item's tree.
        explores = self._tried[stream] < self._published.exploration(
            level=place.level, items=len(self._position[vendor])
        )
        self._tried[stream] += explores
        await seat.tell(answer, reward if explores else self._noisy(stream, reward, place.level))
        return item, reward

    def _noisy(self, stream: tuple[object, ...], reward: float, level: int) -> float:
        if self._published.mode == "none":
            return reward
        epsilon = self._published.epsilon_at(level)
        return self._trees.insert(stream=stream, reward=reward, epsilon=epsilon)

    async def close(self) -> None:
        """Let go of every runtime."""
        for seat in self.seats:
            await seat.close()
