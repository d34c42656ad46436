"""What is known about the cells of one population: released sums, and the estimates they give.

Feedback on an item in a cell adds its reward to `liked` and the rest of 1 to `disliked`, both in
whole steps. So one record is a vector of two entries that are not negative and add up to 1: its
Euclidean norm is at most 1, and replacing one record by another moves the sums by at most
`SENSITIVITY` = sqrt(2). Every release adds Gaussian noise of its own to every entry of what has
gathered since the last one; `variance` is what that noise adds up to in one entry.

An estimate, for an item in a cell. With prior mean p, released sums L and D, n = L + D, and v the
variance of the noise in each: L / n has the variance of q / n for n people (q = p (1 - p)) and of
v ((1 - p)^2 + p^2) / n^2 for the noise. So it is worth

    w = n^2 q / (n q + v ((1 - p)^2 + p^2))

exact observations; with no noise that is n. The mean starts at the parent cell's, as if that had
been seen a few times.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from discreet.families.contract import REWARD_STEPS
from discreet.families.p_dap.partition import WHOLE, CellTree, Floats, Integers
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import Vector

SENSITIVITY = math.nextafter(math.sqrt(2.0), 2.0)

_INHERITED = 10.0
"""A cell's means start at its parent's, worth so many observations."""
_FEWEST = 2.0
"""Added to what an estimate is worth, in its standard error."""
_GRACE = 2
"""Releases for which feedback on answers from a cell is still taken after it has split."""
_SPLIT_DEVIATIONS = 6.0
"""A cell splits once its arrivals exceed the threshold by so many deviations of their noise."""


@dataclass(frozen=True, slots=True, eq=False)
class CellStatistics:
    """A tree of cells with a row of released sums each; a column is an item's slot."""

    tree: CellTree
    liked: Floats
    disliked: Floats
    variance: Floats
    divided_for: Integers
    """Releases since each cell has split."""

    @classmethod
    def blank(cls, *, segments: int, slots: int) -> "CellStatistics":
        """Return the whole cube, of which nothing is known."""
        nothing = np.zeros((1, slots))
        return cls(CellTree.root(segments), nothing, nothing, nothing, np.zeros(1, np.int64))

    @property
    def slots(self) -> int:
        """How many items there is a column for."""
        return int(self.liked.shape[1])

    def fitted(self, slots: int) -> "CellStatistics":
        """Return this with a column for every item of the catalogue."""
        if slots <= self.slots:
            return self
        more = ((0, 0), (0, slots - self.slots))
        return replace(
            self,
            liked=np.pad(self.liked, more),
            disliked=np.pad(self.disliked, more),
            variance=np.pad(self.variance, more),
        )

    def arrivals(self) -> Floats:
        """Return how much feedback each cell has had, noise included."""
        total: Floats = (self.liked + self.disliked).sum(axis=1)
        return total

    def grown(
        self,
        blocks: Mapping[int, Vector],
        *,
        live: npt.NDArray[np.intp],
        deviation: float,
        noise: NoiseSource,
    ) -> "CellStatistics":
        """Return the sums with what has gathered, by cell, and with this release's noise.

        `live` are the slots of items that exist: about others nothing is released.
        """
        gathered = np.zeros((len(self.tree), self.slots, 2), dtype=np.int64)
        for cell, vector in blocks.items():
            if cell < len(gathered):
                flat = gathered[cell].reshape(-1)
                held = vector[: len(flat)]
                flat[: len(held)] = held
        cells = np.flatnonzero((self.tree.dimension == WHOLE) | (self.divided_for < _GRACE))
        entries = np.ix_(cells, live)
        fresh = gathered[entries]
        if deviation and fresh.size:
            drawn = noise.discrete_gaussian(scale=deviation * REWARD_STEPS, size=fresh.size)
            fresh = fresh + drawn.reshape(fresh.shape)
        liked, disliked = self.liked.copy(), self.disliked.copy()
        liked[entries] += fresh[:, :, 0] / REWARD_STEPS
        disliked[entries] += fresh[:, :, 1] / REWARD_STEPS
        variance = self.variance.copy()
        variance[entries] += deviation**2
        divided_for = self.divided_for + (self.tree.dimension != WHOLE)
        return replace(
            self, liked=liked, disliked=disliked, variance=variance, divided_for=divided_for
        )

    def divided(
        self, *, dimensions: int, base: float, growth: float, most_cells: int
    ) -> "CellStatistics":
        """Return this with every cell split that has seen enough, as far as there is room."""
        tree = self.tree
        leaves = tree.leaves
        levels = tree.depth[leaves] / dimensions
        thresholds = base * np.power(float(tree.segments), growth * levels)
        margin = _SPLIT_DEVIATIONS * np.sqrt(2.0 * self.variance[leaves].sum(axis=1))
        ready = leaves[self.arrivals()[leaves] >= thresholds + margin]
        room = max(0, (most_cells - len(tree)) // tree.segments)
        split = tree.split(ready[:room], dimensions)
        more = ((0, len(split) - len(tree)), (0, 0))
        return CellStatistics(
            split,
            np.pad(self.liked, more),
            np.pad(self.disliked, more),
            np.pad(self.variance, more),
            np.pad(self.divided_for, more[0]),
        )

    def gathered_up(self) -> tuple[Floats, Floats, Floats]:
        """Return liked, disliked and variance of every cell with all parts below it."""
        liked, disliked = self.liked.copy(), self.disliked.copy()
        variance = self.variance.copy()
        # Parts have larger numbers than the cell that they are parts of.
        for depth in range(int(self.tree.depth.max()), 0, -1):
            cells = np.flatnonzero(self.tree.depth == depth)
            for sums in (liked, disliked, variance):
                np.add.at(sums, self.tree.parent[cells], sums[cells])
        return liked, disliked, variance

    def totals(self) -> tuple[float, float]:
        """Return how much feedback there was and what it added up to, noise included."""
        liked, disliked = float(self.liked.sum()), float(self.disliked.sum())
        return max(liked + disliked, 0.0), max(liked, 0.0)

    def overall_mean(self) -> float:
        """Return the mean reward of everything at once.

        It starts at one half, as if seen as often as noise can pretend.
        """
        weight = _INHERITED + math.sqrt(float(self.variance.sum()))
        liked, disliked = max(float(self.liked.sum()), 0.0), max(float(self.disliked.sum()), 0.0)
        return (liked + 0.5 * weight) / (liked + disliked + weight)

    def estimates(self) -> tuple[Floats, Floats]:
        """Return the mean of every item in every cell, and its standard error."""
        liked, disliked, variance = self.gathered_up()
        seen = np.maximum(liked + disliked, 0.0)
        overall = self.overall_mean()
        means = np.full(liked.shape, min(max(overall, 0.02), 0.98))
        errors = np.empty_like(means)
        for depth in range(int(self.tree.depth.max()) + 1):
            cells = np.flatnonzero(self.tree.depth == depth)
            prior = means[self.tree.parent[cells]] if depth else means[cells]
            spread = prior * (1.0 - prior)
            n = seen[cells]
            noisy = variance[cells] * ((1.0 - prior) ** 2 + prior**2)
            worth = n**2 * spread / (n * spread + noisy + 1e-12)
            share = np.clip(liked[cells] / np.maximum(n, 1e-9), 0.0, 1.0)
            mean = (worth * share + _INHERITED * prior) / (worth + _INHERITED)
            means[cells] = np.clip(mean, 0.005, 0.995)
            errors[cells] = np.sqrt(spread / (worth + _FEWEST))
        return means, errors

    def shares(self) -> Floats:
        """Return the share of the traffic that each undivided cell has, roughly."""
        own = np.maximum(self.arrivals(), 0.0)
        for cell in range(1, len(self.tree)):
            own[cell] += own[self.tree.parent[cell]] / self.tree.segments
        leaves = own[self.tree.leaves] + 1e-9
        shares: Floats = leaves / leaves.sum()
        return shares

    def splits(self) -> int:
        """Return how many cells have split."""
        return int(np.count_nonzero(self.tree.dimension != WHOLE))

    def arrays(self, prefix: str) -> dict[str, npt.NDArray[np.generic]]:
        """Return everything as arrays to store."""
        own = {
            "liked": self.liked,
            "disliked": self.disliked,
            "variance": self.variance,
            "divided_for": self.divided_for.astype("<i4"),
        }
        return {prefix + name: array for name, array in {**own, **self.tree.arrays()}.items()}

    @classmethod
    def of(
        cls, segments: int, arrays: Mapping[str, npt.NDArray[np.generic]], prefix: str
    ) -> "CellStatistics":
        """Return the statistics of such arrays."""
        held = {
            name.removeprefix(prefix): array
            for name, array in arrays.items()
            if name.startswith(prefix)
        }
        return cls(
            CellTree.of(segments, held),
            liked=held["liked"].astype(np.float64),
            disliked=held["disliked"].astype(np.float64),
            variance=held["variance"].astype(np.float64),
            divided_for=held["divided_for"].astype(np.int64),
        )
