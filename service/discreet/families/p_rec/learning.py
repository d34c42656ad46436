"""Feedback: like or dislike, written once into the record of the answer that it is about.

It adds to no sum and reaches no other client's answers. What it changes are the credits of the
voters with this client (`credits`), which are computed from the history when they are needed.
"""

import struct
from dataclasses import dataclass

from discreet.errors import InvalidArgument, UnknownDecision
from discreet.families.p_rec.history import (
    MARK_BYTES,
    RECORD_BYTES,
    AnswerRecord,
    ClientHistory,
    ClientOpinion,
    decode_record,
)
from discreet.state.stores import ClaimOutcome, Pages

_PLACE = struct.Struct(f"<{MARK_BYTES}sII")
_ERASED = "what is known about this client was erased"


@dataclass(frozen=True, slots=True)
class AnswerPlace:
    """Where an answer stands: which history, which record of it, which round, how many objects.

    It travels in the recommendation id, beside the client's digest.
    """

    mark: bytes
    position: int
    round: int
    size: int = 1

    def encode(self) -> bytes:
        """Return the bytes that a token carries; lists have one more."""
        place = _PLACE.pack(self.mark, self.position, self.round)
        return place if self.size == 1 else place + bytes([self.size])

    @classmethod
    def decode(cls, content: bytes) -> "AnswerPlace":
        """Return what `encode` wrote."""
        mark, position, number = _PLACE.unpack(content[: _PLACE.size])
        size = content[_PLACE.size :] or b"\x01"
        return cls(mark, position, number, size[0])


def opinion_of(reward: float) -> ClientOpinion:
    """Return what a reward means."""
    if reward == 1:
        return ClientOpinion.LIKED
    if reward == 0:
        return ClientOpinion.DISLIKED
    raise InvalidArgument("reward", "must be 1 (the client liked it) or 0 (disliked it)")


async def write_opinion(
    *,
    store: Pages,
    page: bytes,
    place: AnswerPlace,
    index: int,
    shown: AnswerRecord,
    opinion: ClientOpinion,
) -> ClaimOutcome:
    """Write the opinion where the object `shown` of an answer stands, unless there is one already.

    Raises `UnknownDecision` if that history was erased.
    """
    if await store.read_page(page=page, start=0, end=MARK_BYTES) != place.mark:
        raise UnknownDecision(_ERASED)
    at = ClientHistory.offset_of(place.position + index)
    written = await store.write_page(
        page=page, writes=[(at, shown.with_opinion(opinion).encode())], guard=(at, shown.encode())
    )
    return ClaimOutcome.COUNTED if written.done else _compared(written.found, shown, opinion)


def _compared(found: bytes, shown: AnswerRecord, opinion: ClientOpinion) -> ClaimOutcome:
    record = decode_record(found) if len(found) == RECORD_BYTES else None
    if not isinstance(record, AnswerRecord) or record.with_opinion(ClientOpinion.PENDING) != shown:
        raise UnknownDecision(_ERASED)
    stands = record.opinion
    if stands is ClientOpinion.SKIPPED:
        stands = ClientOpinion.DISLIKED
    return ClaimOutcome.DUPLICATE if stands is opinion else ClaimOutcome.CONFLICT
