"""Learners that do not look at the visitor: chance, and what most people like.

They reveal nothing about a context, so they are private at every epsilon of answers. What most
people like can be learned from feedback that is protected as well: `PrivatePopularityLearner` says
how well, and so what can be asked of a learner that has a context to learn about besides.
"""

import numpy as np

from discreet.families.contextual.document import PRIVATE_RELEASES
from discreet.families.contextual.learning import ReleaseNoise
from discreet.families.contract import REWARD_STEPS
from discreet.research.noise import SeededNoise
from discreet.research.suite.stretches import Places, Stretch
from discreet.research.worlds.environments import Floats, seeded

BATCH = 100
PRIVATE_BATCH = 25
DELTA = 1e-6
_THOMPSON = 0.1
_DRAWS = 4_000
_ASSUMED = 0.02
_BELIEF = 2.0
"""How much items are assumed to differ (a variance, around a rate of a half), and for how many."""


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


class PrivatePopularityLearner:
    """The item that most people like, from feedback at an epsilon, as `contextual` releases it.

    A record is one of two counts of its item, so replacing it moves the counts by 2 in all, which
    Laplace noise hides; all of epsilon is for these counts. How often
    an item was shown is taken from the law of the answers, which is public. Nine answers of ten are
    the item with the largest posterior mean, the tenth is by Thompson sampling; how much items
    differ is fitted to all of them together.
    """

    def __init__(self, *, feedback: float, rate: float) -> None:
        self._noise = ReleaseNoise.pure(epsilon=feedback, sensitivity=2.0)
        self._rate = rate
        self._now = self._released = 0.0
        self._visits = 0
        self._counts: dict[int, Floats] = {}
        self._shown: dict[int, float] = {}
        self._known: dict[int, Floats] = {}
        self._law = np.zeros(0)
        self._mean = 0.5
        self._source: SeededNoise | None = None
        self._rng = seeded("private popularity")

    async def play(self, stretch: Stretch, *, seed: int) -> Places:
        """Return a place for every visit, learning when a release is due."""
        if self._source is None:
            self._source, self._rng = SeededNoise(seed), seeded("private popularity", seed)
        offered = stretch.offered.tolist()
        self._fit(offered)
        chosen = np.empty(len(stretch.contexts), dtype=np.intp)
        for start in range(0, len(chosen), PRIVATE_BATCH):
            if self._now - self._released >= PRIVATE_RELEASES.pause(self._released):
                self._release(offered, self._source)
                self._fit(offered)
            rows = np.arange(start, min(start + PRIVATE_BATCH, len(chosen)))
            chosen[rows] = self._rng.choice(stretch.offered, len(rows), p=self._law)
            rewards = stretch.rewards(rows, chosen[rows])
            for item, reward in zip(chosen[rows].tolist(), rewards.tolist(), strict=True):
                self._counts[item] = self._counts.get(item, 0.0) + np.array([reward, 1.0 - reward])
            for item, share in zip(offered, self._law.tolist(), strict=True):
                self._shown[item] = self._shown.get(item, 0.0) + share * len(rows)
            self._visits += len(rows)
            self._now = self._visits / self._rate
        return chosen

    async def close(self) -> None:
        """Nothing is held."""

    def _release(self, offered: list[int], source: SeededNoise) -> None:
        """Add what every item's noisy counts say about its mean, and how much that is worth."""
        rate, variance = self._mean, self._noise.deviation**2
        drawn = self._noise.draw(source, 2 * len(offered)).reshape(-1, 2)
        for item, noise in zip(offered, drawn / REWARD_STEPS, strict=True):
            shown = self._shown.get(item, 0.0)
            if not shown:
                continue
            liked, disliked = self._counts.get(item, np.zeros(2)) + noise
            surplus = (1.0 - rate) * liked - rate * disliked
            spread = shown * max(rate * (1.0 - rate), 0.003)
            worth = shown**2 / (spread + variance * ((1.0 - rate) ** 2 + rate**2))
            found = np.array([worth, worth * (rate + surplus / shown)])
            self._known[item] = self._known.get(item, np.zeros(2)) + found
        self._counts, self._shown, self._released = {}, {}, self._now

    def _fit(self, offered: list[int]) -> None:
        """Decide how often every item is shown until the next release."""
        known = np.array([self._known.get(item, np.zeros(2)) for item in offered])
        worth, told = known[:, 0], known[:, 1]
        if not worth.any():
            self._law = np.full(len(offered), 1.0 / len(offered))
            return
        rate = min(max((told.sum() + 0.5) / (worth.sum() + 1.0), 0.002), 0.998)
        assumed = _ASSUMED * (4.0 * rate * (1.0 - rate)) ** 2
        differing = assumed
        for _ in range(20):
            precision = worth + 1.0 / differing
            apart = (told - worth * rate) / precision
            squares = float((apart**2).sum()) + _BELIEF * assumed
            differing = max(squares / (float((worth / precision).sum()) + _BELIEF), 1e-6)
        precision = worth + 1.0 / differing
        means = rate + (told - worth * rate) / precision
        drawn = means + self._rng.standard_normal((_DRAWS, len(offered))) / np.sqrt(precision)
        tried = np.bincount(drawn.argmax(axis=1), minlength=len(offered)) / _DRAWS
        self._law = _THOMPSON * tried
        self._law[means.argmax()] += 1.0 - _THOMPSON
        self._mean = rate
