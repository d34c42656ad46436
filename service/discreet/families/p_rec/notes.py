"""What a recommendation's token says about where its answer stands, beside the client's digest."""

import struct
from dataclasses import dataclass

from discreet.families.p_rec.history import MARK_BYTES

_NOTE = struct.Struct(f"<{MARK_BYTES}sII")


@dataclass(frozen=True, slots=True)
class Note:
    """Which history, which record of it, and which round the record is about."""

    mark: bytes
    position: int
    round: int

    def encode(self) -> bytes:
        """Return the bytes that a token carries."""
        return _NOTE.pack(self.mark, self.position, self.round)

    @classmethod
    def decode(cls, content: bytes) -> "Note":
        """Return what `encode` wrote."""
        return cls(*_NOTE.unpack(content))
