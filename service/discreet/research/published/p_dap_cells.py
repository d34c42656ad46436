"""The cells of the adaptive partition as published, with what is known about each.

Both of the paper's algorithms divide [0, 1]^d alike. A cell of level l is a hypercube of side
m^-l; it splits into m^d parts once it has seen A * m^(p l) arrivals. The parts are never listed:
they come into being when somebody arrives in them, so that d may be tens of thousands.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument

Floats = npt.NDArray[np.float64]
PrivacyMode = Literal["uniform", "geometric", "none"]

MOST_LEVELS = 16
_MOST_BITS = 32
_LAST = math.nextafter(1.0, 0.0)
"""Stands for a coordinate of 1, which belongs to the last cell of its level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionParameters:
    """The paper's parameters. `mode` none is without privacy; `uniform_level` makes it DUP.

    The paper gives no values. Its Corollary 2 asks for p much larger than alpha, and is sublinear
    only if p > 2 alpha: hence p = 3 for alpha = 1, which is the exponent of a Lipschitz world.

    | paper's symbol | name here | range |
    |---|---|---|
    | T | `horizon` | >= 2 |
    | epsilon, epsilon_0 | `epsilon` | > 0 |
    | m | `segments` | >= 2 |
    | A | `base` | >= 1 |
    | p (printed b in line 19) | `growth` | > 0 |
    | alpha | `similarity` | > 0 |
    | L | `lipschitz` | > 0 |
    | Delta u | `sensitivity` | L * m^-alpha, at most 1 |
    | G_1, G_2, K G_3 | `control(level)` | m^(2 alpha l) * ln T |
    """

    horizon: int
    mode: PrivacyMode = "uniform"
    epsilon: float = 1.0
    segments: int = 2
    base: float = 300.0
    growth: float = 3.0
    similarity: float = 1.0
    lipschitz: float = 1.0
    uniform_level: int | None = None

    def __post_init__(self) -> None:
        if self.horizon < 2:
            raise InvalidArgument("horizon", "must be at least 2")
        if self.mode not in ("uniform", "geometric", "none"):
            raise InvalidArgument("mode", "must be uniform, geometric or none")
        if not 2 <= self.segments <= 2**16:
            raise InvalidArgument("segments", "must be from 2 to 65536")
        if not (math.isfinite(self.base) and self.base >= 1):
            raise InvalidArgument("base", "must be finite and at least 1")
        for name in ("epsilon", "growth", "similarity", "lipschitz"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise InvalidArgument(name, "must be finite and greater than 0")
        if self.uniform_level is not None and not 0 <= self.uniform_level <= self.deepest:
            raise InvalidArgument("uniform_level", f"must be from 0 to {self.deepest}")

    @property
    def deepest(self) -> int:
        """Return the deepest level: coordinates are packed into at most 32 bits each."""
        return min(MOST_LEVELS, int(_MOST_BITS / math.log2(self.segments)))

    @property
    def sensitivity(self) -> float:
        """Return Lemma 2's bound. Rewards lie in [0, 1], so more than 1 would say nothing."""
        return float(min(1.0, self.lipschitz * self.segments**-self.similarity))

    def threshold(self, level: int) -> float:
        """Return A * m^(p l): how many arrivals split a cell of this level."""
        if level >= self.deepest or self.uniform_level is not None:
            return math.inf
        return math.ceil(self.base * math.pow(self.segments, self.growth * level))

    def control(self, level: int) -> float:
        """Return G_1 of Theorem 2: how often everything is tried in a cell of this level."""
        return float(self.segments ** (2 * self.similarity * level) * math.log(self.horizon))

    def epsilon_at(self, level: int) -> float:
        """Return the epsilon of a cell of this level: section VI lets it grow with depth."""
        if self.mode != "geometric":
            return self.epsilon
        return float(self.epsilon * self.segments ** (self.similarity * level))


CellName = tuple[int, bytes]
"""A level, and which of its cells, as packed integers."""


class Cell:
    """One cell: its arrivals M_C, and by slot the counts N_kC and the sums behind the means r_kC.

    The fields are read and written by the algorithm that owns the cell.
    """

    __slots__ = ("arrivals", "counts", "level", "name", "sums")

    def __init__(self, name: CellName, slots: int) -> None:
        self.name = name
        self.level = name[0]
        self.arrivals = 0
        self.counts: Floats = np.zeros(slots)
        self.sums: Floats = np.zeros(slots)

    def means(self) -> Floats:
        """Return the mean reward of every slot, 0 of one that was never tried (line 2)."""
        return np.divide(
            self.sums, self.counts, out=np.zeros(len(self.sums)), where=self.counts > 0
        )

    def add(self, slot: int, reward: float) -> None:
        """Count an arrival for whom `slot` was chosen. A forward's reward may be noisy."""
        if not (math.isfinite(reward) and abs(reward) < 2.0**40):
            raise InvalidArgument("reward", "must be finite and below 2**40")
        self.arrivals += 1
        self.counts[slot] += 1
        self.sums[slot] += reward


class Cells:
    """All cells that somebody arrived in, by name."""

    def __init__(self, parameters: PartitionParameters, *, dimensions: int, slots: int) -> None:
        if dimensions < 1:
            raise InvalidArgument("dimensions", "must be at least 1")
        self.parameters = parameters
        self.dimensions = dimensions
        self._slots = slots
        self._cells: dict[CellName, Cell] = {}

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells.values())

    def active(self, context: Floats) -> Cell:
        """Line 3: return the undivided cell that holds the context."""
        if context.shape != (self.dimensions,):
            raise InvalidArgument("context", f"must be {self.dimensions} numbers")
        if not ((context >= 0.0) & (context <= 1.0)).all():  # false for NaN as well
            raise InvalidArgument("context", "every value must be a number from 0 to 1")
        place = np.minimum(context, _LAST)
        level = self.parameters.uniform_level or 0
        cell = self._cell(place, level)
        while cell.arrivals >= self.parameters.threshold(cell.level):  # lines 19 and 20
            cell = self._cell(place, cell.level + 1)
        return cell

    def _cell(self, place: Floats, level: int) -> Cell:
        name = (level, (place * self.parameters.segments**level).astype(np.uint32).tobytes())
        cell = self._cells.get(name)
        if cell is None:
            cell = self._cells[name] = Cell(name, self._slots)
        return cell
