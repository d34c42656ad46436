"""The synthetic worlds of the suite.

| name | who comes | what they like | items |
|---|---|---|---|
| bumps | 4 clumps in [0,1]^2 | a bump around every item's place (the demo's world) | 16 |
| logistic-8, -20, -64 | a Gaussian around the middle of [0,1]^d | logistic in the context | 20 |
| clusters | 12 clumps in [0,1]^8 | every clump has means of its own | 50 |
| sparse-1000 | 8 kinds, each with 20 of 1,000 features | what an item likes of them | 40 |
| popularity | as logistic-8 | the same for everybody | 10 |
| drift | as logistic-8, 173 a day | turns by a right angle in every 12,000 visits | 20 |
| come-and-go | as logistic-8 | 4 of the 20 items are replaced every 1,500 visits | 20 |
| catalogue-1000 | as logistic-20 | logistic in the context | 1,000 |
| rare-clicks | as logistic-8 | as there, but 2% of the answers please | 20 |
| corners | 4 times yes or no, told three times over, and constants | logistic in the answers | 12 |
| one-number | 4 clumps in [0,1] | as bumps | 10 |
| two-items | as logistic-8 | logistic in the context | 2 |

The means of the logistic worlds are 1 / (1 + exp(-(z + b - 0.5))) with z = 2 theta (x - 1/2), theta
of length about 3 and b of deviation 0.3. The last four are what real data do to learners.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from discreet.errors import InvalidArgument
from discreet.research.suite.stretches import STRETCH, Stretch, SuiteWorld
from discreet.research.worlds.contexts import SparseWorld, catalogues_of
from discreet.research.worlds.environments import BumpRewards, ClusteredContexts, Floats, seeded

REPLACED_EVERY = 1_500
REPLACED_ITEMS = 4
TURN_ROUNDS = 12_000
"""Visits in which the drifting world turns by a right angle."""


def stretch_sizes(rounds: int) -> list[int]:
    """Return the rounds of every stretch; refuse what does not divide into them."""
    if rounds < STRETCH or rounds % STRETCH:
        raise InvalidArgument("rounds", f"must be a multiple of {STRETCH:,}")
    return [STRETCH] * (rounds // STRETCH)


@dataclass(frozen=True, slots=True, eq=False)
class BumpsWorld:
    """Clumps of people in the unit square, and items that please around their place."""

    truth: int
    items: int = 16
    dimensions: int = 2
    clumps: int = 4

    def stretches(self, *, rounds: int, seed: int) -> Iterator[Stretch]:
        """Yield the rounds."""
        names = tuple(f"item {item}" for item in range(self.items))
        people = ClusteredContexts(self.dimensions, self.clumps, 0.06, self.truth + 3)
        rewards = BumpRewards(items=names, dimensions=self.dimensions, seed=self.truth + 3)
        rng = seeded("bumps", self.truth, seed)
        for count in stretch_sizes(rounds):
            contexts = people.draw(rng, count)
            yield Stretch(
                contexts, np.arange(self.items), rewards.table(contexts), rng.random(count)
            )


@dataclass(frozen=True, slots=True, eq=False)
class LogisticWorld:
    """Means that are logistic in the context.

    `slope` 0 makes them the same for everybody, `level` and `spread` are the mean and the deviation
    of the items' offsets. If `turning` the weights turn towards others; with `replaced` items some
    leave and others come.
    """

    truth: int
    dimensions: int
    items: int = 20
    slope: float = 3.0
    spread: float = 0.3
    level: float = -0.5
    turning: bool = False
    replaced: int = 0

    def stretches(self, *, rounds: int, seed: int) -> Iterator[Stretch]:
        """Yield the rounds; where items are replaced, a stretch ends."""
        changes = rounds // REPLACED_EVERY if self.replaced else 0
        every = self.items + self.replaced * changes
        weights, offsets = self._weights(every)
        others, _ = self._weights(every, 1)
        rng = seeded("logistic", self.truth, seed)
        start = 0
        for count in stretch_sizes(rounds):
            contexts = np.clip(0.5 + 0.25 * rng.standard_normal((count, self.dimensions)), 0, 1)
            luck = rng.random(count)
            centred = 2.0 * (contexts - 0.5)
            scores = centred @ weights.T
            if self.turning:
                angle = (np.arange(start, start + count) / TURN_ROUNDS * np.pi / 2)[:, None]
                scores = np.cos(angle) * scores + np.sin(angle) * (centred @ others.T)
            means = 1.0 / (1.0 + np.exp(-(scores + offsets)))
            yield from self._divided(start, contexts, means, luck)
            start += count

    def _weights(self, every: int, which: int = 0) -> tuple[Floats, Floats]:
        """Return the items' weights and offsets; later items change nothing about earlier ones."""
        rng = np.random.default_rng([5 + self.truth, which])
        drawn = rng.standard_normal((every, self.dimensions + 1))
        slopes = drawn[:, 1:] * self.slope / np.sqrt(self.dimensions)
        return slopes, self.level + drawn[:, 0] * self.spread

    def _divided(
        self, start: int, contexts: Floats, means: Floats, luck: Floats
    ) -> Iterator[Stretch]:
        at = 0
        while at < len(luck):
            first, end = 0, len(luck)
            if self.replaced:
                change, within = divmod(start + at, REPLACED_EVERY)
                first = change * self.replaced
                end = min(end, at + REPLACED_EVERY - within)
            offered = np.arange(first, first + self.items)
            rows = slice(at, end)
            yield Stretch(contexts[rows], offered, means[rows][:, offered], luck[rows])
            at = end


