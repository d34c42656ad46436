"""Sparse feature vectors: many at a time, checked, clipped, crossed and put on a grid.

A recommendation compares a hundred candidates with fifty features each. Looking at them one by one
would cost more than everything else together, so rows are kept side by side: `offsets` says where
each begins in `indices` and `values`. One vector is one row.

The grid. What enters a learner's sums are whole steps of 2**-20. `on_grid` clips a row to a
Euclidean norm and rounds towards zero, so that the *integers* have at most that norm, exactly:

- A row has at most 2**10 entries, so its norm is computed with a relative error below 2**-43. If
  the computed norm is at most bound * (1 - 2**-41), the true one is below bound.
- Otherwise every value is multiplied by bound * (1 - 2**-40) / norm; with the roundings of that,
  the true norm of the products is below bound * (1 - 2**-40 + 2**-42).
- Rounding towards zero shortens a vector.

A row that is on the grid already, with its norm within the bound, is left as it is.
"""

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import lt
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

STEPS = 2**20
"""Grid steps in a value of 1."""
MOST_NONZEROS = 1024
"""In one row: the proof above needs a bound."""
MOST_VALUE = 1e6
MOST_BOUND = 64.0
"""Squares of steps then add up to at most 2**52, which a double holds exactly."""
MOST_DIMENSION = 2**24


class SparseRow(NamedTuple):
    """One vector that is alone, in plain numbers: features, ascending, and their values."""

    indices: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True, slots=True, eq=False)
