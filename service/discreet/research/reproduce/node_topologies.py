"""Who talks to whom among all nodes of a network, and the matrix of Metropolis weights.

A served node knows its own row only (`discreet.families.mirror_descent.sync`); experiments need the
whole matrix, which is doubly stochastic.
"""

from collections.abc import Collection, Iterable
from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument

Floats = npt.NDArray[np.float64]
Topology = Literal["ring", "grid", "complete", "random"]
Edge = tuple[int, int]

TOPOLOGIES: tuple[Topology, ...] = ("ring", "grid", "complete", "random")


def edges_of(
    topology: Topology, nodes: int, rng: np.random.Generator | None = None
) -> frozenset[Edge]:
    """Return the undirected edges (smaller number first) between `nodes` nodes.

    `grid` is as square as the number allows; the last row may be shorter. `random` is a random
    tree, so that it is connected, with as many further edges again; it needs an `rng`.
    """
    if nodes < 1:
        raise InvalidArgument("nodes", "must be at least 1")
    if topology == "ring":
        pairs = [(i, (i + 1) % nodes) for i in range(nodes)]
    elif topology == "complete":
        pairs = [(i, j) for i in range(nodes) for j in range(i)]
    elif topology == "grid":
        width = int(np.ceil(np.sqrt(nodes)))
        right = [(i, i + 1) for i in range(nodes - 1) if (i + 1) % width]
        pairs = right + [(i, i + width) for i in range(nodes - width)]
    elif topology == "random":
        if rng is None:
            raise InvalidArgument("rng", "is needed for a random topology")
        order = rng.permutation(nodes).tolist()
        pairs = [(order[i], order[int(rng.integers(i))]) for i in range(1, nodes)]
        pairs += [(int(i), int(j)) for i, j in rng.integers(nodes, size=(nodes, 2))]
    else:
        raise InvalidArgument("topology", f"must be one of {', '.join(TOPOLOGIES)}")
    return frozenset((min(i, j), max(i, j)) for i, j in pairs if i != j)


def metropolis(edges: Iterable[Edge], nodes: int) -> Floats:
    """Return the doubly stochastic matrix of Metropolis weights."""
    weights = np.zeros((nodes, nodes))
    edges = list(edges)
    degree = np.zeros(nodes, dtype=np.int64)
    for i, j in edges:
        if not 0 <= i < j < nodes:
            raise InvalidArgument("edges", "must join two different nodes, smaller number first")
        degree[i] += 1
        degree[j] += 1
    for i, j in edges:
        weights[i, j] = weights[j, i] = 1 / (1 + max(degree[i], degree[j]))
    np.fill_diagonal(weights, 1 - weights.sum(axis=1))
    return weights


def without(weights: Floats, missing: Collection[int]) -> Floats:
    """Return the weights of a round in which these nodes neither asked nor answered."""
    kept = weights.copy()
    gone = list(missing)
    kept[gone, :] = 0
    kept[:, gone] = 0
    np.fill_diagonal(kept, 0)
    np.fill_diagonal(kept, 1 - kept.sum(axis=1))
    return kept
