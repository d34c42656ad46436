"""From contexts to the entries that a record moves.

`CellSpace`, for up to three numbers: the cube is divided into equal cells, and a context is the one
that it lies in (`cells`). Tastes of any shape can be learned. With private feedback a record moves
its cell and the block of cells around it, by a part of its length each: the noise of many cells
would hide what a block says, and this way it does not.

`LinearSpace`, for more numbers: the constant 1 and psi, the numbers centred and scaled, with a
Euclidean norm of at most 1. More than `MOST_LINEAR` numbers are first hashed into so many sums with
public signs. A record moves every entry: the constant by the root of the first of `LINEAR_PARTS`,
psi by that of the second, and the products psi psi^T, in a matrix of everybody's, by that of the
third. Products are needed about everybody alone, so they get by with the smallest part.

How far can one record move the sums? With y in [0, 1] the reward and v the context's vector, a
record adds y v to the item's liked entries and (1 - y) v to its disliked ones. Amounts are whole
steps of 2**-20, rounded towards zero, so that rounding makes no record longer.

In cells few entries move, so their absolute values count, and Laplace noise hides them: v has a
part in two places, and the parts add up to 1, so a record adds at most y + (1 - y) = 1 in all.
Replacing it by another moves the sums by at most 2, adding or removing one by at most 1.

In a linear space many entries move a little, so the Euclidean length counts, and Gaussian noise
hides it: v is the constant and psi, times the roots of their parts, and the entries' squared length
is (y^2 + (1 - y)^2) |v|^2. The products add the third part, for |psi psi^T| = |psi|^2 <= 1
(Frobenius). So no record r is longer than 1. Replacing it by another moves the sums by
|r - r'|^2 = |r|^2 + |r'|^2 - 2 r.r', and r.r' >= 0: different items share no entry but products,
which add (psi.psi')^2 times their part; for one item it is v.v' (y y' + (1 - y)(1 - y')) more,
where v.v' >= 0 because the constant's part is not smaller than psi's: a + b psi.psi' >= a - b. So
it is at most sqrt(2), and adding or removing one moves them by less. Rounding adds at most one step
an entry between two records, which `_ROUNDING` covers.

With exact feedback nothing needs to be covered, and each item may keep the products of its own
records (`own`): then the model knows who was shown what, which a matrix of everybody's does not.
"""

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from discreet.errors import TokenForged
from discreet.families.choice import Floats
from discreet.families.contextual.blocks import NOTHING, Gathered, Increments, item_block
from discreet.families.contextual.cells import CellSpace, fine_enough
from discreet.families.contract import REWARD_STEPS
from discreet.state.stores import Vector

MOST_CELL_DIMENSIONS = 3
MOST_LINEAR = 64
MOST_OWN = 2_000_000
"""Products that all items may keep together: 16 MB in a model."""
LINEAR_PARTS = (0.5, 0.45, 0.05)
"""Of a record's squared length in a linear space: the constant's, psi's and the products'. Psi's
must not be larger than the constant's."""
_EXACT_PARTS = (0.5, 0.5, 0.25)
"""The same where nothing has to be covered."""
_GAIN = 2.0
"""Numbers spread by a quarter around the middle of [0, 1] get a psi of about length 1."""
_NOTE_STEPS = 32_000
_ROUNDING = 1.0 + 2.0**-10


