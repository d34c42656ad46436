"""What a recommendation id carries until feedback comes: the features that learning will need.

    form, the client's features, then for candidates that no catalogue holds: a digest of the id
    and the features of each recommended one. Features are positions and 32-bit floats; the form
    says whether there are candidates, and of how many bytes positions are.

All of it is sealed with the decision. But anybody can see how long an id is, and how many features
somebody has is private: where answers are, notes are filled up to a length that is public. They are
sent to and fro with every answer, so positions take as few bytes as the document's features need.
"""

import hashlib
import struct
from collections.abc import Sequence
from typing import NamedTuple

from discreet.errors import TokenForged
from discreet.families.mirror_descent.sparse import SparseRow

MOST_NOTE = 11_000
"""Bytes. With its choices and in base64 a recommendation id then stays below 16 kB."""
ID_BYTES = 8

_HEAD = struct.Struct("<BH")
_COUNT = struct.Struct("<H")
_INLINE = 1
"""What a form adds that has candidates."""
_POSITIONS = {4: (0, "I"), 1: (2, "B"), 2: (4, "H")}
"""The form of positions of so many bytes, and their letter in `struct`."""
_WIDTHS = {form: (width, letter) for width, (form, letter) in _POSITIONS.items()}


class FeatureNote(NamedTuple):
    """`items` is None if the catalogue has the features of what was recommended."""

    client: SparseRow
    items: Sequence[tuple[bytes, SparseRow]] | None

    def encode(self, size: int = 0, *, width: int = 4) -> bytes:
        """Return the note as bytes, with positions of `width` bytes, filled up to `size`."""
        form, letter = _POSITIONS[width]
        client = _write(self.client, letter)
        if self.items is None:
            return (_HEAD.pack(form, 0) + client).ljust(size, b"\0")
        note = _HEAD.pack(form | _INLINE, len(self.items)) + client
        for digest, row in self.items:
            note += digest + _write(row, letter)
        return note.ljust(size, b"\0")


def id_digest(item: str) -> bytes:
    """Return what stands for a candidate's id; the token binds it, so it need not be keyed."""
    return hashlib.blake2b(item.encode(), digest_size=ID_BYTES, person=b"candidate").digest()


def position_width(dimension: int) -> int:
    """Return how many bytes the positions of so many features take: 1, 2 or 4."""
    return next(width for width in sorted(_POSITIONS) if dimension <= 256**width)


def note_size(*, client: int, items: Sequence[int] = (), width: int = 4) -> int:
    """Return the bytes of a note with so many features of the client and of each candidate."""
    entry = width + 4
    each = sum(ID_BYTES + _COUNT.size + entry * count for count in items)
    return _HEAD.size + _COUNT.size + entry * client + each


def read_note(content: bytes) -> FeatureNote:
    """Return the note, which this service sealed."""
    try:
        form, count = _HEAD.unpack_from(content)
        positions = _WIDTHS[form & ~_INLINE]
        client, at = _read(content, _HEAD.size, positions)
        items = []
        for _ in range(count):
            digest = content[at : at + ID_BYTES]
            row, at = _read(content, at + ID_BYTES, positions)
            items.append((digest, row))
    except (struct.error, KeyError):
        raise TokenForged("recommendation_id was issued by another version") from None
    return FeatureNote(client, items if form & _INLINE else None)


def _write(row: SparseRow, letter: str) -> bytes:
    count = len(row.indices)
    return struct.pack(f"<H{count}{letter}{count}f", count, *row.indices, *row.values)


def _read(content: bytes, at: int, positions: tuple[int, str]) -> tuple[SparseRow, int]:
    width, letter = positions
    (count,) = _COUNT.unpack_from(content, at)
    start = at + _COUNT.size
    numbers = struct.unpack_from(f"<{count}{letter}{count}f", content, start)
    return SparseRow(numbers[:count], numbers[count:]), start + (width + 4) * count
