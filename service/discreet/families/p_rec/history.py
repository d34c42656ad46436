"""A client's history: a page of eight bytes a round, from which all else can be computed.

    page   = mark record*
    mark   = eight random bytes: a history that was erased and begun again has another
    record = kind, object, counted, 0, round (4 bytes, little endian)
           | "R", then the noise of the run's threshold (7 bytes, little endian, signed)

An "R" begins a run that was paid for. Votes are used for the answers after it until one is not
counted (the test said no) or the horizon is reached. An answer is pending until the client's word
comes, and only the last record can be.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from discreet.errors import StateOverflow

MARK_BYTES = 8
RECORD_BYTES = 8
_RUN = b"R"


class Word(Enum):
    """What the client said. Who passes on to another round without a word is taken to dislike."""

    PENDING = b"p"
    LIKED = b"l"
    DISLIKED = b"d"
    PASSED = b"x"


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer: the round's number, the object's place, and whether votes had a part in it."""

    round: int
    chosen: int
    counted: bool
    word: Word = Word.PENDING

    def encode(self) -> bytes:
        """Return the record."""
        head = self.word.value + bytes([self.chosen, self.counted, 0])
        return head + self.round.to_bytes(4, "little")

    def told(self, word: Word) -> "Answered":
        """Return it with the client's word."""
        return replace(self, word=word)


@dataclass(frozen=True, slots=True)
class RunBegun:
    """A run that was paid for."""

    offset: int

    def encode(self) -> bytes:
        """Return the record."""
        try:
            return _RUN + self.offset.to_bytes(7, "little", signed=True)
        except OverflowError:
            # With probability below exp(-2**20) for any scale that terms can have.
            raise StateOverflow("the threshold's noise does not fit its record") from None


Record = Answered | RunBegun


def decode(content: bytes) -> Record:
    """Return the record in these eight bytes."""
    if content[:1] == _RUN:
        return RunBegun(int.from_bytes(content[1:], "little", signed=True))
    return Answered(
        round=int.from_bytes(content[4:], "little"),
        chosen=content[1],
        counted=bool(content[2]),
        word=Word(content[:1]),
    )


class History:
    """A client's page as far as it was read. Grows with it; what is settled never changes."""

    def __init__(self, mark: bytes) -> None:
        self.mark = mark
        self.records: list[Record] = []
        self.runs = 0
        self._positions: dict[int, int] = {}
        self._begun = -1

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
    def pending(self) -> Answered | None:
        """The answer that has no word yet."""
        last = self.records[-1] if self.records else None
        return last if isinstance(last, Answered) and last.word is Word.PENDING else None

    def take(self, content: bytes, *, position: int) -> None:
        """Take over a piece of the page that begins with the record at `position`."""
        # Only the last record may have changed, from pending to a word: it keeps its round.
        del self.records[position:]
        for at in range(0, len(content) - RECORD_BYTES + 1, RECORD_BYTES):
            record = decode(content[at : at + RECORD_BYTES])
            if isinstance(record, Answered):
                self._positions[record.round] = len(self.records)
            else:
                self.runs += 1
                self._begun = len(self.records)
            self.records.append(record)

    def find(self, number: int) -> tuple[int, Answered] | None:
        """Return where the answer of a round stands, and the answer."""
        position = self._positions.get(number)
        if position is None or position >= len(self.records):
            return None
        record = self.records[position]
        assert isinstance(record, Answered)
        return position, record

    def next_round(self, rounds: int) -> int:
        """Return the first round, of so many, that was not answered; `rounds` if there is none."""
        number = len(self._positions)
        if all(one < number for one in self._positions):
            return number if number < rounds else rounds
        return next((one for one in range(rounds) if one not in self._positions), rounds)

    def run(self) -> "RunSoFar | None":
        """Return the run that is under way, or None if none has begun."""
        if self._begun < 0:
            return None
        begun = self.records[self._begun]
        assert isinstance(begun, RunBegun)
        rest = [one for one in self.records[self._begun + 1 :] if isinstance(one, Answered)]
        return RunSoFar(self.runs, begun.offset, rest)


@dataclass(frozen=True, slots=True)
class RunSoFar:
    """The run that is under way: its place among the client's runs, its noise, its answers."""

    number: int
    offset: int
    answers: Sequence[Answered]

    @property
    def ended(self) -> bool:
        """Whether the test has said no: votes are not used again."""
        return any(not one.counted for one in self.answers)
