"""What a recommendation id carries until feedback comes: the features that learning will need.

    flag, the client's features, then for candidates that no catalogue holds: a digest of the id
    and the features of each recommended one. Features are 32-bit positions and 32-bit floats.

All of it is sealed with the decision. But anybody can see how long an id is, and how many features
somebody has is private: where answers are, notes are filled up to a length that is public.
"""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.errors import TokenForged
from discreet.families.mirror_descent.sparse import SparseRows

MOST_NOTE = 11_000
"""Bytes. With its choices and in base64 a recommendation id then stays below 16 kB."""
ID_BYTES = 8

_HEAD = struct.Struct("<?H")
_COUNT = struct.Struct("<H")
_ENTRY = 8
"""Bytes of one feature."""


@dataclass(frozen=True, slots=True, eq=False)
class FeatureNote:
    """`items` is None if the catalogue has the features of what was recommended."""

    client: SparseRows
    items: tuple[tuple[bytes, SparseRows], ...] | None

    def encode(self, size: int = 0) -> bytes:
        """Return the note as bytes, filled up to `size`."""
        items = self.items or ()
        parts = [_HEAD.pack(self.items is not None, len(items)), _write(self.client)]
        for digest, rows in items:
            parts += [digest, _write(rows)]
        return b"".join(parts).ljust(size, b"\0")


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
            rows, at = _read(content, at + ID_BYTES)
            items.append((digest, rows))
    except (struct.error, ValueError):
        raise TokenForged("recommendation_id was issued by another version") from None
    return FeatureNote(client, tuple(items) if inline else None)


def _write(rows: SparseRows) -> bytes:
    return (
        _COUNT.pack(len(rows.indices))
        + rows.indices.astype("<u4").tobytes()
        + rows.values.astype("<f4").tobytes()
    )


def _read(content: bytes, at: int) -> tuple[SparseRows, int]:
    (count,) = _COUNT.unpack_from(content, at)
    start = at + _COUNT.size
    middle, end = start + 4 * count, start + _ENTRY * count
    if end > len(content):
        raise ValueError("too short")
    indices = np.frombuffer(content[start:middle], dtype="<u4").astype(np.int64)
    values = np.frombuffer(content[middle:end], dtype="<f4").astype(np.float64)
    return SparseRows(np.array([0, count]), indices, values), end