@dataclass(frozen=True, slots=True, eq=False)
class ClustersWorld:
    """Clumps of people who agree with each other, and with nobody else."""

    truth: int
    dimensions: int = 8
    items: int = 50
    clumps: int = 12

    def stretches(self, *, rounds: int, seed: int) -> Iterator[Stretch]:
        """Yield the rounds."""
        people = ClusteredContexts(self.dimensions, self.clumps, 0.05, self.truth)
        table = seeded("clusters", self.truth).beta(1.0, 3.0, (self.clumps, self.items))
        rng = seeded("clusters", self.truth, seed)
        for count in stretch_sizes(rounds):
            clumps = rng.integers(0, self.clumps, count)
            contexts = people.around(people.centres[clumps], rng, people.spread)
            yield Stretch(contexts, np.arange(self.items), table[clumps], rng.random(count))


@dataclass(frozen=True, slots=True, eq=False)
class SparseKindsWorld:
    """People with a few of a thousand features."""

    truth: int
    dimensions: int = 1_000
    items: int = 40
    world: SparseWorld = field(init=False, repr=False)

    def __post_init__(self) -> None:
        catalogues = catalogues_of(vendors=1, items=self.items)
        world = SparseWorld(catalogues=catalogues, dimensions=self.dimensions, seed=self.truth)
        object.__setattr__(self, "world", world)

    def stretches(self, *, rounds: int, seed: int) -> Iterator[Stretch]:
        """Yield the rounds."""
        for part, count in enumerate(stretch_sizes(rounds)):
            blocks = list(self.world.arrivals(rounds=count, seed=seed * 1_000_003 + part))
            yield Stretch(
                np.concatenate([block.contexts for block in blocks]),
                np.arange(self.items),
                np.concatenate([block.means for block in blocks]),
                np.concatenate([block.luck for block in blocks]),
            )


@dataclass(frozen=True, slots=True, eq=False)
class CornersWorld:
    """People who answered yes or no, four times: all contexts are corners of the cube.

    A context has the four answers, the same again, their opposites, and two numbers that never
    differ: perfectly correlated features, and constant ones.
    """

    truth: int
    items: int = 12
    dimensions: int = 14

    def stretches(self, *, rounds: int, seed: int) -> Iterator[Stretch]:
        """Yield the rounds."""
        weights = seeded("corners", self.truth).standard_normal((4, self.items))
        rng = seeded("corners", self.truth, seed)
        for count in stretch_sizes(rounds):
            told = rng.integers(0, 2, (count, 4))
            constant = np.tile([0.0, 1.0], (count, 1))
            contexts = np.hstack([told, told, 1 - told, constant])
            means = 1.0 / (1.0 + np.exp(0.5 - (2 * told - 1) @ weights))
            yield Stretch(contexts, np.arange(self.items), means, rng.random(count))


WORLDS: Mapping[str, Callable[[int], SuiteWorld]] = {
    "bumps": BumpsWorld,
    "logistic-8": lambda truth: LogisticWorld(truth, 8),
    "logistic-20": lambda truth: LogisticWorld(truth, 20),
    "logistic-64": lambda truth: LogisticWorld(truth, 64),
    "clusters": ClustersWorld,
    "sparse-1000": SparseKindsWorld,
    "popularity": lambda truth: LogisticWorld(truth, 8, items=10, slope=0.0, spread=0.7),
    "drift": lambda truth: LogisticWorld(truth, 8, turning=True),
    "come-and-go": lambda truth: LogisticWorld(truth, 8, replaced=REPLACED_ITEMS),
    "catalogue-1000": lambda truth: LogisticWorld(truth, 20, items=1_000),
    "rare-clicks": lambda truth: LogisticWorld(truth, 8, level=-4.8),
    "corners": CornersWorld,
    "one-number": lambda truth: BumpsWorld(truth, items=10, dimensions=1),
    "two-items": lambda truth: LogisticWorld(truth, 8, items=2),
}
"""Worlds by name, from the seed of their truth."""
