"""Who is like whom: edges between users, deleted when their estimates are too far apart.

Two ways, without a Python object for each pair:

- `Graph` keeps the edges of n users as one boolean matrix. An edge that was deleted stays deleted,
  as the papers of this family have it; components come from scipy.sparse.csgraph.
- `components` keeps no edges at all: users are joined by a rule on points and radii, and a breadth
  first search asks for distances block by block, each user once against those not yet reached.
  Memory is one block; 10,000 users take about a second.
"""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from discreet.errors import InvalidArgument

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

_FEW = 1024

_BLOCK_CELLS = 1 << 22
"""Distances held at a time: 32 MiB of doubles."""


def squared_distances(one: Floats, other: Floats) -> Floats:
    """Return |a - b|^2 for every row a of `one` and b of `other`, never below 0."""
    squares: Floats = (one * one).sum(axis=1)[:, None] + (other * other).sum(axis=1)
    squares -= 2 * (one @ other.T)
    np.maximum(squares, 0.0, out=squares)
    return squares


class Graph:
    """An undirected graph over n users that only ever loses edges; it starts complete."""

    def __init__(self, users: int) -> None:
        if users < 1:
            raise InvalidArgument("users", "there must be at least one")
        self.edges: npt.NDArray[np.bool_] = np.ones((users, users), dtype=np.bool_)

    def delete(self, *, points: Floats, radii: Floats) -> None:
        """Delete every edge whose ends lie further apart than the sum of their radii."""
        rows = max(1, _BLOCK_CELLS // len(points))
        for start in range(0, len(points), rows):
            block = slice(start, start + rows)
            near = squared_distances(points[block], points)
            self.edges[block] &= near <= (radii[block, None] + radii) ** 2

    def delete_at(self, user: int, *, points: Floats, radii: Floats) -> bool:
        """Do the same for the edges of one user; tell whether any was deleted."""
        near = squared_distances(points[user : user + 1], points)[0] <= (radii[user] + radii) ** 2
        gone = self.edges[user] & ~near
        if not gone.any():
            return False
        self.edges[user, gone] = False
        self.edges[gone, user] = False
        return True

    def labels(self) -> Labels:
        """Return the number of each user's connected component, numbered by first member."""
        users = len(self.edges)
        if users <= _FEW:
            _, labels = connected_components(csr_array(self.edges), directed=False)
            return numbered(labels.astype(np.int64))
        # A sparse copy of a graph with most of its edges would take twenty times its memory.
        labels = np.full(users, -1, dtype=np.int64)
        for first in range(users):
            if labels[first] >= 0:
                continue
            labels[first] = first
            frontier = np.array([first])
            rows = max(1, _BLOCK_CELLS // users)
            while len(frontier):
                near = self.edges[frontier[:rows]].any(axis=0) & (labels < 0)
                labels[near] = first
                frontier = np.concatenate([frontier[rows:], np.flatnonzero(near)])
        return numbered(labels)


def components(*, points: Floats, radii: Floats, precise: float = np.inf) -> Labels:
    """Return components where i and j are joined if |p_i - p_j|^2 <= r_i^2 + r_j^2 <= precise^2.

    The second half asks that the comparison could have shown a difference: without it, users of
    whom nothing is known would be like all others.
    """
    users = len(points)
    if points.ndim != 2 or radii.shape != (users,):
        raise InvalidArgument("radii", "there must be one for each row of points")
    if not (np.isfinite(points).all() and not np.isnan(radii).any()):
        raise InvalidArgument("points", "must be finite")
    labels: Labels = np.full(users, -1, dtype=np.int64)
    squares = radii**2
    waiting = np.flatnonzero(squares < precise**2)
    number = 0
    while len(waiting):
        labels[waiting[0]] = number
        frontier, waiting = waiting[:1], waiting[1:]
        while len(frontier) and len(waiting):
            rows = max(1, _BLOCK_CELLS // len(waiting))
            reach = squares[frontier[:rows], None] + squares[waiting]
            near = squared_distances(points[frontier[:rows]], points[waiting]) <= reach
            joined = (near & (reach <= precise**2)).any(axis=0)
            labels[waiting[joined]] = number
            frontier = np.concatenate([frontier[rows:], waiting[joined]])
            waiting = waiting[~joined]
        number += 1
    alone = labels < 0
    labels[alone] = number + np.arange(int(alone.sum()))
    return numbered(labels)


def numbered(labels: Labels) -> Labels:
    """Return the same partition with parts numbered 0, 1, 2, … by their first member."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))
    renamed: Labels = order[inverse.reshape(-1)].astype(np.int64)
    return renamed
