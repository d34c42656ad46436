"""What gathered in blocks is found there again, by the lengths of its own version only."""

import numpy as np

from discreet.families.contextual.blocks import gathered_sums, item_block
from discreet.families.contextual.spaces import LinearSpace, space_for
from discreet.families.contract import REWARD_STEPS

RNG = np.random.default_rng(0)


def test_gathered_products_give_the_matrix_back() -> None:
    space = LinearSpace(6)
    row = space.rows(RNG.random((1, 6)))[0]
    increments = space.increments(space.note(row), 3, 0.25)
    gathered = {}
    for block, amounts in increments.items():
        vector = np.zeros(max(at for at, _ in amounts) + 1, dtype=np.int64)
        for at, amount in amounts:
            vector[at] += amount
        gathered[block] = vector
    items, products, _ = gathered_sums(space, gathered, [0, 3])
    assert not items[0].any()
    rows = space.summed(items / REWARD_STEPS)[1]
    assert np.allclose(rows[:, 0], 0.25 * row, atol=1e-3)
    assert np.allclose(rows[:, 1], 0.75 * row, atol=1e-3)
    matrix = space.matrix(products / REWARD_STEPS / space.products_length)
    assert np.allclose(matrix, np.outer(row[1:], row[1:]), atol=1e-3)
    assert item_block(space, 3) in gathered


def test_records_of_other_lengths_wait_under_other_names() -> None:
    """An earlier version's were longer: noise for these would not cover them."""
    space = LinearSpace(6)
    earlier = {
        b"i" + bytes(4): np.full(14, REWARD_STEPS, dtype=np.int64),
        b"g": np.full(21, REWARD_STEPS, dtype=np.int64),
    }
    items, products, _ = gathered_sums(space, earlier, [0])
    assert not items.any()
    assert not products.any()
    kept, _, _ = gathered_sums(LinearSpace(6, exact=True), earlier, [0])
    assert kept.any()


def test_own_products_are_gathered_with_their_number() -> None:
    space = space_for(6, items=4, exact=True)
    assert isinstance(space, LinearSpace)
    row = space.rows(RNG.random((1, 6)))[0]
    increments = space.increments(space.note(row), 3, 0.25)
    assert list(increments) == [item_block(space, 3)]
    vector = np.zeros(2 * space.entries + space.own, dtype=np.int64)
    for at, amount in increments[item_block(space, 3)]:
        vector[at] += amount
    _, products, own = gathered_sums(space, {item_block(space, 3): vector}, [0, 3])
    assert not products.any()
    assert not own[0].any()
    assert own[1, 0] == REWARD_STEPS
    matrix = space.matrix(own[1, 1:] / REWARD_STEPS)
    assert np.allclose(matrix, np.outer(row[1:], row[1:]), atol=1e-3)