class SparseRows:
    """Row r has the features `indices[offsets[r]:offsets[r+1]]`, ascending, with these `values`."""

    offsets: Integers
    indices: Integers
    values: Floats

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Integers:
        """How many features each row names."""
        return self.offsets[1:] - self.offsets[:-1]

    @property
    def row_of(self) -> npt.NDArray[np.intp]:
        """Return the row of every entry."""
        return np.arange(len(self)).repeat(self.lengths)

    def take(self, rows: Sequence[int] | npt.NDArray[np.integer]) -> Self:
        """Return these rows, in this order."""
        chosen = np.asarray(rows, dtype=np.int64)
        lengths = self.lengths[chosen]
        offsets = _ends(lengths)
        shift = self.offsets[chosen] - offsets[:-1]
        at = np.arange(offsets[-1]) + shift.repeat(lengths)
        return type(self)(offsets, self.indices[at], self.values[at])

    def between(self, start: int, stop: int) -> Self:
        """Return the rows from `start` to before `stop`, without copying their entries."""
        offsets = self.offsets[start : stop + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        return type(self)(offsets - first, self.indices[first:last], self.values[first:last])

    def row(self, place: int) -> SparseRow:
        """Return one of them by itself."""
        start, end = self.offsets[place : place + 2].tolist()
        return SparseRow(self.indices[start:end].tolist(), self.values[start:end].tolist())

    def sums(self, weights: Floats) -> Floats:
        """Return the sum of one weight an entry, row by row."""
        summed = np.bincount(self.row_of, weights=weights, minlength=len(self))
        return summed.astype(np.float64, copy=False)


@dataclass(frozen=True, slots=True, eq=False)
class GridRows(SparseRows):
    """Rows whose values are whole numbers of grid steps, and whose norms are within a bound."""

    @property
    def steps(self) -> Integers:
        """The values in steps: exact, since they are below 2**53."""
        return (self.values * STEPS).astype(np.int64)


def read_rows(
    features: Sequence[tuple[Sequence[int], Sequence[float]]],
    *,
    dimension: int,
    most: int = MOST_NONZEROS,
    name: Callable[[int], str] = lambda row: f"features[{row}]",
) -> SparseRows:
    """Return (indices, values) pairs as rows, or say what is wrong with which of them."""
    for row, (indices, values) in enumerate(features):
        if len(indices) != len(values):
            raise InvalidArgument(f"{name(row)}.values", "must be as many as the indices")
        if len(indices) > most:
            raise InvalidArgument(f"{name(row)}.indices", f"must be at most {most} non-zeros")
    lengths = np.array([len(indices) for indices, _ in features], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    flat, amounts = _flattened(features, name)
    row_of = np.repeat(np.arange(len(features)), lengths)

    def refuse(wrong: npt.NDArray[np.bool_], field: str, reason: str) -> None:
        if wrong.any():
            raise InvalidArgument(f"{name(int(row_of[int(np.argmax(wrong))]))}.{field}", reason)

    refuse((flat < 0) | (flat >= dimension), "indices", f"must be from 0 to {dimension - 1}")
    same = row_of[1:] == row_of[:-1]
    refuse(np.concatenate([[False], same & (flat[1:] == flat[:-1])]), "indices", "must not repeat")
    refuse(np.concatenate([[False], same & (flat[1:] < flat[:-1])]), "indices", "must ascend")
    refuse(
        ~(np.abs(amounts) <= MOST_VALUE),  # a NaN is not at most anything
        "values",
        f"must be finite and from -{MOST_VALUE:g} to {MOST_VALUE:g}",
    )
    return SparseRows(offsets, flat, amounts)


def read_row(
    indices: Sequence[int], values: Sequence[float], *, dimension: int, most: int, name: str
) -> SparseRow:
    """Return one pair as a row, or say what is wrong with it.

    What is read with every question is looked at without numpy, whose every step costs as much for
    a few numbers as for thousands; `read_rows` says what is wrong.
    """
    try:
        flat, amounts = array("q", indices), array("d", values)
    except (TypeError, OverflowError):
        flat, amounts = array("q", [-1]), array("d", [0.0])
    fine = len(flat) == len(amounts) <= most and all(map(lt, flat, islice(flat, 1, None)))
    if fine and flat:
        # A NaN makes the sum one, wherever it hides from the extremes.
        small = max(amounts) <= MOST_VALUE and min(amounts) >= -MOST_VALUE
        fine = small and math.isfinite(sum(amounts)) and flat[0] >= 0 and flat[-1] < dimension
    if not fine:
        read_rows([(indices, values)], dimension=dimension, most=most, name=lambda _: name)
    return SparseRow(flat, amounts)


def joined(rows: Sequence[SparseRow]) -> SparseRows:
    """Return rows that were alone, one below the other."""
    ends, flat, amounts = [0], array("q"), array("d")
    for indices, values in rows:
        flat.extend(indices)
        amounts.extend(values)
        ends.append(len(flat))
    offsets = np.array(ends, dtype=np.int64)
    return SparseRows(offsets, np.array(flat, dtype=np.int64), np.array(amounts, dtype=np.float64))


def _ends(lengths: Integers) -> Integers:
    """Return where rows of these lengths begin, and where the last one ends."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    lengths.cumsum(out=offsets[1:])
    return offsets


def _flattened(
    features: Sequence[tuple[Sequence[int], Sequence[float]]], name: Callable[[int], str]
) -> tuple[Integers, Floats]:
    """Return all indices and all values, one row after the other.

    Python's arrays take numbers from lists faster than numpy does, and take no others.
    """
    flat, amounts = array("q"), array("d")
    for row, (indices, values) in enumerate(features):
        try:
            flat.extend(indices)
        except (TypeError, OverflowError):
            raise InvalidArgument(f"{name(row)}.indices", "must be whole numbers") from None
        try:
            amounts.extend(values)
        except (TypeError, OverflowError):
            raise InvalidArgument(f"{name(row)}.values", "must be numbers") from None
    return np.array(flat, dtype=np.int64), np.array(amounts, dtype=np.float64)


def norms(rows: SparseRows) -> Floats:
    """Return the Euclidean norm of every row."""
    root: Floats = np.sqrt(rows.sums(rows.values * rows.values))
    return root


def on_grid(rows: SparseRows, *, bound: float) -> GridRows:
    """Return the rows clipped to an L2 norm of `bound` and rounded towards zero, exactly."""
    if not 2.0**-10 <= bound <= MOST_BOUND:
        raise InvalidArgument("bound", f"must be from 2**-10 to {MOST_BOUND:g}")
    if len(rows) and int(rows.lengths.max()) > MOST_NONZEROS:
        raise InvalidArgument("rows", f"must have at most {MOST_NONZEROS} non-zeros each")
    row_of = rows.row_of
    length = np.sqrt(np.bincount(row_of, weights=rows.values * rows.values, minlength=len(rows)))
    over = length > bound * (1 - 2.0**-41)
    factors = np.where(over, bound * (1 - 2.0**-40) / np.where(over, length, 1.0), 1.0)
    shortened = rows.values * factors[row_of]
    return GridRows(rows.offsets, rows.indices, np.trunc(shortened * STEPS) / STEPS)


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where client features, item features and their products live in one vector.

    First the client's own, then the item's own, then for every client feature c the products with
    all item features i, at clients + items + c * items + i.
    """

    clients: int
    items: int

    def __post_init__(self) -> None:
        if self.clients < 0 or self.items < 1:
            raise InvalidArgument("crossing", "needs at least one item feature")
        if self.dimension > MOST_DIMENSION:
            raise InvalidArgument("crossing", f"must have at most {MOST_DIMENSION} products")

    @property
    def dimension(self) -> int:
        """How many features there are in all."""
        return self.clients + self.items + self.clients * self.items

    def crossed(self, clients: SparseRows, items: SparseRows) -> SparseRows:
        """Return a row for each item: its client's features, its own, and their products.

        There is a row of client's features for every item, or one for all. A row has
        (c + 1) * (i + 1) - 1 entries for c and i of its parts.
        """
        if len(clients) == 1:
            clients = clients.take([0] * len(items))
        if len(clients) != len(items):
            raise InvalidArgument("clients", "must be one row, or as many as items")
        own, each = clients.lengths, items.lengths
        rows, of_client = np.arange(len(items)), clients.row_of
        # A client's features after a feature -1 of value 1, whose products are the item's own.
        count = len(clients.indices)
        places = np.arange(count) + 1 + of_client
        factors, amounts = np.full(count + len(rows), -1), np.ones(count + len(rows))
        factors[places], amounts[places] = clients.indices, clients.values
        factor_at = clients.offsets[:-1] + rows
        products = (own + 1) * each
        offsets = _ends(own + products)
        row_of = rows.repeat(products)
        within = np.arange(len(row_of)) - (_ends(products)[:-1])[row_of]
        which, of_item = np.divmod(within, each[row_of])
        factor, item = factor_at[row_of] + which, items.offsets[row_of] + of_item
        indices = np.empty(int(offsets[-1]), dtype=np.int64)
        values = np.empty(int(offsets[-1]))
        at = (offsets[:-1] + own)[row_of] + within
        indices[at] = self.clients + self.items * (1 + factors[factor]) + items.indices[item]
        values[at] = items.values[item] * amounts[factor]
        mine = np.arange(count) + (offsets - clients.offsets)[:-1][of_client]
        indices[mine], values[mine] = clients.indices, clients.values
        return SparseRows(offsets, indices, values)
