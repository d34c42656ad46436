"""Vendors who forward users to one another, as published: Algorithms 1 and 2 together.

Every vendor serves its own users by Algorithm 1 and those of the others by Algorithm 2. This module
carries a forward from one to the other, as the paper's cloud would, and adds line 9's noise on the
way back. Everything is a dictionary of one process.

Named exactly as the paper compares them: DAP (no privacy), DUP (no privacy, one size of cells),
P-DAP and GP-DAP.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from discreet.research.noise import SeededNoise
from discreet.research.published.p_dap import PublishedAdaptivePartition
from discreet.research.published.p_dap_cells import Floats, PartitionParameters
from discreet.research.published.p_dap_others import PublishedForOthers, RewardTrees
from discreet.research.worlds.contexts import Respond


def uniform_level(parameters: PartitionParameters, *, dimensions: int) -> int:
    """Return the level of DUP's cells: T^(1 / (3 alpha + d)) along every side, as in its paper."""
    along = parameters.horizon ** (1.0 / (3.0 * parameters.similarity + dimensions))
    return max(1, round(math.log(along, parameters.segments)))


def explorable_level(
    parameters: PartitionParameters, *, dimensions: int, slots: int, arrivals: int
) -> int:
    """Return the deepest level that a learner explores in half of so many arrivals."""

    def exploring(level: int) -> float:
        cells: float = parameters.segments ** (dimensions * level)
        return cells * slots * parameters.control(level)

    level = 0
    while exploring(level + 1) <= arrivals / 2:
        level += 1
    return level


class PublishedAlone:
    """One learner that owns every item: CAP, and P-DAP of one vendor."""

    def __init__(
        self, *, items: int, dimensions: int, parameters: PartitionParameters, seed: Sequence[int]
    ) -> None:
        noise = SeededNoise(np.random.SeedSequence(list(seed)))
        self.learner = PublishedAdaptivePartition(
            parameters, dimensions=dimensions, items=items, noise=noise
        )

    async def play(self, *, vendor: int, context: Floats, respond: Respond) -> int:
        """Recommend from the whole catalogue, and learn what came of it."""
        cell, item = self.learner.decide(context)
        self.learner.learn(cell, item, respond(item))
        return item

    async def close(self) -> None:
        """Nothing to let go of."""


class PublishedVendor:
    """One vendor: its own users by Algorithm 1, those of the others by Algorithm 2.

    `first` is the position of its first item in the world; `others` are the other vendors, in the
    order of Algorithm 1's slots.
    """

    def __init__(
        self,
        parameters: PartitionParameters,
        *,
        dimensions: int,
        first: int,
        items: int,
        others: Sequence[int],
        noise: SeededNoise,
    ) -> None:
        self.first = first
        self.items = items
        self.others = others
        self.own_users = PublishedAdaptivePartition(
            parameters, dimensions=dimensions, items=items, vendors=len(others), noise=noise
        )
        self.other_users = PublishedForOthers(parameters, dimensions=dimensions, items=items)


class PublishedVendors:
    """All vendors of a world, in one process."""

    def __init__(
        self,
        *,
        sizes: Sequence[int],
        dimensions: int,
        parameters: PartitionParameters,
        seed: Sequence[int],
    ) -> None:
        self._parameters = parameters
        self._tried: Counter[tuple[object, ...]] = Counter()
        entropy = np.random.SeedSequence([*seed, len(sizes)])
        self._trees = RewardTrees(horizon=parameters.horizon, noise=SeededNoise(entropy))
        self.vendors = [
            PublishedVendor(
                parameters,
                dimensions=dimensions,
                first=sum(sizes[:number]),
                items=size,
                others=[other for other in range(len(sizes)) if other != number],
                noise=SeededNoise(np.random.SeedSequence([*seed, number])),
            )
            for number, size in enumerate(sizes)
        ]

    async def play(self, *, vendor: int, context: Floats, respond: Respond) -> int:
        """Serve a user of this vendor, who may be forwarded to another."""
        here = self.vendors[vendor]
        learner = here.own_users
        cell, slot = learner.decide(context)
        if slot < here.items:
            item = here.first + slot
            learner.learn(cell, slot, respond(item))
            return item
        training, at = divmod(slot - here.items, len(here.others))
        other = here.others[at]
        item, reward = self._forwarded(other, context, respond)
        if training:
            reported = 0.0  # line 7: only that it was a training forward is counted
        else:
            reported = self._noisy(("vendor", vendor, other, cell.name), reward, cell.level)
        learner.learn(cell, slot, reported)
        return item

    def _forwarded(self, vendor: int, context: Floats, respond: Respond) -> tuple[int, float]:
        """Let a vendor serve another's user by Algorithm 2; return the item and its reward."""
        here = self.vendors[vendor]
        learner = here.other_users
        cell, slot = learner.decide(context)
        item = here.first + slot
        reward = respond(item)
        stream = ("video", vendor, slot, cell.name)
        # Line 6 inserts what was observed; line 9 the noisy growth of the item's tree.
        explores = self._tried[stream] < learner.exploration(cell.level)
        self._tried[stream] += explores
        learner.learn(cell, slot, reward if explores else self._noisy(stream, reward, cell.level))
        return item, reward

    def _noisy(self, stream: tuple[object, ...], reward: float, level: int) -> float:
        if self._parameters.mode == "none":
            return reward
        epsilon = self._parameters.epsilon_at(level)
        return self._trees.insert(stream=stream, reward=reward, epsilon=epsilon)

    async def close(self) -> None:
        """Nothing to let go of."""
