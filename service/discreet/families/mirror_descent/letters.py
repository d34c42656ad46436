"""What a node tells a neighbour who asks: its mixed, noisy sums. Nothing in it is private.

A letter is a header and, unless the neighbour has seen this revision, one 32-bit float a feature:

    magic, revision (the recommender's generation and a version), dimension, degree, count
"""

import math
import struct
from dataclasses import dataclass, replace

import numpy as np

from discreet.families.mirror_descent.sparse import Floats
from discreet.errors import InvalidArgument

_HEAD = struct.Struct("<4s16sIHd")
_MAGIC = b"DMD1"
REVISION_BYTES = 16
MOST_SUM = 1e12
MOST_COUNT = 1e15


@dataclass(frozen=True, slots=True, eq=False)
class Letter:
    """`theta` is None in a letter that says: nothing new."""

    revision: bytes
    dimension: int
    degree: int
    count: float
    theta: Floats | None

    def shortened(self, seen: bytes) -> "Letter":
        """Return the letter without what the neighbour has seen."""
        return replace(self, theta=None) if seen == self.revision else self

    def encode(self) -> bytes:
        """Return the letter as bytes."""
        head = _HEAD.pack(_MAGIC, self.revision, self.dimension, self.degree, self.count)
        return head if self.theta is None else head + self.theta.astype("<f4").tobytes()


def read_letter(content: bytes, *, dimension: int) -> Letter:
    """Return a neighbour's letter, refusing what cannot be mixed into ours."""
    if len(content) not in (_HEAD.size, _HEAD.size + 4 * dimension):
        raise InvalidArgument("letter", "is of another size")
    magic, revision, stated, degree, count = _HEAD.unpack_from(content)
    if magic != _MAGIC or stated != dimension:
        raise InvalidArgument("letter", "is about other features")
    if not (math.isfinite(count) and 0 <= count <= MOST_COUNT):
        raise InvalidArgument("letter", "counts what cannot be counted")
    theta = None
    if len(content) > _HEAD.size:
        theta = np.frombuffer(content, dtype="<f4", offset=_HEAD.size).astype(np.float64)
        if not np.abs(theta).max(initial=0.0) <= MOST_SUM:  # a NaN is not at most anything
            raise InvalidArgument("letter", "has sums beyond belief")
    return Letter(revision, stated, degree, count, theta)
