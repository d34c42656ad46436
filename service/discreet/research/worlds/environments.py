"""Synthetic worlds whose truth is known: who comes, and what they would like.

A world has two halves. `ClusteredContexts` says who comes: points of [0,1]^d in a few clumps, as
real feature vectors are. `BumpRewards` says what they would like: every item has a place where it
is liked best, and its mean reward falls off smoothly around it.

Regret is computed from these true means and never from what a learner believes. Everything is
reproducible from its seed. Nothing here protects anybody: noise that does is another kind of
randomness (`discreet.privacy.noise`), without a seed.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument

Floats = npt.NDArray[np.float64]

_CANDIDATES = 32
"""Tries for each new centre; the one farthest from its predecessors is kept."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusteredContexts:
    """Contexts in [0,1]^`dimensions`, in `clusters` clumps of standard deviation `spread`.

    Centres are kept apart: each is the one of 32 uniform candidates that lies farthest from those
    before it, so that a small world never has two clumps in one place by chance. Every clump is
    equally likely.
    """

    dimensions: int
    clusters: int
    spread: float
    seed: int
    centres: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _at_least("dimensions", self.dimensions, 1)
        _at_least("clusters", self.clusters, 1)
        _finite_range("spread", self.spread, 0.0, 1.0)
        rng = np.random.default_rng(_entropy("centres", self.seed))
        centres = np.empty((self.clusters, self.dimensions))
        centres[0] = rng.uniform(0.1, 0.9, self.dimensions)
        for index in range(1, self.clusters):
            candidates = rng.uniform(0.1, 0.9, (_CANDIDATES, self.dimensions))
            gaps = np.linalg.norm(candidates[:, None, :] - centres[None, :index, :], axis=2)
            centres[index] = candidates[np.argmax(gaps.min(axis=1))]
        centres.setflags(write=False)
        object.__setattr__(self, "centres", centres)

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Return `count` contexts, one a row."""
        _at_least("count", count, 0)
        return self.around(self.centres[rng.integers(0, self.clusters, count)], rng, self.spread)

    def around(self, places: Floats, rng: np.random.Generator, spread: float) -> Floats:
        """Return one context near each of `places`: the same person on another day."""
        jitter = rng.standard_normal(places.shape) * spread
        near: Floats = np.clip(places + jitter, 0.0, 1.0)
        return near


@dataclass(frozen=True, slots=True, eq=False)
class BumpRewards:
    """The mean reward of item k at context x is a bump around the item's own place c_k.

        mean_k(x) = floor + height_k * exp(-|x - c_k|^2 / (2 * width^2 * dimensions))

    Dividing by the dimensions keeps a bump as wide, relative to the cube, in any of them. An
    item's place and height come from its name and the seed alone: adding, hiding or reordering
    other items changes nothing about it.
    """

    items: tuple[str, ...]
    dimensions: int
    seed: int
    width: float = 0.15
    floor: float = 0.05
    low_height: float = 0.45
    high_height: float = 0.9
    places: Floats = field(init=False, repr=False)
    heights: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _at_least("dimensions", self.dimensions, 1)
        if not self.items:
            raise InvalidArgument("items", "must name at least one item")
        if len(set(self.items)) != len(self.items):
            raise InvalidArgument("items", "must be distinct")
        _finite_range("width", self.width, 1e-6, 1e6)
        _finite_range("floor", self.floor, 0.0, 1.0)
        _finite_range("low_height", self.low_height, 0.0, 1.0 - self.floor)
        _finite_range("high_height", self.high_height, self.low_height, 1.0 - self.floor)
        places = np.empty((len(self.items), self.dimensions))
        heights = np.empty(len(self.items))
        for index, item in enumerate(self.items):
            rng = np.random.default_rng(_entropy("item", self.seed, item))
            heights[index] = rng.uniform(self.low_height, self.high_height)
            places[index] = rng.uniform(0.0, 1.0, self.dimensions)
        places.setflags(write=False)
        heights.setflags(write=False)
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "heights", heights)

    def means(self, context: npt.ArrayLike) -> Floats:
        """Return the true mean reward of every item at `context`, in the order of `items`."""
        point = np.asarray(context, dtype=np.float64)
        if point.shape != (self.dimensions,):
            raise InvalidArgument("context", f"must be {self.dimensions} numbers")
        if not np.isfinite(point).all():
            raise InvalidArgument("context", "must be finite")
        means: Floats = self.table(point[None, :])[0]
        return means

    def table(self, contexts: Floats) -> Floats:
        """Return the true means at many contexts: a row a context, a column an item."""
        # |x - c|^2 in its expanded form: no array of contexts x items x dimensions is ever made.
        squares = (contexts**2).sum(axis=1)[:, None] + (self.places**2).sum(axis=1)[None, :]
        squares = np.maximum(squares - 2.0 * (contexts @ self.places.T), 0.0)
        bumps = np.exp(-squares / (2.0 * self.width**2 * self.dimensions))
        means: Floats = self.floor + self.heights * bumps
        return means


def regret(means: Floats, chosen: Sequence[int]) -> float:
    """Return how much mean reward was given up by answering `chosen`, best list first.

    A list of n items is compared with the n best ones; the sums of true means decide.
    """
    if not chosen or len(set(chosen)) != len(chosen):
        raise InvalidArgument("chosen", "must be distinct positions, at least one")
    if min(chosen) < 0 or max(chosen) >= len(means):
        raise InvalidArgument("chosen", f"must lie within 0 and {len(means) - 1}")
    best = np.sort(means)[::-1][: len(chosen)].sum()
    return max(0.0, float(best - means[list(chosen)].sum()))


def seeded(*parts: object) -> np.random.Generator:
    """Return a generator for this purpose and seed, the same on every machine."""
    return np.random.default_rng(_entropy(*parts))


def _entropy(*parts: object) -> list[int]:
    """Turn names and seeds into entropy that is the same on every machine and in every run."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=32).digest()
    return [int(word) for word in np.frombuffer(digest, dtype="<u4")]


def _at_least(argument: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidArgument(argument, f"must be an integer of at least {least}")


def _finite_range(argument: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # also false for NaN
        raise InvalidArgument(argument, f"must lie between {low:g} and {high:g}")
