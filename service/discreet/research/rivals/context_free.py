"""Learners that do not look at the visitor: chance, and what most people like.

They reveal nothing about a context, so they are private at every epsilon of answers.
"""

import numpy as np

from discreet.research.suite.stretches import Places, Stretch
from discreet.research.worlds.environments import seeded

BATCH = 100


class ChanceLearner:
    """Any item on offer, by chance."""

    def __init__(self) -> None:
        self._rng: np.random.Generator | None = None

    async def play(self, stretch: Stretch, *, seed: int) -> Places:
        """Return a place for every visit."""
        if self._rng is None:
            self._rng = seeded("chance", seed)
        return self._rng.choice(stretch.offered, len(stretch.contexts))

    async def close(self) -> None:
        """Nothing is held."""


class PopularityLearner:
    """The item that most people like, found by Thompson sampling with uniform priors."""

    def __init__(self) -> None:
        self._liked: dict[int, float] = {}
        self._disliked: dict[int, float] = {}
        self._rng: np.random.Generator | None = None

    async def play(self, stretch: Stretch, *, seed: int) -> Places:
        """Return a place for every visit, learning every hundred of them."""
        if self._rng is None:
            self._rng = seeded("popularity", seed)
        chosen = np.empty(len(stretch.contexts), dtype=np.intp)
        offered = stretch.offered.tolist()
        for start in range(0, len(chosen), BATCH):
            rows = np.arange(start, min(start + BATCH, len(chosen)))
            liked = np.array([self._liked.get(item, 0.0) for item in offered])
            disliked = np.array([self._disliked.get(item, 0.0) for item in offered])
            drawn = self._rng.beta(1.0 + liked, 1.0 + disliked, (len(rows), len(offered)))
            chosen[rows] = stretch.offered[drawn.argmax(axis=1)]
            rewards = stretch.rewards(rows, chosen[rows])
            for item, reward in zip(chosen[rows].tolist(), rewards.tolist(), strict=True):
                self._liked[item] = self._liked.get(item, 0.0) + reward
                self._disliked[item] = self._disliked.get(item, 0.0) + 1.0 - reward
        return chosen

    async def close(self) -> None:
        """Nothing is held."""