@dataclass(frozen=True, slots=True, eq=False)
class LinearSpace:
    """The constant and psi. With `exact` feedback items may keep their own products (`apart`)."""

    dimensions: int
    exact: bool = False
    apart: bool = False
    size: int = field(init=False)
    """Of psi."""
    entries: int = field(init=False)
    kept: int = field(init=False)
    products: int = field(init=False)
    own: int = field(init=False)
    longest: float | None = field(init=False)
    """How long psi may be; without noise to be covered its numbers alone are bounded, by 1."""
    triangle: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]] = field(init=False)
    factors: Floats = field(init=False)
    """What the products in the upper triangle are multiplied by: each pair stands there once."""
    lengths: Floats = field(init=False)
    """What a record's entries are multiplied by;"""
    uneven: Floats = field(init=False)
    """what that makes of the noise in sums of rows, in the variance of the first one;"""
    products_length: float = field(init=False)
    """and what a record's products are multiplied by."""
    unit: float = field(init=False)
    sensitivity: float = math.sqrt(2.0) * _ROUNDING
    blocks: tuple[bytes, bytes] = field(init=False)
    _bucket: npt.NDArray[np.intp] | None = field(init=False)
    _sign: Floats = field(init=False)

    def __post_init__(self) -> None:
        size = min(self.dimensions, MOST_LINEAR)
        rows, columns = np.triu_indices(size)
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "entries", size + 1)
        object.__setattr__(self, "kept", size + 1)
        object.__setattr__(self, "products", len(rows))
        object.__setattr__(self, "own", len(rows) + 1 if self.apart else 0)
        object.__setattr__(self, "triangle", (rows, columns))
        object.__setattr__(self, "factors", np.where(rows == columns, 0.5, math.sqrt(0.5)))
        level, slopes, products = _EXACT_PARTS if self.exact else LINEAR_PARTS
        parts = np.append(level, np.full(size, slopes))
        object.__setattr__(self, "lengths", np.sqrt(parts))
        object.__setattr__(self, "uneven", level / parts)
        object.__setattr__(self, "products_length", 2.0 * math.sqrt(products))
        object.__setattr__(self, "unit", 1.0 / math.sqrt(level))
        object.__setattr__(self, "blocks", (b"i", b"g") if self.exact else (b"I", b"G"))
        free = self.exact and self.dimensions <= MOST_LINEAR
        object.__setattr__(self, "longest", None if free else 1.0)
        bucket, sign = None, np.ones(0)
        if self.dimensions > MOST_LINEAR:
            mixed = _mixed(self.dimensions)
            bucket = (mixed % np.uint64(MOST_LINEAR)).astype(np.intp)
            sign = np.where(mixed >> np.uint64(63), 1.0, -1.0)
        object.__setattr__(self, "_bucket", bucket)
        object.__setattr__(self, "_sign", sign)

    def rows(self, contexts: Floats) -> Floats:
        """Return (1, psi) for each context."""
        if self._bucket is None:
            psi = (contexts - 0.5) * (2.0 * _GAIN / math.sqrt(self.dimensions))
        else:
            psi = np.zeros((len(contexts), self.size))
            for place, context in enumerate(contexts):
                at = np.flatnonzero(context)
                weights = self._sign[at] * context[at]
                psi[place] = np.bincount(self._bucket[at], weights, self.size)
        rows = np.ones((len(contexts), self.entries))
        if self.longest is None:
            rows[:, 1:] = psi
            return rows
        lengths = np.sqrt(np.einsum("ni,ni->n", psi, psi))
        np.divide(psi, np.maximum(lengths, 1.0)[:, None], out=rows[:, 1:])
        return rows

    def summed(self, kept: Floats) -> Floats:
        """Return the sums of rows: records are shorter."""
        sums: Floats = kept / self.lengths[:, None]
        return sums

    def held(self, gathered: Gathered, slot: int) -> Vector:
        """Return the item's amounts."""
        return gathered.get(item_block(self, slot), NOTHING)

    def note(self, row: Floats) -> bytes:
        """Return psi in steps, rounded towards zero: it becomes no longer."""
        return (row[1:] * _NOTE_STEPS).astype("<i2").tobytes()

    def increments(self, note: bytes, slot: int, reward: float) -> Increments:
        """Return what the item's sums and the products gain."""
        if len(note) != 2 * self.size:
            raise TokenForged("recommendation_id was issued by another version of this service")
        psi = np.frombuffer(note, dtype="<i2").astype(np.float64) / _NOTE_STEPS
        if self.longest is not None:
            length = math.sqrt(float(psi @ psi))
            psi = psi / max(1.0, length * (1.0 + 2.0**-40))
        entries = np.append(1.0, psi) * self.lengths * REWARD_STEPS
        liked = np.trunc(entries * reward).astype(np.int64)
        disliked = np.trunc(entries * (1.0 - reward)).astype(np.int64)
        both = np.stack([liked, disliked], axis=1).reshape(-1).tolist()
        rows, columns = self.triangle
        products = psi[rows] * psi[columns] * (self.factors * self.products_length * REWARD_STEPS)
        shared = np.trunc(products).astype(np.int64).tolist()
        if self.apart:
            both += [REWARD_STEPS, *shared]
            shared = []
        added = {item_block(self, slot): both, self.blocks[1]: shared}
        return {
            block: [(at, amount) for at, amount in enumerate(amounts) if amount]
            for block, amounts in added.items()
            if any(amounts)
        }

    def matrix(self, products: Floats) -> Floats:
        """Return the sums of psi psi^T that these products are the upper triangles of."""
        rows, columns = self.triangle
        whole: Floats = np.zeros((*products.shape[:-1], self.size, self.size))
        whole[..., rows, columns] = whole[..., columns, rows] = products / self.factors
        return whole


def _mixed(count: int) -> npt.NDArray[np.uint64]:
    """Return a number for each dimension, as good as random: public, the same in every worker.

    The finalising steps of SplitMix64 (Steele, Lea, Flood 2014); products wrap around.
    """
    value = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: npt.NDArray[np.uint64] = value ^ (value >> np.uint64(31))
    return mixed


def space_for(dimensions: int, *, items: int = 0, exact: bool = False) -> CellSpace | LinearSpace:
    """Return the space of contexts of so many numbers, for so many items.

    `exact` says that feedback is not protected. The catalogue may grow over the limit and shrink
    again: what items have kept of their own is then missing for some records, and is guessed; and
    sums of either grid become sums of the other.
    """
    if dimensions <= MOST_CELL_DIMENSIONS:
        return CellSpace(dimensions, exact, fine=exact and fine_enough(dimensions, items))
    shared = LinearSpace(dimensions, exact)
    if exact and items * shared.products <= MOST_OWN:
        return LinearSpace(dimensions, exact, apart=True)
    return shared
