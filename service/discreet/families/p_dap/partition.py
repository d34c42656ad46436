"""Dividing [0, 1]^d into cells that split where people are.

A cell splits into `segments` equal parts along one dimension: the first split of a path is along
dimension 0, the next along 1, and so on round. After d splits the cell has become m**d smaller
ones, the paper's split. One dimension at a time, because the parts of a cell must be listed before
anybody is in them: which cells exist is released, and whose click brought one into being must not
show. The m**d parts of the paper's split cannot be listed from ten dimensions on.

A tree only grows, and a cell keeps its number for ever, so that feedback on an answer from an
earlier tree finds its cell.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

WHOLE = -1
"""The dimension of a cell that has not split."""
MOST_DEPTH = 400
_LAST = np.nextafter(1.0, 0.0)
"""Stands for a coordinate of 1, which belongs to the last cell."""


@dataclass(frozen=True, slots=True, eq=False)
class CellTree:
    """All cells, in the order in which they came into being; number 0 is the whole cube.

    A cell that has split did so along `dimension`, where it lay from `lower` on and was `width`
    wide; its parts are numbered from `first_part` on.
    """

    segments: int
    parent: Integers
    depth: Integers
    dimension: Integers
    lower: Floats
    width: Floats
    first_part: Integers
    leaves: Integers = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "leaves", np.flatnonzero(self.dimension == WHOLE))

    @classmethod
    def root(cls, segments: int) -> "CellTree":
        """Return a tree of one cell."""
        none = np.full(1, WHOLE, dtype=np.int64)
        zero = np.zeros(1)
        return cls(segments, none, np.zeros(1, np.int64), none, zero, zero + 1.0, none)

    def __len__(self) -> int:
        return len(self.parent)

    def locate(self, contexts: Floats) -> Integers:
        """Return the number of the undivided cell that holds each row of `contexts`."""
        cells = np.zeros(len(contexts), dtype=np.int64)
        if len(self.parent) == 1:
            return cells
        places = np.minimum(contexts, _LAST)
        rows = np.flatnonzero(self.dimension[cells] != WHOLE)
        while len(rows):
            here = cells[rows]
            along = places[rows, self.dimension[here]]
            part = ((along - self.lower[here]) * (self.segments / self.width[here])).astype(
                np.int64
            )
            cells[rows] = self.first_part[here] + np.clip(part, 0, self.segments - 1)
            rows = rows[self.dimension[cells[rows]] != WHOLE]
        return cells

    def split(self, cells: Integers, dimensions: int) -> "CellTree":
        """Return the tree in which these undivided cells have split."""
        if not len(cells):
            return self
        dimension, lower = self.dimension.copy(), self.lower.copy()
        width, first = self.width.copy(), self.first_part.copy()
        parents: list[int] = []
        depths: list[int] = []
        for cell in cells.tolist():
            along = int(self.depth[cell]) % dimensions
            dimension[cell] = along
            lower[cell], width[cell] = self._extent(cell, along)
            first[cell] = len(self) + len(parents)
            parents += [cell] * self.segments
            depths += [int(self.depth[cell]) + 1] * self.segments
        none = np.full(len(parents), WHOLE, dtype=np.int64)
        return CellTree(
            self.segments,
            np.concatenate([self.parent, np.array(parents, dtype=np.int64)]),
            np.concatenate([self.depth, np.array(depths, dtype=np.int64)]),
            np.concatenate([dimension, none]),
            np.concatenate([lower, np.zeros(len(none))]),
            np.concatenate([width, np.ones(len(none))]),
            np.concatenate([first, none]),
        )

    def _extent(self, cell: int, along: int) -> tuple[float, float]:
        """Return where a cell begins along a dimension, and how wide it is there."""
        child, at = cell, int(self.parent[cell])
        while at != WHOLE:
            if self.dimension[at] == along:
                width = float(self.width[at]) / self.segments
                place = child - int(self.first_part[at])
                return float(self.lower[at]) + place * width, width
            child, at = at, int(self.parent[at])
        return 0.0, 1.0

    def centre(self, cell: int, dimensions: int) -> tuple[float, ...]:
        """Return the middle of a cell: the same for every context in it."""
        extents = (self._extent(cell, along) for along in range(dimensions))
        return tuple(lower + width / 2 for lower, width in extents)

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the tree as arrays to store."""
        return {
            "parent": self.parent.astype("<i4"),
            "depth": self.depth.astype("<i4"),
            "dimension": self.dimension.astype("<i4"),
            "lower": self.lower,
            "width": self.width,
            "first_part": self.first_part.astype("<i4"),
        }

    @classmethod
    def of(cls, segments: int, arrays: dict[str, npt.NDArray[np.generic]]) -> "CellTree":
        """Return the tree of such arrays."""
        return cls(
            segments,
            parent=arrays["parent"].astype(np.int64),
            depth=arrays["depth"].astype(np.int64),
            dimension=arrays["dimension"].astype(np.int64),
            lower=arrays["lower"].astype(np.float64),
            width=arrays["width"].astype(np.float64),
            first_part=arrays["first_part"].astype(np.int64),
        )


def check_contexts(contexts: Floats) -> None:
    """Refuse contexts outside the cube."""
    if not ((contexts >= 0.0) & (contexts <= 1.0)).all():  # false for NaN as well
        raise InvalidArgument("context", "every value must be a number from 0 to 1")
