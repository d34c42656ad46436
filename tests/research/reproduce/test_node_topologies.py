"""Topologies and weights: doubly stochastic, connected, and fair to those who are missing."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.mirror_descent.sync import neighbour_weights
from discreet.research.reproduce.node_topologies import (
    TOPOLOGIES,
    Topology,
    edges_of,
    metropolis,
    without,
)


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 5, 8, 11, 16])
def test_weights_are_doubly_stochastic_and_bring_all_together(
    topology: Topology, nodes: int
) -> None:
    rng = np.random.default_rng(nodes)
    weights = metropolis(edges_of(topology, nodes, rng), nodes)
    assert np.allclose(weights.sum(axis=0), 1)
    assert np.allclose(weights.sum(axis=1), 1)
    assert (weights >= 0).all()
    assert (np.diag(weights) > 0).all()
    assert np.allclose(np.linalg.matrix_power(weights, 3_000), 1 / nodes, atol=1e-6)


def test_edges_are_what_the_names_say() -> None:
    assert edges_of("ring", 4) == {(0, 1), (1, 2), (2, 3), (0, 3)}
    assert edges_of("ring", 2) == {(0, 1)}
    assert edges_of("grid", 5) == {(0, 1), (1, 2), (3, 4), (0, 3), (1, 4)}
    assert len(edges_of("complete", 6)) == 15
    one, two = (edges_of("random", 8, np.random.default_rng(seed)) for seed in (1, 2))
    assert one != two
    assert 7 <= len(one) <= 15


def test_impossible_arguments_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="rng"):
        edges_of("random", 4)
    with pytest.raises(InvalidArgument, match="nodes"):
        edges_of("ring", 0)
    with pytest.raises(InvalidArgument, match="topology"):
        edges_of("star", 4)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="edges"):
        metropolis([(1, 1)], 3)


def test_a_missing_nodes_weight_returns_to_the_diagonal() -> None:
    weights = metropolis(edges_of("ring", 5), 5)
    kept = without(weights, [2])
    assert kept[2].tolist() == [0, 0, 1, 0, 0]
    assert kept[1, 1] == pytest.approx(weights[1, 1] + weights[1, 2])
    assert np.allclose(kept.sum(axis=0), 1)
    assert np.allclose(kept.sum(axis=1), 1)


def test_a_served_node_finds_its_row_by_itself() -> None:
    edges = edges_of("grid", 5)
    weights = metropolis(edges, 5)
    degree = [sum(node in edge for edge in edges) for node in range(5)]
    for node in range(5):
        near = [a + b - node for a, b in edges if node in (a, b)]
        row = neighbour_weights({str(n): degree[n] for n in near}, [str(n) for n in near])
        assert {int(n): pytest.approx(w) for n, w in row.items()} == {
            n: weights[node, n] for n in near
        }
