"""A client's history: a page of eight bytes a round, from which all else can be computed.

    page   = mark record*
    mark   = eight random bytes: a history that was erased and begun again has another
    record = opinion, object, used votes, 0, round (4 bytes, little endian)
           | "R", then the noise of the run's threshold (7 bytes, little endian, signed)

An "R" begins a run that was paid for. Votes are used for the answers after it until one does not
use them (the test said no) or the horizon is reached. An answer is pending until the client's
opinion comes, and only the last record can be.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from discreet.errors import StateOverflow

MARK_BYTES = 8
RECORD_BYTES = 8
_RUN = b"R"


class ClientOpinion(Enum):
    """What the client thought. Going on to another round without feedback counts as dislike."""

    PENDING = b"p"
    LIKED = b"l"
    DISLIKED = b"d"
    SKIPPED = b"s"


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """One answer: the round's number, the object's place, and whether votes had a part in it."""

    round: int
    chosen: int
    used_votes: bool
    opinion: ClientOpinion = ClientOpinion.PENDING

    def encode(self) -> bytes:
        """Return the record."""
        head = self.opinion.value + bytes([self.chosen, self.used_votes, 0])
        return head + self.round.to_bytes(4, "little")

    def with_opinion(self, opinion: ClientOpinion) -> "AnswerRecord":
        """Return it with the client's opinion."""
        return replace(self, opinion=opinion)


@dataclass(frozen=True, slots=True)
class RunRecord:
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
    """Return the record in these eight bytes."""
    if content[:1] == _RUN:
        return RunRecord(int.from_bytes(content[1:], "little", signed=True))
    return AnswerRecord(
        round=int.from_bytes(content[4:], "little"),
        chosen=content[1],
        used_votes=bool(content[2]),
        opinion=ClientOpinion(content[:1]),
    )


@dataclass(frozen=True, slots=True)
class CurrentRun:
    """The run that is under way: its number among the client's runs, its noise, its answers."""

    number: int
    offset: int
    answers: Sequence[AnswerRecord]

    @property
    def ended(self) -> bool:
        """Whether the test has said no: votes are not used again."""
        return any(not one.used_votes for one in self.answers)


class ClientHistory:
    """A client's page as far as it was read. What is settled on it never changes."""

    def __init__(self, mark: bytes = b"") -> None:
        self.mark = mark
        self.records: list[HistoryRecord] = []
        self._runs: list[int] = []
        self._positions: dict[int, int] = {}
        self._next_round = 0

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
        """How many records can never change: all, or all but the pending one."""
        return len(self.records) - (self.pending is not None)

    @property
    def pending(self) -> AnswerRecord | None:
        """The answer that has no opinion yet."""
        last = self.records[-1] if self.records else None
        if isinstance(last, AnswerRecord) and last.opinion is ClientOpinion.PENDING:
            return last
        return None

    def read(self, content: bytes, *, position: int) -> None:
        """Take over a piece of the page that begins with the record at `position`."""
        # Only the last record may have changed, from pending to an opinion: it keeps its round.
        del self.records[position:]
        for at in range(0, len(content) - RECORD_BYTES + 1, RECORD_BYTES):
            record = decode_record(content[at : at + RECORD_BYTES])
            if isinstance(record, AnswerRecord):
                self._positions[record.round] = len(self.records)
            else:
                self._runs.append(len(self.records))
            self.records.append(record)

    def find(self, number: int) -> tuple[int, AnswerRecord] | None:
        """Return where the answer of a round stands, and the answer."""
        position = self._positions.get(number)
        if position is None or position >= len(self.records):
            return None
        record = self.records[position]
        assert isinstance(record, AnswerRecord)
        return position, record

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
        rest = self.records[self._runs[-1] + 1 :]
        answers = [one for one in rest if isinstance(one, AnswerRecord)]
        return CurrentRun(len(self._runs), begun.offset, answers)

    def was_paid(self, position: int, *, horizon: int) -> bool:
        """Tell whether the answer at a position belongs to a run of so many rounds."""
        run = bisect_right(self._runs, position) - 1
        return run >= 0 and position - self._runs[run] <= horizon
