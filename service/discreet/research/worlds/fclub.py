"""Worlds for federated clusters: users with linear tastes on several servers.

An item is x = (direction, 1) / sqrt(2) and a user theta = (taste, 1) / sqrt(2), with directions and
tastes of length 1, so a reward is 1 with probability x.theta = (1 + direction.taste) / 2, and |x| =
|theta| = 1. Every round one user, chosen uniformly, is offered `offered` items.

- `synthetic`: the paper's appendix E.1. Tastes are `clusters` orthogonal directions, the distance
  between preference vectors is 1, items are fresh uniform directions each round. (Four orthonormal
  preference vectors with rewards in [0, 1], as the text has it, do not exist for items that cover
  all directions; orthogonal tastes are what can be had.) In `blocks` users of a cluster are
  neighbours, so a server holds one or two clusters; `mixed`, every server holds all of them.
- `rated`: tastes and items from a table of who liked what, by truncated singular value
  decomposition. Every user is a different person with a taste of their own, and there are no true
  clusters. It is an empirical model made from the table; regret is exact for the model.
- `rated_clusters`: the paper's MovieLens. Users of such a table in `clusters` groups of like taste,
  each user with the taste of the group's centre, and fresh directions for items. (The matrices that
  the authors' program loads were made so, with ten groups; the paper says four.)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.cluster.vq import kmeans2

from discreet.errors import InvalidArgument
from discreet.research.worlds.environments import Floats, seeded

Arrangement = Literal["blocks", "mixed"]

_BLOCK = 2048


@dataclass(frozen=True, slots=True, eq=False)
class Offers:
    """Some rounds: who arrives, what is offered, how likely each is liked, and luck."""

    users: npt.NDArray[np.int64]
    items: Floats
    means: Floats
    luck: Floats


@dataclass(frozen=True, slots=True, eq=False)
class LinearWorld:
    """`tastes` has a row a user; `catalogue` a row an item, or None for fresh directions."""

    servers: npt.NDArray[np.int64]
    tastes: Floats
    catalogue: Floats | None = None
    offered: int = 10
    seed: int = 0

    @property
    def dimensions(self) -> int:
        """Length of an item's features."""
        return int(self.tastes.shape[1]) + 1

    def offers(self, *, rounds: int) -> Iterator[Offers]:
        """Yield the rounds; the same for everybody who plays in this world."""
        rng = seeded("fclub offers", self.seed, 0)
        for start in range(0, rounds, _BLOCK):
            # Whole blocks are drawn, so that a longer run begins with the very same rounds.
            users = rng.integers(0, len(self.tastes), _BLOCK)
            directions = self._directions(rng, _BLOCK)
            luck = rng.random(_BLOCK)
            means = (1 + np.einsum("tkd,td->tk", directions, self.tastes[users])) / 2
            ones = np.ones((_BLOCK, self.offered, 1))
            items = np.concatenate([directions, ones], axis=2) / np.sqrt(2)
            few = slice(rounds - start)
            yield Offers(users[few], items[few], np.clip(means[few], 0, 1), luck[few])

    def _directions(self, rng: np.random.Generator, count: int) -> Floats:
        if self.catalogue is not None:
            picked: Floats = self.catalogue[
                rng.integers(0, len(self.catalogue), (count, self.offered))
            ]
            return picked
        drawn = rng.normal(size=(count, self.offered, self.dimensions - 1))
        drawn /= np.linalg.norm(drawn, axis=2, keepdims=True)
        return drawn


def synthetic(
    seed: int,
    *,
    users: int = 40,
    clusters: int = 4,
    servers: int = 5,
    dimensions: int = 10,
    offered: int = 10,
    arrangement: Arrangement = "blocks",
) -> LinearWorld:
    """Return the paper's synthetic world of this seed."""
    if clusters > dimensions - 1:
        raise InvalidArgument("clusters", "there are only dimensions - 1 orthogonal tastes")
    if not 1 <= servers <= users:
        raise InvalidArgument("servers", "must be at least one, and at most one a user")
    rng = seeded("fclub world", seed, 0)
    basis, _ = np.linalg.qr(rng.normal(size=(dimensions - 1, dimensions - 1)))
    place = np.arange(users)
    cluster = place * clusters // users if arrangement == "blocks" else place % clusters
    return LinearWorld(
        servers=place * servers // users,
        tastes=np.asarray(basis[:, :clusters].T[cluster], dtype=np.float64),
        offered=offered,
        seed=seed,
    )


def rated_clusters(
    table: Floats,
    seed: int,
    *,
    users: int = 40,
    clusters: int = 4,
    servers: int = 5,
    dimensions: int = 10,
) -> LinearWorld:
    """Return a world of a few tastes, found in a table of who liked what; users are in blocks."""
    tastes, _ = factors(table, rank=dimensions - 1)
    if len(tastes) < clusters:
        raise InvalidArgument("data", f"has fewer than {clusters} users")
    rng = seeded("fclub tastes", seed, 0)
    centres, _ = kmeans2(tastes, clusters, minit="++", rng=rng)
    place = np.arange(users)
    return LinearWorld(
        servers=place * servers // users,
        tastes=_directed(np.asarray(centres, dtype=np.float64))[place * clusters // users],
        seed=seed,
    )


def rated(
    table: Floats, seed: int, *, users: int = 40, servers: int = 5, dimensions: int = 10
) -> LinearWorld:
    """Return a world from a table of who (row) liked what (column), with distinct users."""
    tastes, catalogue = factors(table, rank=dimensions - 1)
    tastes = np.unique(tastes.round(12), axis=0)
    if len(tastes) < users:
        raise InvalidArgument("data", f"has fewer than {users} distinct users")
    rng = seeded("fclub people", seed, 0)
    return LinearWorld(
        servers=np.arange(users) * servers // users,
        tastes=tastes[rng.choice(len(tastes), users, replace=False)],
        catalogue=catalogue,
        seed=seed,
    )


def popular(pairs: npt.NDArray[np.int64], *, columns: int) -> Floats:
    """Return the table of who (first entry) liked which of the most liked things (second)."""
    if len(pairs) == 0:
        raise InvalidArgument("data", "the table is empty")
    numbers, counts = np.unique(pairs[:, 1], return_counts=True)
    kept = np.sort(numbers[np.argsort(-counts, kind="stable")][:columns])
    pairs = pairs[np.isin(pairs[:, 1], kept)]
    _, rows = np.unique(pairs[:, 0], return_inverse=True)
    table = np.zeros((int(rows.max()) + 1, len(kept)))
    table[rows.reshape(-1), np.searchsorted(kept, pairs[:, 1])] = 1.0
    return table


def factors(table: Floats, *, rank: int) -> tuple[Floats, Floats]:
    """Return directions of rows and columns from the leading singular vectors.

    Columns are centred first: what everybody likes says nothing about tastes.
    """
    centred = table - table.mean(axis=0)
    left, sizes, right = np.linalg.svd(centred, full_matrices=False)
    root = np.sqrt(sizes[:rank])
    rows, columns = left[:, :rank] * root, right[:rank].T * root
    return _directed(rows), _directed(columns)


def _directed(vectors: Floats) -> Floats:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    kept = norms[:, 0] > 1e-9
    found: Floats = vectors[kept] / norms[kept]
    return found
