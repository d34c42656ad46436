"""A client's history: a page of eight bytes for each object shown, from which all else follows.

    page   = mark record*
    mark   = eight random bytes: a history that was erased and begun again has another
    record = opinion, object, used votes, more, round (4 bytes, little endian)
           | "R", then the noise of the run's threshold (7 bytes, little endian, signed)

An "R" begins a run that was paid for. Votes are used for the answers after it until one does not
use them (the test said no) or the horizon is reached. An answer is one record for each of its
objects, in their order; `more` says how many of them follow. Only the last answer can be without
some of the client's opinions.
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from discreet.errors import StateOverflow, StoreDamaged

MARK_BYTES = 8
RECORD_BYTES = 8
_RUN = b"R"
_RECORD = struct.Struct("<cBBBI")


class ClientOpinion(bytes, Enum):
    """What the client thought of an object. Skipped: the client went on without saying."""

    PENDING = b"p"
    LIKED = b"l"
    DISLIKED = b"d"
    SKIPPED = b"s"


_LIKED, _PENDING = ClientOpinion.LIKED, ClientOpinion.PENDING
_OPINIONS = {one.value: one for one in ClientOpinion}


class AnswerRecord(NamedTuple):
    """An object of an answer: the round's number, its place, and whether votes had a part in it."""

    round: int
    chosen: int
    used_votes: bool
    opinion: ClientOpinion = _PENDING
    more: int = 0

    def encode(self) -> bytes:
        """Return the record."""
        round, chosen, used_votes, opinion, more = self
        return _RECORD.pack(opinion, chosen, used_votes, more, round)

    def with_opinion(self, opinion: ClientOpinion) -> "AnswerRecord":
        """Return it with the client's opinion."""
        return AnswerRecord(self.round, self.chosen, self.used_votes, opinion, self.more)


class ClientAnswer(NamedTuple):
    """One answer: the records of its objects, in the order in which they are shown."""

    records: tuple[AnswerRecord, ...]

    @classmethod
    def new(cls, round: int, chosen: Sequence[int], used_votes: bool) -> "ClientAnswer":
        """Return an answer about which the client has said nothing."""
        last = len(chosen) - 1
        if not last:
            return cls((AnswerRecord(round, chosen[0], used_votes),))
        return cls(
            tuple(
                AnswerRecord(round, place, used_votes, _PENDING, last - at)
                for at, place in enumerate(chosen)
            )
        )

    @property
    def round(self) -> int:
        """The round's number."""
        return self.records[0].round

    @property
    def chosen(self) -> tuple[int, ...]:
        """The places of its objects."""
        return tuple([one.chosen for one in self.records])

    @property
    def used_votes(self) -> bool:
        """Whether votes had a part in it."""
        return self.records[0].used_votes

    @property
    def liked(self) -> int | None:
        """The place of the first object that the client liked: one at most has a part in credits,
        or a client who likes all of them would take credit from nobody (`model`, step 2)."""
        return next((one.chosen for one in self.records if one.opinion is _LIKED), None)

    @property
    def disliked(self) -> tuple[int, ...]:
        """The places of what the client disliked; without a like, also of what was passed over."""
        against = {ClientOpinion.DISLIKED}
        if self.liked is None:
            against.add(ClientOpinion.SKIPPED)
        return tuple(one.chosen for one in self.records if one.opinion in against)

    @property
    def incomplete(self) -> bool:
        """Whether an opinion on one of its objects may still come."""
        return any(one.opinion is _PENDING for one in self.records)

    @property
    def awaited(self) -> bool:
        """Whether nothing is liked so far, and an opinion may still come: it is shown again."""
        return self.incomplete and self.liked is None

    def passed_over(self) -> "ClientAnswer":
        """Return it as it stands once the client goes on: no more opinions are taken."""
        if len(self.records) == 1 and self.records[0].opinion is _PENDING:
            return ClientAnswer((self.records[0].with_opinion(ClientOpinion.SKIPPED),))
        return ClientAnswer(
            tuple(
                one.with_opinion(ClientOpinion.SKIPPED) if one.opinion is _PENDING else one
                for one in self.records
            )
        )

    def encode(self) -> bytes:
        """Return its records."""
        if len(self.records) == 1:
            return self.records[0].encode()
        return b"".join([one.encode() for one in self.records])


class RunRecord(NamedTuple):
    """The beginning of a run that was paid for, with the noise of its threshold."""

    offset: int

    def encode(self) -> bytes:
        """Return the record."""
        try:
            return _RUN + self.offset.to_bytes(7, "little", signed=True)
        except OverflowError:
            # With probability below exp(-2**20) for any scale that a run can have.
            raise StateOverflow("the threshold's noise does not fit its record") from None


HistoryRecord = AnswerRecord | RunRecord


def decode_record(content: bytes) -> HistoryRecord:
    """Return the record in these eight bytes, or raise `StoreDamaged`."""
    kind, chosen, used_votes, more, round = _RECORD.unpack(content)
    if kind == _RUN:
        return RunRecord(int.from_bytes(content[1:], "little", signed=True))
    opinion = _OPINIONS.get(kind)
    if opinion is None:
        raise StoreDamaged("a client's history holds something that cannot be read")
    return AnswerRecord(round, chosen, bool(used_votes), opinion, more)


