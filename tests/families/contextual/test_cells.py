"""Cells: where contexts lie, what a record adds, and how one grid's sums become the other's."""

import numpy as np
import pytest

from discreet.errors import TokenForged
from discreet.families.contextual.blocks import gathered_sums, item_block
from discreet.families.contextual.cells import LINE, CellSpace, fine_enough
from discreet.families.contextual.spaces import space_for
from discreet.families.contract import REWARD_STEPS

RNG = np.random.default_rng(0)
COARSE, FINE = CellSpace(2, exact=True), CellSpace(2, exact=True, fine=True)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_cells_fill_the_cube_and_waves_are_orthogonal(dimensions: int) -> None:
    space = CellSpace(dimensions)
    cells = space.cells(RNG.random((20_000, dimensions)))
    assert set(cells.tolist()) == set(range(space.entries))
    assert space.cells(np.ones((1, dimensions)))[0] == space.entries - 1
    products = space.basis.T @ space.basis / space.entries
    assert np.allclose(products, np.eye(space.entries), atol=1e-9)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_cells_are_told_by_sums_of_all_sizes(dimensions: int) -> None:
    space = CellSpace(dimensions)
    records = np.zeros((1, space.kept, 2))
    cells = RNG.integers(0, space.entries, 50)
    for cell in cells.tolist():
        for at, amount in space.increments(cell.to_bytes(2, "little"), 0, 0.75)[
            item_block(space, 0)
        ]:
            records[0, at // 2, at % 2] += amount / REWARD_STEPS
    found = space.summed(records)[0]
    counts = np.bincount(cells, minlength=space.entries)
    assert np.allclose(found, counts[:, None] * [0.75, 0.25], atol=1e-3)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_noise_of_cells_is_as_stated_and_hides_less_of_their_total(dimensions: int) -> None:
    """Sums of cells alone would have a total with as many times the variance as there are cells."""
    space = CellSpace(dimensions)
    noise = space.summed(RNG.standard_normal((4_000, space.kept, 1)))[:, :, 0]
    covariance = np.cov(noise.T)
    assert np.allclose(covariance, space.unit**2 * space.alike, atol=0.25)
    assert noise.sum(axis=1).var() < 0.7 * space.entries


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_without_noise_there_are_straight_lines_too(dimensions: int) -> None:
    space = CellSpace(dimensions, exact=True, fine=True)
    lines = space.basis[:, space.orders == LINE]
    assert lines.shape[1] == dimensions
    assert np.allclose((lines**2).mean(axis=0), 1.0, atol=0.02)
    contexts = RNG.random((50, dimensions))
    assert np.allclose(space.rows(contexts) @ lines, 12**0.5 * (contexts - 0.5), atol=0.3)
    assert LINE not in CellSpace(dimensions).orders


def test_cells_are_fine_without_noise_while_items_are_few() -> None:
    assert space_for(3, items=900, exact=True).entries == 512
    assert space_for(3, items=1_000, exact=True).entries == 64
    assert space_for(3, items=20, exact=False).entries == 64
    assert not fine_enough(2, 10**6)


def test_both_grids_agree_on_where_a_context_lies() -> None:
    contexts = RNG.random((500, 2))
    fine, coarse = FINE.rows(contexts), COARSE.rows(contexts)
    assert np.array_equal(COARSE.converted(fine), coarse)
    spread = FINE.converted(coarse)
    assert np.allclose(spread.sum(axis=1), 1.0)
    assert np.allclose(spread.max(axis=1), 0.25)
    assert np.all((spread > 0)[fine > 0])


def test_sums_of_neither_grid_are_left_alone() -> None:
    assert FINE.converted(np.ones((2, 7))).shape == (2, 7)
    assert CellSpace(2).converted(np.ones((2, 144))).shape == (2, 144)


@pytest.mark.parametrize(("writes", "reads"), [(COARSE, FINE), (FINE, COARSE)])
def test_what_was_gathered_in_one_grid_is_released_in_the_other(
    writes: CellSpace, reads: CellSpace
) -> None:
    """A catalogue that grows changes the grid; so did an upgrade. Both grids' records count."""
    gathered = {}
    for space, cell in ((writes, 30), (reads, 9)):
        note = space.note(np.eye(space.entries)[cell])
        vector = np.zeros(2 * cell + 2, dtype=np.int64)
        for at, amount in space.increments(note, 4, 0.75)[item_block(space, 4)]:
            vector[at] += amount
        gathered[item_block(space, 4)] = vector
    items, _, _ = gathered_sums(reads, gathered, [4])
    expected = reads.converted(np.eye(writes.entries)[30]) + np.eye(reads.entries)[9]
    assert np.allclose(items[0] / REWARD_STEPS, expected[:, None] * [0.75, 0.25], atol=1e-5)


@pytest.mark.parametrize(("writes", "reads"), [(COARSE, FINE), (FINE, COARSE)])
def test_a_note_of_one_grid_is_understood_in_the_other(writes: CellSpace, reads: CellSpace) -> None:
    for context in RNG.random((20, 2)):
        row = writes.rows(context[None])[0]
        ((block, amounts),) = reads.increments(writes.note(row), 0, 1.0).items()
        assert block == item_block(reads, 0)
        assert reads.converted(row)[amounts[0][0] // 2] > 0


def test_a_note_without_noise_is_not_understood_with_it() -> None:
    with pytest.raises(TokenForged):
        CellSpace(2).increments(FINE.note(FINE.rows(np.full((1, 2), 0.1))[0]), 0, 1.0)
    with pytest.raises(TokenForged):
        FINE.increments((144).to_bytes(3, "little"), 0, 1.0)
