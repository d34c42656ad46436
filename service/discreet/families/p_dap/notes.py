"""What a forwarded decision's token carries besides the decision, for when feedback comes.

Two kinds. The asking side's token holds the vendor's handle, to which feedback is passed on. The
vendor's handle holds the stream of rewards that its feedback belongs to, and who had asked. Both
are inside the seal, and a handle has the same length whatever it stands for.
"""

import struct
from dataclasses import dataclass
from hashlib import blake2b

from discreet.errors import TokenForged

PEER_BYTES = 8
STREAM_BYTES = 16
_ASKED = 1
_HOSTED = 2
BOOKS_BYTES = 16
_HEAD = struct.Struct(f"<B?{BOOKS_BYTES}s")
_HOST = struct.Struct(f"<B?{PEER_BYTES}s{STREAM_BYTES}s")


@dataclass(frozen=True, slots=True)
class Asked:
    """Our decision was to ask a vendor, who answered with this handle; `books` count training."""

    training: bool
    books: bytes
    handle: str

    def encode(self) -> bytes:
        return _HEAD.pack(_ASKED, self.training, self.books) + self.handle.encode("ascii")


@dataclass(frozen=True, slots=True)
class Hosted:
    """We chose for another vendor's user: `peer` asked, and rewards go to `stream`."""

    training: bool
    peer: bytes
    stream: bytes

    def encode(self) -> bytes:
        return _HOST.pack(_HOSTED, self.training, self.peer, self.stream)


def read_note(note: bytes) -> Asked | Hosted:
    """Return what a token's note says."""
    if note[:1] == bytes([_ASKED]) and len(note) > _HEAD.size:
        _, training, books = _HEAD.unpack_from(note)
        return Asked(training=training, books=books, handle=note[_HEAD.size :].decode("ascii"))
    if note[:1] == bytes([_HOSTED]) and len(note) == _HOST.size:
        _, training, peer, stream = _HOST.unpack(note)
        return Hosted(training=training, peer=peer, stream=stream)
    raise TokenForged("recommendation_id was issued by another version of this service")


def peer_digest(requester: str) -> bytes:
    """Return the name of an asking vendor, of a length that does not tell which."""
    return blake2b(requester.encode(), digest_size=PEER_BYTES, person=b"requester").digest()
