"""What a store keeps beside ledgers, claims and sums: blobs, events, queues, pages and the rest.

Blobs hold released models; the others hold what single families and the registry need.
"""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from discreet.errors import DiscreetError


@dataclass(frozen=True, slots=True)
class Event:
    """What the store knows about a caller's event id.

    `fingerprint` is a keyed digest of what is public of the request that claimed it first;
    `answer` is the sealed answer once there is one.
    """

    fingerprint: bytes
    answer: bytes | None


STAMP_BYTES = 8


class Stamp(NamedTuple):
    """A blob's version, and the store's time in seconds when it was written."""

    version: int
    at: float


@dataclass(frozen=True, slots=True)
class Registry:
    """All documents at one epoch. The epoch grows with every change."""

    epoch: int
    documents: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Blob:
    """A value that is replaced as a whole; every replacement adds one to its version."""

    version: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a write into a page: its length now, and what the guard's place held."""

    done: bool
    length: int
    found: bytes


class PageWrite(NamedTuple):
    """Bytes that go to a place of a page if it is as `long` as the writer believes, and all guards
    stand: bytes at their offsets, ascending. Without either they go there in any case."""

    page: bytes
    start: int
    content: bytes
    guards: tuple[tuple[int, bytes], ...] = ()
    long: int | None = None


class Blobs(Protocol):
    """Whole values, each replaced as a whole: released models, and documents of families."""

    def load(self, *, keys: Sequence[bytes]) -> Awaitable[Sequence[Blob | None]]:
        """Return the blobs of these names, None where there is none."""
        ...

    def versions(self, *, keys: Sequence[bytes]) -> Awaitable[Sequence[int]]:
        """Return the version of each without its content; 0 where there is none."""
        ...

    def save(
        self, *, key: bytes, content: bytes, expected: int | None = None
    ) -> Awaitable[int | None]:
        """Replace a blob and return its new version; an erased one begins again at 1.

        With `expected`, only if that is its version still (0: there must be none); returns None,
        changing nothing, when somebody else was faster: load again and retry.
        """
        ...

    def stamp(self, *, key: bytes) -> Awaitable[Stamp]:
        """Replace a blob by the store's time, in seconds rounded up (`STAMP_BYTES`, little endian);
        return its new version and that time, to the millisecond."""
        ...

    def erase(self, *, keys: Sequence[bytes]) -> Awaitable[None]:
        """Erase the blobs and the pages of these names. Idempotent."""
        ...


class Events(Protocol):
    """Caller-supplied event ids: the answer to a retry is the answer already given."""

    def claim_event(self, *, event: bytes, fingerprint: bytes, ttl: int) -> Awaitable[Event]:
        """Claim the event for this fingerprint if it is free; return what stands there now."""
        ...

    def answer_event(self, *, event: bytes, answer: bytes, ttl: int) -> Awaitable[bytes]:
        """Store the answer unless there is one; return the one that stands, and release only that.

        Raises `UnknownDecision`, storing nothing, if nobody claims the event (it expired or was
        forgotten meanwhile): two retries that share one paid marker could otherwise each release
        an answer of their own. For the same reason `ttl` must not be shorter than the marker's,
        and whoever erases a client forgets the markers first and the events after.
        """
        ...

    def find_event(self, *, event: bytes) -> Awaitable[Event | None]:
        """Return the event, or None."""
        ...

    def forget_event(self, *, event: bytes) -> Awaitable[None]:
        """Erase the event."""
        ...

    def forget_answer(self, *, event: bytes, answer: bytes) -> Awaitable[None]:
        """Erase the event if this is the answer that stands: nobody else's is taken away."""
        ...


class Queues(Protocol):
    """Messages that must reach another instance sooner or later, and other named sets."""

    def put_message(self, *, queue: bytes, name: bytes, content: bytes) -> Awaitable[None]:
        """Keep a message until it is removed; the same name again replaces it."""
        ...

    def messages(self, *, queue: bytes, most: int) -> Awaitable[Mapping[bytes, bytes]]:
        """Return up to `most` messages by name, a uniform sample if there are more."""
        ...

    def remove_message(self, *, queue: bytes, name: bytes) -> Awaitable[None]:
        """Forget a message. Idempotent."""
        ...

    def count_messages(self, *, queue: bytes) -> Awaitable[int]:
        """Return how many messages wait."""
        ...