class CurrentRun(NamedTuple):
    """The run that is under way: its number among the client's runs, its noise, its answers."""

    number: int
    offset: int
    answers: Sequence[ClientAnswer]

    @property
    def ended(self) -> bool:
        """Whether the test has said no: votes are not used again, so the last answer tells."""
        return bool(self.answers) and not self.answers[-1].used_votes

    @property
    def judged(self) -> Sequence[ClientAnswer]:
        """The answers that have all opinions: only the last may be without some."""
        return self.answers[:-1] if self.answers and self.answers[-1].incomplete else self.answers


class ClientHistory:
    """A client's page as far as it was read. What is settled on it never changes."""

    def __init__(self, mark: bytes = b"") -> None:
        self.mark = mark
        self.records: list[HistoryRecord] = []
        self._runs: list[int] = []
        self._given: list[ClientAnswer] = []
        self._answers: list[int] = []
        """Where answers begin, in order; and by the numbers of their rounds:"""
        self._positions: dict[int, int] = {}
        self._next_round = 0
        self.pending: ClientAnswer | None = None
        """The last answer, if an opinion on it may still come,"""
        self.pending_records = b""
        """and its records as they stand on the page."""

    @staticmethod
    def offset_of(position: int) -> int:
        """Return where a record stands on the page."""
        return MARK_BYTES + RECORD_BYTES * position

    @property
    def length(self) -> int:
        """How long the page is."""
        return self.offset_of(len(self.records))

    @property
    def settled(self) -> int:
        """How many records can never change: all, or all before the pending answer's."""
        return len(self.records) if self.pending is None else self._answers[-1]

    def add(
        self,
        passed: ClientAnswer | None,
        begun: RunRecord | None,
        answer: ClientAnswer,
        records_of: bytes,
    ) -> None:
        """Add an answer that was written behind all that was read, and perhaps a run before it;
        `passed` is the pending answer as the client went past it."""
        records = self.records
        if passed is not None:
            records[self._answers[-1] :] = passed.records
            self._given[-1] = passed
        if begun is not None:
            self._runs.append(len(records))
            records.append(begun)
        self._positions[answer.round] = len(records)
        self._answers.append(len(records))
        self._given.append(answer)
        records += answer.records
        self.pending, self.pending_records = answer, records_of

    def _answer(self, position: int) -> ClientAnswer:
        first = self.records[position]
        assert isinstance(first, AnswerRecord)
        records = self.records[position : position + 1 + first.more]
        return ClientAnswer(tuple(one for one in records if isinstance(one, AnswerRecord)))

    def read(self, content: bytes, *, position: int) -> None:
        """Take over a piece of the page that begins with the record at `position`."""
        if content and content == self.pending_records and position == self._answers[-1]:
            return  # nothing was written since
        # Only the last answer may have changed, by opinions: it keeps its round.
        del self.records[position:]
        kept = bisect_left(self._answers, position)
        del self._answers[kept:], self._given[kept:]
        follows = 0
        for at in range(0, len(content) - RECORD_BYTES + 1, RECORD_BYTES):
            record = decode_record(content[at : at + RECORD_BYTES])
            if isinstance(record, AnswerRecord):
                if not follows:
                    self._positions[record.round] = len(self.records)
                    self._answers.append(len(self.records))
                follows = record.more
            else:
                self._runs.append(len(self.records))
            self.records.append(record)
        self._given += map(self._answer, self._answers[kept:])
        last = self._given[-1] if self._given else None
        self.pending, self.pending_records = None, b""
        if last is not None and last.incomplete:
            self.pending, self.pending_records = last, last.encode()

    def find(self, number: int) -> tuple[int, ClientAnswer] | None:
        """Return where the answer of a round begins, and the answer."""
        position = self._positions.get(number)
        if position is None or position >= len(self.records):
            return None
        return position, self._given[bisect_left(self._answers, position)]

    def next_round(self) -> int:
        """Return the number of the first round that was not answered."""
        while self._next_round in self._positions:
            self._next_round += 1
        return self._next_round

    @property
    def runs(self) -> int:
        """How many runs were begun."""
        return len(self._runs)

    def run(self) -> CurrentRun | None:
        """Return the run that is under way, or None if none has begun."""
        if not self._runs:
            return None
        begun = self.records[self._runs[-1]]
        assert isinstance(begun, RunRecord)
        first = bisect_right(self._answers, self._runs[-1])
        return CurrentRun(len(self._runs), begun.offset, self._given[first:])

    def was_paid(self, position: int, *, horizon: int) -> bool:
        """Tell whether the answer at a position belongs to a run of so many rounds."""
        run = bisect_right(self._runs, position) - 1
        if run < 0:
            return False
        before = bisect_left(self._answers, position) - bisect_left(self._answers, self._runs[run])
        return before < horizon
