"""What a space of contexts is to the sums: which amounts a record adds, and where they are kept."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from discreet.families.choice import Floats
from discreet.state.stores import Vector

Increments = dict[bytes, list[tuple[int, int]]]
Gathered = Mapping[bytes, Vector]
NOTHING: Vector = np.zeros(0, dtype=np.int64)


class Space(Protocol):
    """Where contexts lie, as far as the model sees."""

    @property
    def entries(self) -> int:
        """Numbers in a context's row."""
        ...

    @property
    def kept(self) -> int:
        """Numbers in each of an item's two sums."""
        ...

    @property
    def products(self) -> int:
        """Numbers in the sum of products that all items share."""
        ...

    @property
    def products_length(self) -> float:
        """What a record's products are multiplied by."""
        ...

    @property
    def own(self) -> int:
        """Numbers in the sum that an item keeps of its own records: how many, and products."""
        ...

    @property
    def unit(self) -> float:
        """The deviation of noise in a sum of rows, if every number kept has noise of 1."""
        ...

    @property
    def sensitivity(self) -> float:
        """How far replacing one record moves all sums, in records' units: the sum of absolute
        values in cells, the Euclidean length in a linear space."""
        ...

    @property
    def blocks(self) -> tuple[bytes, bytes]:
        """How the names of the items' blocks begin, and that of the block they share. Records of
        other lengths are kept under other names: this noise would not cover them."""
        ...

    def held(self, gathered: Gathered, slot: int) -> Vector:
        """Return the amounts that have gathered for an item, as many as there are."""
        ...

    def rows(self, contexts: Floats) -> Floats:
        """Return a row for each context; predictions are linear in it."""
        ...

    def summed(self, kept: Floats) -> Floats:
        """Return the sums of rows that these sums of records tell, along the second axis."""
        ...

    def note(self, row: Floats) -> bytes:
        """Return what a recommendation id carries, of the same length for every context."""
        ...

    def increments(self, note: bytes, slot: int, reward: float) -> Increments:
        """Return what feedback adds, by block; raise `TokenForged` for a note that is not ours."""
        ...


def item_block(space: Space, slot: int) -> bytes:
    """Return the name of the block of an item's sums."""
    return block_name(space.blocks[0], slot)


def block_name(prefix: bytes, slot: int) -> bytes:
    """Return the name of the block of an item's sums that begins so."""
    return prefix + slot.to_bytes(4, "little")


def gathered_sums(
    space: Space, gathered: Gathered, slots: Sequence[int]
) -> tuple[Vector, Vector, Vector]:
    """Return what has gathered: (item, number kept, liked or disliked), everybody's products, and
    what items keep of their own."""
    width = 2 * space.kept
    items = np.zeros((len(slots), width + space.own), dtype=np.int64)
    for place, slot in enumerate(slots):
        held = space.held(gathered, slot)[: items.shape[1]]
        items[place, : len(held)] = held
    products = np.zeros(space.products, dtype=np.int64)
    held = gathered.get(space.blocks[1], NOTHING)[: space.products]
    products[: len(held)] = held
    rewarded = items[:, :width].reshape(len(slots), space.kept, 2)
    return rewarded, products, items[:, width:]
