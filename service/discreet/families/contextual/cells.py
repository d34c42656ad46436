"""The space of up to three numbers: equal cells of the cube.

How far a record moves the sums is in `spaces`.

Without noise there may be fine cells, in which means hardly change, as long as all items together
have few enough. A catalogue may grow over that and shrink again, so each of the two grids reads
what was gathered, released or promised in the other.
"""

import math
from dataclasses import dataclass, field
from functools import cache
from itertools import product

import numpy as np
import numpy.typing as npt

from discreet.errors import TokenForged
from discreet.families.choice import Floats
from discreet.families.contextual.blocks import (
    NOTHING,
    Gathered,
    Increments,
    block_name,
    item_block,
)
from discreet.families.contract import REWARD_STEPS
from discreet.state.stores import Vector

_SIDES = {1: 16, 2: 6, 3: 4}
_FINER = 2
"""Fine cells in a cell along a dimension."""
MOST_FINE = 500_000
"""Fine cells of all items together: 4 MB for each number that a model has in them."""
_BLOCKS = 2
"""Blocks of cells along a dimension."""
_PARTS = (0.5, 0.5)
"""Of what a record adds with private feedback: its block's and its cell's."""
LINE = -1
_STEEP = math.sqrt(12.0)
"""Makes a number that is uniform in [0, 1], and centred, vary by 1."""


@dataclass(frozen=True, slots=True, eq=False)
class CellSpace:
    """Equal cells, numbered with the last dimension running fastest.

    Without noise there may be `fine` cells, in which means hardly change. With noise a record moves
    a block of cells, too: with A the matrix from sums over cells to what is kept, the least squares
    estimate of the former is (A^T A)^-1 A^T times the latter, and has noise of covariance
    (A^T A)^-1.
    """

    dimensions: int
    exact: bool = False
    fine: bool = False
    side: int = field(init=False)
    entries: int = field(init=False)
    kept: int = field(init=False)
    unit: float = field(init=False)
    alike: Floats = field(init=False)
    """The correlation of noise between cells; empty if there is none."""
    basis: Floats = field(init=False)
    """Functions of the cell, a column each;"""
    orders: npt.NDArray[np.int64] = field(init=False)
    """and the squared frequency of each, 0 for the constant, or `LINE` for a straight line."""
    products: int = 0
    products_length: float = 1.0
    own: int = 0
    sensitivity: float = 2.0
    blocks: tuple[bytes, bytes] = field(init=False)
    _block: npt.NDArray[np.intp] = field(init=False)
    _solved: Floats = field(init=False)

    def __post_init__(self) -> None:
        side = _side(self.dimensions, fine=self.fine)
        basis, orders = _functions(self.dimensions, side, lines=self.exact)
        object.__setattr__(self, "side", side)
        object.__setattr__(self, "entries", len(basis))
        object.__setattr__(self, "basis", basis)
        object.__setattr__(self, "orders", orders)
        own = (_EXACT_BLOCKS[self.fine] if self.exact else b"c", b"g")
        object.__setattr__(self, "blocks", own)
        moved = covariance = np.ones((0, 0))
        block = np.zeros(0, dtype=np.intp)
        kept, unit = len(basis), 1.0
        if not self.exact:
            along = (_middles(self.dimensions, side) * _BLOCKS).astype(np.intp)
            block = along @ (_BLOCKS ** np.arange(self.dimensions)[::-1])
            blocks, cells = _PARTS
            inside = (block == np.arange(_BLOCKS**self.dimensions)[:, None]) * blocks
            moved = np.vstack([inside, cells * np.eye(len(basis))])
            covariance = np.linalg.inv(moved.T @ moved).astype(np.float64)
            # The same for every cell: all blocks have as many.
            kept, unit = len(moved), math.sqrt(covariance[0, 0])
        object.__setattr__(self, "kept", kept)
        object.__setattr__(self, "_block", block)
        object.__setattr__(self, "_solved", covariance @ moved.T)
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "alike", covariance / unit**2)

    def cells(self, contexts: Floats) -> npt.NDArray[np.intp]:
        """Return the cell of each context."""
        along = np.minimum((contexts * self.side).astype(np.intp), self.side - 1)
        numbers: npt.NDArray[np.intp] = along @ (self.side ** np.arange(self.dimensions)[::-1])
        return numbers

    def rows(self, contexts: Floats) -> Floats:
        """Return a 1 in the place of each context's cell."""
        rows = np.zeros((len(contexts), self.entries))
        rows[np.arange(len(contexts)), self.cells(contexts)] = 1.0
        return rows

    def summed(self, kept: Floats) -> Floats:
        """Return the sums over cells that agree best with those of all sizes."""
        if self.exact:
            return kept
        sums: Floats = np.einsum("ce,kel->kcl", self._solved, kept)
        return sums

    def held(self, gathered: Gathered, slot: int) -> Vector:
        """Return the item's amounts, and those that were gathered in the other grid."""
        held = gathered.get(item_block(self, slot), NOTHING)
        other = gathered.get(block_name(_EXACT_BLOCKS[not self.fine], slot)) if self.exact else None
        if other is None:
            return held
        both = np.zeros(2 * self.entries, dtype=np.int64)
        both[: len(held)] = held
        matrix = _between(self.dimensions, fine=self.fine)
        amounts = np.zeros((matrix.shape[1], 2))
        amounts.reshape(-1)[: len(other)] = other
        return both + (matrix @ amounts).astype(np.int64).ravel()

    def converted(self, sums: Floats) -> Floats:
        """Return sums over cells, along the last axis, as sums over these if they are of the other
        grid; what is in a cell is spread evenly over it."""
        if not self.exact or sums.shape[-1] == self.entries:
            return sums
        matrix = _between(self.dimensions, fine=self.fine)
        if sums.shape[-1] != matrix.shape[1]:
            return sums
        converted: Floats = sums @ matrix.T
        return converted

    def note(self, row: Floats) -> bytes:
        """Return the cell."""
        return int(row.argmax()).to_bytes(_NOTE_BYTES[self.fine], "little")

    def increments(self, note: bytes, slot: int, reward: float) -> Increments:
        """Return the reward and the rest of 1, for the item in the cell and in its block."""
        cell = self._noted(note)
        places: list[int] = [cell]
        parts: tuple[float, ...] = (1.0,)
        if not self.exact:
            places = [int(self._block[cell]), _BLOCKS**self.dimensions + cell]
            parts = _PARTS
        amounts = []
        for place, part in zip(places, parts, strict=True):
            length = part * REWARD_STEPS
            amounts.append((2 * place, math.floor(reward * length)))
            amounts.append((2 * place + 1, math.floor((1.0 - reward) * length)))
        return {item_block(self, slot): amounts}

    def _noted(self, note: bytes) -> int:
        """Return the cell of a note, the middle one for a note of the other grid."""
        fine, cell = len(note) == _NOTE_BYTES[True], int.from_bytes(note, "little")
        side = _side(self.dimensions, fine=fine)
        known = len(note) == _NOTE_BYTES[fine] and (self.exact or not fine)
        if not known or cell >= side**self.dimensions:
            raise TokenForged("recommendation_id was issued by another version of this service")
        if fine == self.fine:
            return cell
        along = np.array(np.unravel_index(cell, (side,) * self.dimensions))
        return int(self.cells((along + 0.5)[None] / side)[0])


