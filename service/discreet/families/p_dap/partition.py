"""Dividing [0,1]^d into cells that split where people are.

A cell of level l is a hypercube of side m**-l, named by the integers floor(x * m**l), one a
dimension; a coordinate of exactly 1 belongs to the last cell. A cell splits into m**d children
once it has seen A * m**(p * l) arrivals. The children are never listed: they come into being when
somebody arrives in them, so that d may be tens of thousands.

An address is a digest of the generation, the level and those integers. It is the same on every
worker and after every restart, and it is short whatever the dimension. A digest cannot be turned
back into a place without trying all of them; that saves no secret of a low-dimensional context
from somebody who reads the store, and no claim rests on it.
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from discreet.families.p_dap.cell import arrivals
from discreet.families.p_dap.contract import Address, Floats, Survey, Vector
from discreet.errors import InvalidArgument, NothingToRecommend

MOST_LEVELS = 16
"""No cell is deeper. At m = 2 that is a side of 1/65,536, finer than any real context."""

_DIGEST_BYTES = 16
_FEW_DIMENSIONS = 12
"""Up to here plain numbers are quicker than arrays."""
_SHORT_BYTES = 48
_LAST = math.nextafter(1.0, 0.0)
"""Stands for a coordinate of 1: _LAST * n rounds to less than n for every whole n in range."""


def check_offer(available: npt.NDArray[np.intp], *, limit: int, arms: int) -> None:
    """Refuse a question about arms that do not exist, about none, or for no answer."""
    if limit < 1:
        raise InvalidArgument("limit", "must be at least 1")
    if not len(available):
        raise NothingToRecommend("no item is available")
    if available[0] < 0 or available[-1] >= arms or (available[1:] <= available[:-1]).any():
        raise InvalidArgument("available", f"must be ascending slots below {arms}")


@dataclass(frozen=True, slots=True)
class Partition:
    """The geometry of one generation of cells."""

    generation: bytes
    dimensions: int
    segments: int
    base: float
    growth: float
    deepest: int = field(init=False)
    thresholds: tuple[int, ...] = field(init=False, repr=False)
    _levels: tuple["_Level", ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.generation:
            raise InvalidArgument("generation", "must not be empty")
        if self.dimensions < 1:
            raise InvalidArgument("dimensions", "must be at least 1")
        if not 2 <= self.segments <= 2**16:
            raise InvalidArgument("segments", "must be from 2 to 65536")
        if not (math.isfinite(self.base) and self.base >= 1):
            raise InvalidArgument("base", "must be finite and at least 1")
        if not (math.isfinite(self.growth) and self.growth > 0):
            raise InvalidArgument("growth", "must be finite and greater than 0")
        # Coordinates are packed into at most 32 bits each.
        deepest = min(MOST_LEVELS, int(32 / math.log2(self.segments)))
        tag = blake2b(
            struct.pack("<qqq", len(self.generation), self.dimensions, self.segments)
            + self.generation,
            digest_size=32,
        ).digest()
        fix = object.__setattr__
        fix(self, "deepest", deepest)
        fix(self, "thresholds", tuple(self._threshold(level) for level in range(deepest)))
        levels = (
            _Level(self.dimensions, self.segments**level, level, tag)
            for level in range(deepest + 1)
        )
        fix(self, "_levels", tuple(levels))

    def _threshold(self, level: int) -> int:
        """Return A * m**(p * l), or what no 64-bit count will ever reach."""
        exponent = self.growth * level * math.log(self.segments) + math.log(self.base)
        if exponent > math.log(2**62):
            return 2**63
        return math.ceil(self.base * math.pow(self.segments, self.growth * level))

    def has_split(self, address: Address, vector: Vector) -> bool:
        """Tell whether a cell with these statistics has split. Once true it stays true."""
        return self.splits_at(address.level, arrivals(vector))

    def splits_at(self, level: int, seen: int) -> bool:
        """Tell whether so many arrivals split a cell of this level."""
        return level < self.deepest and seen >= self.thresholds[level]

    def summary(self, cells: Mapping[Address, Vector]) -> Survey:
        """Return how deep and how divided these cells are, and how many arms were ever tried."""
        # Vectors are as long as the last arm that was tried; those of one length are one matrix.
        by_length: dict[int, list[Vector]] = {}
        for vector in cells.values():
            by_length.setdefault(len(vector), []).append(vector)
        tried: set[int] = set()
        for vectors in by_length.values():
            tried.update(np.flatnonzero(np.array(vectors)[:, 1::2].any(axis=0)).tolist())
        return Survey(
            depth=max((address.level for address in cells), default=0),
            splits=sum(self.has_split(address, vector) for address, vector in cells.items()),
            explored=len(tried),
        )

    def route(self, context: Floats) -> "Route":
        """Return the cells that hold this context; refuse a context outside the cube."""
        if context.shape != (self.dimensions,):
            raise InvalidArgument("context", f"must be {self.dimensions} numbers")
        if self.dimensions <= _FEW_DIMENSIONS:
            point = context.tolist()
            inside = all(0.0 <= value <= 1.0 for value in point)  # false for NaN as well
            place: list[float] | Floats = [value if value < 1.0 else _LAST for value in point]
        else:
            inside = bool(context.min() >= 0.0 and context.max() <= 1.0)
            place = np.minimum(context, _LAST)
        if not inside:
            raise outside()
        return Route(place, self._levels)

    def routes(self, contexts: Floats) -> "Routes":
        """Return the cells that hold these contexts, a row each, which must lie in the cube."""
        if contexts.ndim != 2 or contexts.shape[1] != self.dimensions:
            raise InvalidArgument("context", f"must be {self.dimensions} numbers")
        if not ((contexts >= 0.0) & (contexts <= 1.0)).all():
            raise outside()
        return Routes(np.minimum(contexts, _LAST), self._levels)


def outside() -> InvalidArgument:
    """Return the error for a context that is not in the cube."""
    return InvalidArgument("context", "every value must be a number from 0 to 1")


class _Level:
    """How many cells lie side by side on one level, and how their places are written."""

    __slots__ = ("dtype", "layout", "number", "prefix", "side", "width")

    def __init__(self, dimensions: int, side: int, level: int, tag: bytes) -> None:
        code = "B" if side <= 2**8 else "H" if side <= 2**16 else "I"
        self.side = side
        self.number = bytes([level])
        self.prefix = tag + self.number
        self.layout = f"<{dimensions}{code}"
        self.dtype = np.dtype(f"<{code}")
        self.width = dimensions * self.dtype.itemsize

    def key(self, packed: bytes) -> bytes:
        """Return the digest that names the cell at this place, everywhere and for ever."""
        return blake2b(self.prefix + packed, digest_size=_DIGEST_BYTES).digest()

    def name(self, packed: bytes) -> bytes:
        """Return a name for use within one process: the place itself, if that is short."""
        return self.number + (packed if len(packed) <= _SHORT_BYTES else self.key(packed))


class Route:
    """The way from the whole cube down to one context."""

    __slots__ = ("_levels", "_place")

    def __init__(self, place: list[float] | Floats, levels: tuple[_Level, ...]) -> None:
        self._place = place
        self._levels = levels

    def name(self, level: int) -> bytes:
        """Return a name of the cell of this level for use within one process."""
        return self._levels[level].name(self._packed(level))

    def key(self, level: int) -> bytes:
        """Return the digest that names the cell of this level."""
        return self._levels[level].key(self._packed(level))

    def address(self, level: int) -> Address:
        """Return the address of the cell of this level."""
        return Address(self.key(level), level)

    def _packed(self, level: int) -> bytes:
        here = self._levels[level]
        side = here.side
        place = self._place
        if isinstance(place, list):
            return struct.pack(here.layout, *[int(value * side) for value in place])
        return (place * side).astype(here.dtype).tobytes()


class Routes:
    """The ways down to many contexts, a row each."""

    __slots__ = ("_cut", "_levels", "_places")

    def __init__(self, places: Floats, levels: tuple[_Level, ...]) -> None:
        self._places = places
        self._levels = levels
        self._cut: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self._places)

    def name(self, row: int, level: int) -> bytes:
        """Return what `Route.name` is."""
        here = self._levels[level]
        content = self._cut.get(level) or self._cut_into(level)
        width = here.width
        packed = content[row * width : (row + 1) * width]
        return here.number + packed if width <= _SHORT_BYTES else here.name(packed)

    def key(self, row: int, level: int) -> bytes:
        """Return the digest that names the cell of this level."""
        here = self._levels[level]
        content = self._cut.get(level) or self._cut_into(level)
        return here.key(content[row * here.width : (row + 1) * here.width])

    def route(self, row: int) -> Route:
        """Return one row's way."""
        return Route(self._places[row], self._levels)

    def _cut_into(self, level: int) -> bytes:
        """Return every row's place on this level, one after the other."""
        here = self._levels[level]
        content = (self._places * here.side).astype(here.dtype).tobytes()
        self._cut[level] = content
        return content
