"""Rows, notes and increments: what a context becomes, and how far a record can move the sums."""

import math
from itertools import product

import numpy as np
import pytest

from discreet.errors import TokenForged
from discreet.families.contextual.blocks import Increments, item_block
from discreet.families.contextual.cells import CellSpace
from discreet.families.contextual.spaces import LINEAR_PARTS, LinearSpace, space_for
from discreet.families.contract import REWARD_STEPS

RNG = np.random.default_rng(0)


def as_dict(increments: Increments) -> dict[tuple[bytes, int], int]:
    return {(block, at): n for block, amounts in increments.items() for at, n in amounts}


def test_few_numbers_lie_in_cells_and_many_are_linear() -> None:
    assert [isinstance(space_for(size), CellSpace) for size in (1, 2, 3, 4, 64, 1_000)] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize("dimensions", [4, 20, 64, 65, 1_000])
def test_psi_is_never_longer_than_one(dimensions: int) -> None:
    space = LinearSpace(dimensions)
    corners = (RNG.random((50, dimensions)) < 0.5).astype(np.float64)
    rows = space.rows(np.concatenate([corners, RNG.random((50, dimensions))]))
    assert rows.shape == (100, min(dimensions, 64) + 1)
    assert np.all(rows[:, 0] == 1)
    assert np.linalg.norm(rows[:, 1:], axis=1).max() <= 1 + 1e-12


def test_hashing_tells_sparse_contexts_apart() -> None:
    space = LinearSpace(1_000)
    contexts = np.zeros((40, 1_000))
    contexts[np.arange(40), np.arange(40) * 17] = 1.0
    rows = space.rows(contexts)[:, 1:]
    closeness = np.abs(rows @ rows.T) - np.eye(40)
    assert np.mean(closeness > 0.5) < 0.05


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 30, 200])
def test_no_two_records_are_further_apart_than_the_sensitivity(dimensions: int) -> None:
    """A space that forgot the products, or did not clip, would exceed it: see the audit."""
    space = space_for(dimensions)
    corners = [np.zeros(dimensions), np.ones(dimensions), np.eye(dimensions)[0]]
    contexts = np.array(corners + [RNG.random(dimensions) for _ in range(5)])
    notes = [space.note(row) for row in space.rows(contexts)]
    assert len({len(note) for note in notes}) == 1
    found = [
        as_dict(space.increments(note, slot, reward))
        for note, slot, reward in product(notes, (0, 1), (0.0, 0.3, 1.0))
    ]
    power = 1 if isinstance(space, CellSpace) else 2
    most = max(
        sum(abs(one.get(key, 0) - two.get(key, 0)) ** power for key in one.keys() | two.keys())
        for one, two in product(found, [*found, {}])
    )
    bound = space.sensitivity * REWARD_STEPS
    assert 0.9 * bound < most ** (1 / power) <= bound


def test_a_note_that_is_not_ours_is_refused() -> None:
    for space in (CellSpace(2), LinearSpace(5)):
        with pytest.raises(TokenForged):
            space.increments(b"\xff\xff\xff", 0, 1.0)
    with pytest.raises(TokenForged):
        CellSpace(2).increments(b"\xff\xff", 0, 1.0)


def test_a_forged_long_psi_is_clipped() -> None:
    space = LinearSpace(4)
    note = np.full(4, 32_767, dtype="<i2").tobytes()
    record = as_dict(space.increments(note, 0, 1.0))
    assert math.sqrt(sum(n**2 for n in record.values())) <= REWARD_STEPS


def test_a_context_in_the_middle_has_no_products_to_add() -> None:
    """The store refuses a block to which nothing is added."""
    space = LinearSpace(6)
    increments = space.increments(space.note(space.rows(np.full((1, 6), 0.5))[0]), 0, 1.0)
    assert list(increments) == [item_block(space, 0)]


def test_the_parts_of_a_record_make_one_whole_and_none_outweighs_the_constant() -> None:
    constant, psi, products = LINEAR_PARTS
    assert math.isclose(constant + psi + products, 1.0)
    assert constant >= psi


def test_items_keep_their_own_products_only_without_noise_and_while_they_are_few() -> None:
    assert space_for(20, items=20).own == 0
    assert space_for(20, items=20, exact=True).own == 211
    assert space_for(64, items=1_000, exact=True).own == 0
    assert space_for(2, items=20, exact=True).own == 0


def test_rows_are_the_same_whether_items_keep_products_or_not() -> None:
    few, many = (space_for(20, items=items, exact=True) for items in (20, 100_000))
    contexts = RNG.random((50, 20)).round()
    assert (few.own, many.own) == (211, 0)
    assert np.array_equal(few.rows(contexts), many.rows(contexts))
    assert np.abs(few.rows(contexts)).max() <= 1.0