class Pages(Protocol):
    """Byte strings that grow and are written in place."""

    def read_page(self, *, page: bytes, start: int = 0, end: int | None = None) -> Awaitable[bytes]:
        """Return the bytes in [start, end) as far as the page has them; `end` None is its end."""
        ...

    def write_page(
        self,
        *,
        page: bytes,
        writes: Sequence[tuple[int, bytes]],
        guard: tuple[int, bytes] | None = None,
    ) -> Awaitable[Written]:
        """Write each content at its offset, in turn, in one atomic step; gaps are zeros.

        With a `guard`, only if those bytes stand at that offset now; otherwise nothing changes,
        and `found` tells what stands there (less, or nothing, where the page ends).
        """
        ...

    def read_pages(
        self, *, pages: Sequence[bytes], head: int, starts: Sequence[int]
    ) -> Awaitable[Sequence[tuple[bytes, bytes]]]:
        """Return of each page its first bytes, `head` of them, and all from its start on, as far as
        the page has them: both as they stand at one moment."""
        ...

    def write_pages(
        self, writes: Sequence[PageWrite]
    ) -> Awaitable[Sequence[Written | DiscreetError]]:
        """Make each write, or change nothing about its page; each succeeds or fails by itself.

        `found` is what stood where the guards should, one after the other. Lists `StateOverflow`
        where a page would exceed `checks.MOST_PAGE`.
        """
        ...


class Streams(Protocol):
    """Lines in the order in which they came, each until it is so many seconds old."""

    def append_stream(self, *, stream: bytes, lines: Sequence[bytes], keep: int) -> Awaitable[None]:
        """Append lines, and remove those that are older than `keep` seconds.

        A line whose fate was unknown is not sent again: it may be missing.
        """
        ...

    def trim_stream(self, *, stream: bytes, keep: int) -> Awaitable[None]:
        """Remove lines that are older than `keep` seconds. Idempotent."""
        ...

    def read_stream(
        self, *, stream: bytes, after: bytes = b"", most: int = 1_000
    ) -> Awaitable[Sequence[tuple[bytes, bytes]]]:
        """Return the first lines behind the one whose number is `after`, with their numbers."""
        ...

    def remove_from_stream(self, *, stream: bytes, numbers: Sequence[bytes]) -> Awaitable[None]:
        """Remove lines by their numbers. Idempotent."""
        ...


class Rosters(Protocol):
    """Consecutive numbers, 0, 1, 2, …, for names, given once and for ever."""

    def enrol(self, *, roster: bytes, names: Sequence[bytes]) -> Awaitable[Sequence[int]]:
        """Return the number of each name, giving the next free one to a name that has none."""
        ...

    def number_of(
        self, *, roster: bytes, names: Sequence[bytes]
    ) -> Awaitable[Sequence[int | None]]:
        """Return the number of each name, or None."""
        ...

    def roster_size(self, *, roster: bytes) -> Awaitable[int]:
        """Return how many names have a number."""
        ...

    def remove_roster(self, *, roster: bytes) -> Awaitable[None]:
        """Forget every name; the next to be enrolled is 0 again. Idempotent."""
        ...


class Leases(Protocol):
    """One worker at a time does the background work."""

    def hold(self, *, lease: bytes, holder: bytes, seconds: float) -> Awaitable[bool]:
        """Take or renew a lease for so long; tell whether `holder` has it now.

        A lease saves work that others do already. It does not prove that they have stopped: a
        holder may be slower than its lease. What must happen once needs `expected`, a guard, a
        marker or a claim as well.
        """
        ...

    def let_go(self, *, lease: bytes, holder: bytes) -> Awaitable[None]:
        """End the lease if `holder` has it. Idempotent."""
        ...


class Configurations(Protocol):
    """Recommenders and API keys as documents, and secrets. Small, read whole."""

    def epoch(self) -> Awaitable[int]:
        """Return the registry's epoch: grows with every `put_document` and `remove_document`."""
        ...

    def registry(self) -> Awaitable[Registry]:
        """Return every document and the epoch they belong to, consistently."""
        ...

    def put_document(
        self, *, name: str, document: bytes, expected: bytes | None
    ) -> Awaitable[bool]:
        """Replace a document and advance the epoch, if what stands there is still `expected`.

        `expected` None means that there must be none yet. Returns False, changing nothing, when
        somebody else was faster: read again and retry.
        """
        ...

    def remove_document(self, *, name: str, expected: bytes) -> Awaitable[bool]:
        """Remove a document and advance the epoch, if what stands there is still `expected`."""
        ...

    def secret(self, *, name: str, proposal: bytes) -> Awaitable[bytes]:
        """Return the secret of that name, storing `proposal` first if there is none."""
        ...
