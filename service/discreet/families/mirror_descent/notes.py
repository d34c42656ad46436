"""What a recommendation id carries until feedback comes: the features that learning will need.

    flag, the client's features, then for candidates that no catalogue holds: a digest of the id
    and the features of each recommended one. Features are 32-bit positions and 32-bit floats.

All of it is sealed with the decision. But anybody can see how long an id is, and how many features
somebody has is private: where answers are, notes are filled up to a length that is public.
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

_HEAD = struct.Struct("<?H")
_CATALOGUED = _HEAD.pack(False, 0)
_COUNT = struct.Struct("<H")
_ENTRY = 8
"""Bytes of one feature."""


class FeatureNote(NamedTuple):
    """`items` is None if the catalogue has the features of what was recommended."""

    client: SparseRow
    items: Sequence[tuple[bytes, SparseRow]] | None

    def encode(self, size: int = 0) -> bytes:
        """Return the note as bytes, filled up to `size`."""
        if self.items is None:
            return (_CATALOGUED + _write(self.client)).ljust(size, b"\0")
        items = self.items
        note = _HEAD.pack(True, len(items)) + _write(self.client)
        for digest, row in items:
            note += digest + _write(row)
        return note.ljust(size, b"\0")


def id_digest(item: str) -> bytes:
    """Return what stands for a candidate's id; the token binds it, so it need not be keyed."""
    return hashlib.blake2b(item.encode(), digest_size=ID_BYTES, person=b"candidate").digest()


def note_size(*, client: int, items: Sequence[int] = ()) -> int:
    """Return the bytes of a note with so many features of the client and of each candidate."""
    each = sum(ID_BYTES + _COUNT.size + _ENTRY * count for count in items)
    return _HEAD.size + _COUNT.size + _ENTRY * client + each


def read_note(content: bytes) -> FeatureNote:
    """Return the note, which this service sealed."""
    try:
        inline, count = _HEAD.unpack_from(content)
        client, at = _read(content, _HEAD.size)
        items = []
        for _ in range(count):
            digest = content[at : at + ID_BYTES]
            row, at = _read(content, at + ID_BYTES)
            items.append((digest, row))
    except struct.error:
        raise TokenForged("recommendation_id was issued by another version") from None
    return FeatureNote(client, items if inline else None)


def _write(row: SparseRow) -> bytes:
    count = len(row.indices)
    return struct.pack(f"<H{count}I{count}f", count, *row.indices, *row.values)


def _read(content: bytes, at: int) -> tuple[SparseRow, int]:
    (count,) = _COUNT.unpack_from(content, at)
    start = at + _COUNT.size
    numbers = struct.unpack_from(f"<{count}I{count}f", content, start)
    return SparseRow(numbers[:count], numbers[count:]), start + _ENTRY * count