_EXACT_BLOCKS = {False: b"i", True: b"f"}
_NOTE_BYTES = {False: 2, True: 3}


def _side(dimensions: int, *, fine: bool) -> int:
    """Return the cells along a dimension."""
    return _SIDES[dimensions] * (_FINER if fine else 1)


def fine_enough(dimensions: int, items: int) -> bool:
    """Return whether so many items may have fine cells, without noise."""
    cells: int = _side(dimensions, fine=True) ** dimensions
    return items * cells <= MOST_FINE


def _middles(dimensions: int, side: int) -> Floats:
    """Return the middle of every cell."""
    return (np.array(list(product(range(side), repeat=dimensions))) + 0.5) / side


@cache
def _functions(dimensions: int, side: int, *, lines: bool) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return cosine waves in so many cells, a column each, straight lines behind them, and their
    squared frequencies. Recommenders share them."""
    places = _middles(dimensions, side)
    waves = np.array(list(product(range(_SIDES[dimensions]), repeat=dimensions)))
    waves = waves[np.argsort((waves**2).sum(axis=1), kind="stable")]
    basis = np.ones((len(places), len(waves)))
    for at in range(dimensions):
        cosines = np.cos(np.pi * places[:, [at]] * waves[:, at])
        basis *= cosines * np.where(waves[:, at] > 0, math.sqrt(2.0), 1.0)
    orders = (waves**2).sum(axis=1)
    if lines:
        basis = np.hstack([basis, _STEEP * (places - 0.5)])
        orders = np.append(orders, np.full(dimensions, LINE))
    basis.flags.writeable = orders.flags.writeable = False
    return basis, orders


@cache
def _between(dimensions: int, *, fine: bool) -> Floats:
    """Return the matrix that makes sums over the fine cells of those over the others, or back."""
    along = np.kron(np.eye(_SIDES[dimensions]), np.full((_FINER, 1), 1.0 / _FINER))
    if not fine:
        along = _FINER * along.T
    matrix: Floats = along
    for _ in range(1, dimensions):
        matrix = np.kron(matrix, along).astype(np.float64)
    return matrix
