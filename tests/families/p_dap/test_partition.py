"""Cells: where contexts lie, and how they split."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.p_dap.partition import CellTree, check_contexts


def split_all(tree: CellTree, dimensions: int, times: int) -> CellTree:
    for _ in range(times):
        tree = tree.split(tree.leaves, dimensions)
    return tree


def test_one_cell_holds_everything() -> None:
    tree = CellTree.root(2)
    assert tree.locate(np.random.default_rng(0).random((50, 3))).tolist() == [0] * 50


@pytest.mark.parametrize("segments", [2, 3, 5])
def test_as_many_splits_as_dimensions_are_the_papers_split(segments: int) -> None:
    tree = split_all(CellTree.root(segments), 2, 2)
    assert len(tree.leaves) == segments**2
    points = np.random.default_rng(1).random((2_000, 2))
    cells = tree.locate(points)
    squares = np.floor(points * segments).astype(int)
    together = {(cell, *square) for cell, square in zip(cells, squares.tolist(), strict=True)}
    assert len(together) == segments**2, "one cell for each square, and one square for each cell"


def test_the_last_cell_holds_a_coordinate_of_one() -> None:
    tree = split_all(CellTree.root(3), 1, 3)
    (cell, same) = tree.locate(np.array([[1.0], [np.nextafter(1.0, 0.0)]]))
    assert cell == same


def test_numbers_last_and_parts_follow_what_they_are_part_of() -> None:
    first = split_all(CellTree.root(2), 2, 2)
    later = first.split(first.leaves[:1], 2)
    assert later.parent[: len(first)].tolist() == first.parent.tolist()
    assert all(parent < cell for cell, parent in enumerate(later.parent.tolist()))
    points = np.random.default_rng(2).random((500, 2))
    moved = later.locate(points) != first.locate(points)
    assert set(first.locate(points)[moved].tolist()) == {int(first.leaves[0])}


def test_a_centre_is_the_same_for_a_whole_cell_and_lies_in_it() -> None:
    tree = split_all(CellTree.root(2), 3, 4)
    for cell in tree.leaves.tolist():
        centre = np.array([tree.centre(cell, 3)])
        assert tree.locate(centre).tolist() == [cell]


def test_arrays_give_the_tree_back() -> None:
    tree = split_all(CellTree.root(3), 2, 3)
    again = CellTree.of(3, tree.arrays())
    points = np.random.default_rng(3).random((300, 2))
    assert np.array_equal(again.locate(points), tree.locate(points))


def test_many_dimensions_split_one_after_the_other() -> None:
    tree = split_all(CellTree.root(2), 1_000, 5)
    assert set(tree.dimension.tolist()) == {-1, 0, 1, 2, 3, 4}
    assert len(tree.leaves) == 32


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_context_outside_the_cube_is_refused(value: float) -> None:
    with pytest.raises(InvalidArgument, match="context"):
        check_contexts(np.array([[0.5, value]]))
