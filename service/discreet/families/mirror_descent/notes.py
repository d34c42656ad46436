"""What a recommendation id carries until feedback comes: whose it is, and the features.

    principal (16 bytes), the client's features, then for candidates that no catalogue holds: a
    digest of the id and the features of each recommended one. Features are 32-bit positions and
    32-bit floats.

All of it is sealed with the decision (`discreet.decisions.tokens`). The principal is the keyed
digest under which the client's ledger stands; whose feedback it is must be known when it is paid
for, and a token is all there is.
"""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.families.mirror_descent.sparse import SparseRows
from discreet.state.principals import DIGEST_BYTES
from discreet.errors import TokenForged

MOST_NOTE = 11_000
"""Bytes. With its choices and in base64 a recommendation id then stays below 16 kB."""
ID_BYTES = 8

_COUNT = struct.Struct("<H")
_ENTRY = 8
"""Bytes of one feature."""


@dataclass(frozen=True, slots=True, eq=False)
class Note:
    """`items` is None if the catalogue has the features of what was recommended."""

    principal: bytes
    client: SparseRows
    items: tuple[tuple[bytes, SparseRows], ...] | None


def id_digest(item: str) -> bytes:
    """Return what stands for a candidate's id; the token binds it, so it need not be keyed."""
    return hashlib.blake2b(item.encode(), digest_size=ID_BYTES, person=b"candidate").digest()


def size_of(*, client: int, items: Sequence[int]) -> int:
    """Return the bytes of a note with so many features of the client and of each candidate."""
    each = sum(ID_BYTES + _COUNT.size + _ENTRY * count for count in items)
    return 1 + DIGEST_BYTES + _COUNT.size + _ENTRY * client + each


def write_note(note: Note) -> bytes:
    """Return the note as bytes."""
    parts = [bytes([note.items is not None]), note.principal, _features(note.client)]
    for digest, rows in note.items or ():
        parts += [digest, _features(rows)]
    return b"".join(parts)


def read_note(content: bytes) -> Note:
    """Return the note, which we sealed ourselves."""
    try:
        inline, at = content[0], 1 + DIGEST_BYTES
        principal = content[1:at]
        client, at = _read(content, at)
        items = []
        while inline and at < len(content):
            digest = content[at : at + ID_BYTES]
            rows, at = _read(content, at + ID_BYTES)
            items.append((digest, rows))
    except (struct.error, IndexError, ValueError):
        raise TokenForged("recommendation_id was issued by another version") from None
    return Note(principal, client, tuple(items) if inline else None)


def _features(rows: SparseRows) -> bytes:
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
