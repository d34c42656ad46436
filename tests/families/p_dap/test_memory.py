"""What a learner remembers: bounded, and recomputed when the outlook changes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.families.p_dap.cell import REWARD_STEPS
from discreet.families.p_dap.contract import Address
from discreet.families.p_dap.memory import MOST_BYTES, MOST_SPLIT, MOST_WHOLE, Memory, posterior
from discreet.families.p_dap.outlook import Outlook

VECTOR = np.array([30, 30, 15 * REWARD_STEPS, 0, 0], dtype=np.int64)


def blank() -> Outlook:
    return Outlook.blank(arms=2, exploration_rate=0.1)


def test_means_start_at_the_parents_and_move_with_data() -> None:
    prior = np.array([0.2, 0.2])
    counts, sums = np.array([0.0, 1e6]), np.array([0.0, 0.8e6])
    assert np.allclose(posterior(counts=counts, sums=sums, prior=prior), [0.2, 0.8], atol=1e-4)


def outlook(*means: float) -> Outlook:
    return replace(blank(), means=np.array(means))


@given(
    layers=st.lists(
        st.tuples(st.integers(0, 1_000), st.integers(0, 1_000), st.floats(0, 1)), max_size=16
    ),
    overall=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_what_a_cell_passes_on_is_the_chain_of_posteriors(
    layers: list[tuple[int, int, float]], overall: tuple[float, float]
) -> None:
    memory, seen = Memory(arms=2, outlook=blank()), outlook(*overall)
    means, above = seen.means, None
    for depth, (first, second, share) in enumerate(layers):
        counts = np.array([first, second], dtype=np.float64)
        sums = np.floor(counts * share * REWARD_STEPS)
        fields = [first + second, first, sums[0], second, sums[1]]
        above = memory.note_split(
            name=b"%d" % depth,
            address=Address(b"k", depth),
            vector=np.array(fields, dtype=np.int64),
            above=above,
        )
        means = posterior(counts=counts, sums=sums / REWARD_STEPS, prior=means)
        assert np.allclose(above.means(seen), means, rtol=0, atol=1e-12)


def test_a_cell_whose_parent_was_forgotten_keeps_what_it_inherited_then() -> None:
    memory, inherited = Memory(arms=2, outlook=blank()), np.array([0.1, 0.7])
    cell = memory.note_split(name=b"n", address=Address(b"k", 1), vector=VECTOR, above=inherited)
    for seen in (outlook(0.2, 0.2), outlook(0.9, 0.9)):
        assert cell.means(seen)[1] == pytest.approx(0.7)
        assert cell.means(seen)[0] == pytest.approx((15 + 10 * 0.1) / 40)


def note_split(memory: Memory, name: bytes) -> None:
    memory.note_split(name=name, address=Address(b"key of " + name), vector=VECTOR, above=None)


def test_a_cell_is_whole_until_it_has_split() -> None:
    memory = Memory(arms=2, outlook=blank())
    memory.note_whole(b"key of k")
    assert b"key of k" in memory.whole
    note_split(memory, b"k")
    assert b"key of k" not in memory.whole
    assert b"k" in memory.split


def test_the_cells_noted_first_are_forgotten_and_noted_again() -> None:
    memory = Memory(arms=1_000, outlook=blank())
    for number in range(memory.most_split + 1):
        note_split(memory, number.to_bytes(4, "big"))
    assert len(memory) == memory.most_split
    first = (0).to_bytes(4, "big")
    assert first not in memory.split
    note_split(memory, first)
    assert first in memory.split
    assert len(memory) == memory.most_split


def test_whole_cells_are_bounded_too() -> None:
    memory = Memory(arms=2, outlook=blank())
    for number in range(MOST_WHOLE + 10):
        memory.note_whole(number.to_bytes(4, "big"))
        memory.note_whole((MOST_WHOLE // 2).to_bytes(4, "big"))
    assert len(memory) == MOST_WHOLE
    assert (0).to_bytes(4, "big") not in memory.whole


@pytest.mark.parametrize("arms", [0, 20, 1_000, 10_000])
def test_its_size_is_bounded_in_bytes(arms: int) -> None:
    memory = Memory(arms=arms, outlook=blank())
    assert 64 <= memory.most_split <= MOST_SPLIT
    # A vector of two numbers an arm, and its means; 64 cells are kept however large.
    assert memory.most_split == 64 or memory.most_split * 24 * arms <= MOST_BYTES


def test_the_widest_offer_is_told_once() -> None:
    memory = Memory(arms=5, outlook=blank())
    for offer in ([1, 2], [0, 1, 4], [3]):
        memory.note_offered(np.array(offer))
    assert memory.take_offered().tolist() == [0, 1, 4]
    assert memory.checked is None
    assert memory.take_offered().tolist() == []


@given(depth=st.integers(0, 16), forgotten=st.sets(st.integers(0, 16)))
def test_the_way_goes_on_below_a_cell_that_is_known_to_have_split(
    depth: int, forgotten: set[int]
) -> None:
    memory, cells = Memory(arms=2, outlook=blank()), {}
    for level in range(depth):
        address = Address(b"k%d" % level, level)
        name = b"%d" % level
        cells[level] = memory.note_split(name=name, address=address, vector=VECTOR, above=None)
    for level in forgotten & set(cells):
        del memory.split[b"%d" % level]
        del cells[level]
    level, parent = memory.deepest_split(lambda level: b"%d" % level)
    assert level not in cells
    assert parent is cells.get(level - 1)
    assert (level == 0) == (parent is None)
    if not forgotten:
        assert level == depth
