"""Whole worlds for experiments: who comes to which vendor, and how much each item would please.

A world gives its arrivals in blocks, with the true mean reward of every item for every arrival.
All algorithms meet the same arrivals with the same luck: an item pleases if the arrival's luck is
below its mean, so two algorithms that choose alike are rewarded alike, and differences between
them are differences between their choices.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.research.worlds.environments import BumpRewards, ClusteredContexts, Floats, seeded

BLOCK = 512
MOST_BLOCK_NUMBERS = 8_000_000
"""Numbers in one block's contexts or means: what keeps a world of 10,000 dimensions in memory."""

Respond = Callable[[int], float]
"""What an arrival says about an item, by the item's position in the world."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """A block of rounds, one a row; `means` has a column an item, catalogue after catalogue."""

    contexts: Floats
    vendors: npt.NDArray[np.intp]
    luck: Floats
    means: Floats


class World(Protocol):
    """Something to recommend in."""

    @property
    def dimensions(self) -> int:
        """Return how many numbers a context has."""
        ...

    @property
    def catalogues(self) -> tuple[tuple[str, ...], ...]:
        """Return every vendor's items."""
        ...

    def arrivals(self, *, rounds: int, seed: int) -> Iterator[Arrivals]:
        """Yield so many rounds; the same ones for the same seed."""
        ...


def block_rows(world: World) -> int:
    """Return how many rounds of this world fit into one block."""
    widest = max(world.dimensions, sum(map(len, world.catalogues)))
    return max(1, min(BLOCK, MOST_BLOCK_NUMBERS // widest))


def catalogues_of(*, vendors: int, items: int) -> tuple[tuple[str, ...], ...]:
    """Return names for `items` items at each of `vendors` vendors."""
    if vendors < 1 or items < 1:
        raise InvalidArgument("items", "there must be at least one vendor with one item")
    return tuple(
        tuple(f"vendor {vendor} item {item}" for item in range(items)) for vendor in range(vendors)
    )


@dataclass(frozen=True, slots=True, eq=False)
class ClusteredWorld:
    """Clumps of people in [0,1]^d, and items that please around a place of their own.

    With the default widths and heights a uniform draw earns a little over half of what the best
    choice for everybody earns, and the one most popular item about 85%.
    """

    catalogues: tuple[tuple[str, ...], ...]
    dimensions: int = 2
    clusters: int = 8
    spread: float = 0.08
    width: float = 0.4
    low_height: float = 0.2
    high_height: float = 0.93
    seed: int = 0
    contexts: ClusteredContexts = field(init=False, repr=False)
    rewards: BumpRewards = field(init=False, repr=False)

    def __post_init__(self) -> None:
        contexts = ClusteredContexts(self.dimensions, self.clusters, self.spread, self.seed)
        rewards = BumpRewards(
            items=tuple(item for catalogue in self.catalogues for item in catalogue),
            dimensions=self.dimensions,
            seed=self.seed,
            width=self.width,
            low_height=self.low_height,
            high_height=self.high_height,
        )
        object.__setattr__(self, "contexts", contexts)
        object.__setattr__(self, "rewards", rewards)

    def arrivals(self, *, rounds: int, seed: int) -> Iterator[Arrivals]:
        """Yield the rounds; vendors are equally popular."""
        rng = seeded("arrivals", self.seed, seed)
        rows = block_rows(self)
        for start in range(0, rounds, rows):
            count = min(rows, rounds - start)
            contexts = self.contexts.draw(rng, count)
            yield Arrivals(
                contexts=contexts,
                vendors=rng.integers(0, len(self.catalogues), count),
                luck=rng.random(count),
                means=self.rewards.table(contexts),
            )


@dataclass(frozen=True, slots=True, eq=False)
class SparseWorld:
    """People with a few of very many features, of a few kinds.

    A kind is a set of `active` features; a person of it has each of them with a strength in
    [0.8, 1] and no other. An item likes a share of its own of every kind's features, and pleases
    in proportion to the strength of what it likes, so that means are smooth in the context.
    """

    catalogues: tuple[tuple[str, ...], ...]
    dimensions: int = 10_000
    kinds: int = 8
    active: int = 20
    floor: float = 0.05
    height: float = 0.9
    seed: int = 0
    features: npt.NDArray[np.intp] = field(init=False, repr=False)
    likes: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.kinds * self.active <= self.dimensions:
            raise InvalidArgument("dimensions", "must hold the features of all kinds")
        rng = seeded("kinds", self.seed)
        features = rng.permutation(self.dimensions)[: self.kinds * self.active]
        items = sum(map(len, self.catalogues))
        shares = np.repeat(rng.random((items, self.kinds)), self.active, axis=1)
        likes = (rng.random(shares.shape) < shares).astype(np.float64)
        object.__setattr__(self, "features", features.reshape(self.kinds, self.active))
        object.__setattr__(self, "likes", likes)

    def arrivals(self, *, rounds: int, seed: int) -> Iterator[Arrivals]:
        """Yield the rounds; vendors and kinds are equally popular."""
        rng = seeded("arrivals", self.seed, seed)
        rows = block_rows(self)
        for start in range(0, rounds, rows):
            count = min(rows, rounds - start)
            kinds = rng.integers(0, self.kinds, count)
            strengths = rng.uniform(0.8, 1.0, (count, self.active))
            contexts = np.zeros((count, self.dimensions))
            contexts[np.arange(count)[:, None], self.features[kinds]] = strengths
            known = contexts[:, self.features.reshape(-1)]
            yield Arrivals(
                contexts=contexts,
                vendors=rng.integers(0, len(self.catalogues), count),
                luck=rng.random(count),
                means=self.floor + self.height * (known @ self.likes.T) / self.active,
            )
