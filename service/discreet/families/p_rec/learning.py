"""Feedback: like or dislike, written once into the record of the answer that it is about.

It adds to no sum and reaches no other client's answers. What it changes are the credits of the
voters with this client (`credits`), which are computed from the history when they are needed.
"""

import struct
from typing import NamedTuple

from discreet.errors import InvalidArgument, UnknownDecision
from discreet.families.p_rec.history import (
    MARK_BYTES,
    RECORD_BYTES,
    AnswerRecord,
    ClientHistory,
    ClientOpinion,
    decode_record,
)
from discreet.state.stores import ClaimOutcome, PageWrite, Written

_PLACE = struct.Struct(f"<{MARK_BYTES}sII")
_ERASED = "what is known about this client was erased"


class AnswerPlace(NamedTuple):
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


class WrittenOpinion(NamedTuple):
    """An opinion on the object `shown` of an answer, and where that stands."""

    place: AnswerPlace
    which: int
    shown: AnswerRecord
    opinion: ClientOpinion

    def writing(self, page: bytes) -> PageWrite:
        """Return how it is written, unless there is one already, or that history was erased."""
        at = ClientHistory.offset_of(self.place.position + self.which)
        told = self.shown.with_opinion(self.opinion).encode()
        return PageWrite(page, at, told, ((0, self.place.mark), (at, self.shown.encode())))

    def outcome(self, written: Written) -> ClaimOutcome:
        """Tell what became of it, or raise `UnknownDecision` if that history was erased."""
        if written.done:
            return ClaimOutcome.COUNTED
        mark, found = written.found[:MARK_BYTES], written.found[MARK_BYTES:]
        record = decode_record(found) if len(found) == RECORD_BYTES else None
        if (
            mark != self.place.mark
            or not isinstance(record, AnswerRecord)
            or record.with_opinion(ClientOpinion.PENDING) != self.shown
        ):
            raise UnknownDecision(_ERASED)
        stands = record.opinion
        if stands is ClientOpinion.SKIPPED:
            stands = ClientOpinion.DISLIKED
        return ClaimOutcome.DUPLICATE if stands is self.opinion else ClaimOutcome.CONFLICT
