"""Edges and components: two ways, the same partition, and nothing joined that must not be."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.published import similarity_graph
from discreet.research.published.similarity_graph import (
    Graph,
    components,
    numbered,
    squared_distances,
)

POINTS = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 0.0], [5.1, 0.0], [9.0, 9.0]])


def test_distances_are_those_of_every_pair() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    expected = ((one[:, None] - other) ** 2).sum(axis=2)
    assert np.allclose(squared_distances(one, other), expected)
    assert (squared_distances(one, one) >= 0).all()


def test_deletes_edges_longer_than_both_radii() -> None:
    graph = Graph(5)
    assert graph.labels().tolist() == [0] * 5
    graph.delete(points=POINTS, radii=np.full(5, 0.2))
    assert graph.labels().tolist() == [0, 0, 1, 1, 2]


def test_deleted_edges_stay_deleted() -> None:
    graph = Graph(5)
    graph.delete(points=POINTS, radii=np.full(5, 0.2))
    graph.delete(points=POINTS, radii=np.full(5, 100.0))
    assert graph.labels().tolist() == [0, 0, 1, 1, 2]


def test_deleting_at_one_user_leaves_the_others_edges() -> None:
    graph = Graph(5)
    assert graph.delete_at(0, points=POINTS, radii=np.full(5, 0.2))
    assert graph.labels().tolist() == [0] * 5  # through user 1
    assert not graph.delete_at(0, points=POINTS, radii=np.full(5, 0.2))
    assert graph.delete_at(1, points=POINTS, radii=np.full(5, 0.2))
    assert graph.labels().tolist() == [0, 0, 1, 1, 1]


def test_many_users_are_searched_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    points = rng.normal(size=(60, 2))
    radii = np.full(60, 0.15)
    graph = Graph(60)
    graph.delete(points=points, radii=radii)
    few = graph.labels()
    monkeypatch.setattr(similarity_graph, "_FEW", 0)
    monkeypatch.setattr(similarity_graph, "_BLOCK_CELLS", 100)
    assert np.array_equal(graph.labels(), few)
    assert few.max() > 2


def test_search_finds_the_components_that_a_graph_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity_graph, "_BLOCK_CELLS", 64)
    rng = np.random.default_rng(2)
    points = rng.normal(size=(80, 2))
    radii = np.full(80, 0.2)
    graph = Graph(80)
    # With equal radii r, r^2 + r^2 <= (2 s)^2 for s = r / sqrt(2).
    graph.delete(points=points, radii=radii / np.sqrt(2))
    assert np.array_equal(components(points=points, radii=radii), graph.labels())


def test_those_of_whom_little_is_known_stay_alone() -> None:
    radii = np.array([0.2, 0.2, 0.2, 3.0, 0.2])
    labels = components(points=np.zeros((5, 2)), radii=radii, precise=1.0)
    assert labels.tolist() == [0, 0, 0, 1, 0]


def test_numbers_follow_first_members() -> None:
    assert numbered(np.array([7, 3, 7, 9])).tolist() == [0, 1, 0, 2]


def test_refuses_what_does_not_fit() -> None:
    with pytest.raises(InvalidArgument, match="radii"):
        components(points=POINTS, radii=np.ones(4))
    with pytest.raises(InvalidArgument, match="points"):
        components(points=np.full((2, 2), np.nan), radii=np.ones(2))
    with pytest.raises(InvalidArgument, match="users"):
        Graph(0)
