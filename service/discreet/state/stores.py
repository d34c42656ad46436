"""What a store must do, as one protocol that memory and Redis both keep.

Every method *issues its command when called* and returns an awaitable of its answer. Two calls
made before the first `await` therefore travel in one round trip: that is how a ledger is debited
and statistics are read together.

A store that does not answer in time raises `StoreUnavailable`, and the caller releases nothing.
"""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from discreet.errors import DiscreetError
from discreet.privacy.charges import Charge, Limit

Vector = npt.NDArray[np.int64]


class Account(NamedTuple):
    """A ledger after an attempt to debit it: `spent` includes the debit only if `granted`."""

    granted: bool
    spent: Charge


class Rows(NamedTuple):
    """Many vectors of one length: 0 where there is nothing, and why where one cannot be read."""

    sums: npt.NDArray[np.int64]
    failed: Mapping[int, DiscreetError]


class Claim(Enum):
    """What became of feedback: counted now, counted before, or contradicting what was counted."""

    COUNTED = "counted"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"


class Learning(NamedTuple):
    """What `learn` takes, where there is more than one of them."""

    address: bytes
    increments: Sequence[tuple[int, int]]
    claim: bytes
    reward: int
    claim_ttl: int


class Learned(NamedTuple):
    """The outcome of a claim, and the address's field 0 (arrivals) after it."""

    claim: Claim
    arrivals: int


@dataclass(frozen=True, slots=True)
class Event:
    """What the store knows about a caller's event id.

    `fingerprint` is a keyed digest of the request that claimed it first; `answer` is the sealed
    answer once there is one.
    """

    fingerprint: bytes
    answer: bytes | None


@dataclass(frozen=True, slots=True)
class Registry:
    """All recommenders' documents at one epoch. The epoch grows with every change."""

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


class Store(Protocol):
    """One contract suite (`tests/contracts/test_stores*.py`) runs against every implementation."""

    # Ledgers, by principal (a keyed digest). Never expire, never shrink.

    def spend(
        self,
        *,
        principal: bytes,
        charge: Charge,
        limit: Limit,
        marker: bytes | None = None,
        marker_ttl: int = 86_400,
    ) -> Awaitable[Account]:
        """Debit `charge` if the total stays within `limit`, atomically and durably.

        A `marker` makes the debit idempotent for `marker_ttl` seconds: the same marker with the
        same charge again for the same principal is granted without a second debit. A marker pays
        for one release only while its event stands (see `answer_event`). With another charge it
        is another debit: what was paid under the old price must not cover a dearer release.
        """
        ...

    def spend_each(
        self, *, principals: Sequence[bytes], charge: Charge, limit: Limit
    ) -> Awaitable[Sequence[Account | DiscreetError]]:
        """Debit the same charge to many principals, each as `spend` would.

        One that comes twice is debited twice, in an order that does not matter: the charges are
        equal. A debit that failed, or whose fate is unknown, is
        listed as its error; the others stand.
        """
        ...

    def balance(self, *, principal: bytes) -> Awaitable[Charge]:
        """Return what the principal has spent; an unknown principal has spent nothing."""
        ...

    def forget_markers(self, *, principal: bytes) -> Awaitable[Sequence[bytes]]:
        """Remove and return the markers of a principal (its event digests); the ledger stays."""
        ...

    # Statistics, by address digest: packed signed 64-bit sums.

    def read(self, *, addresses: Sequence[bytes]) -> Awaitable[Sequence[Vector]]:
        """Return the vectors at these addresses; an absent one is empty."""
        ...

    def read_rows(self, *, addresses: Sequence[bytes], fields: int) -> Awaitable[Rows]:
        """Return the first `fields` sums at each of these addresses, a row each.

        An address that comes twice is read twice: what a batch costs must not tell how many of
        its contexts lie together.
        """
        ...

    def learn(
        self,
        *,
        address: bytes,
        increments: Sequence[tuple[int, int]],
        claim: bytes,
        reward: int,
        claim_ttl: int,
    ) -> Awaitable[Learned]:
        """Claim a decision's feedback once and add the increments, in one atomic step.

        `claim` names the decision (and the item within it), `reward` is its fixed-point value: the
        same pair again is a DUPLICATE, the same claim with another reward a CONFLICT; neither adds
        anything. The claim is forgotten after `claim_ttl` seconds, by when the token has expired.
        Raises `StateOverflow`, adding nothing, if a field would leave 64 bits.
        """
        ...

    def learn_each(
        self, *, learnings: Sequence[Learning]
    ) -> Awaitable[Sequence[Learned | DiscreetError]]:
        """Do what `learn` does for each of many, in this order; one that fails is its error."""
        ...

    def index_cell(self, *, index: bytes, address: bytes, level: int) -> Awaitable[None]:
        """Note that an address exists, so that surveys find it. Idempotent."""
        ...

    def cells(self, *, index: bytes, most: int) -> Awaitable[Mapping[bytes, int]]:
        """Return up to `most` indexed addresses with their levels, a uniform sample if more."""
        ...

    def count_cells(self, *, index: bytes) -> Awaitable[int]:
        """Return how many addresses are indexed."""
        ...

    def remove_cells(self, *, index: bytes) -> Awaitable[int]:
        """Erase every indexed address's statistics and the index; return how many."""
        ...

    # Caller-supplied event ids: the answer to a retry is the answer already given.

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

    # Letters: what must reach another instance sooner or later, however often it takes.

    def post_letter(self, *, queue: bytes, letter: bytes, content: bytes) -> Awaitable[None]:
        """Keep a letter until it is discarded; posting the same one again replaces it."""
        ...

    def letters(self, *, queue: bytes, most: int) -> Awaitable[Mapping[bytes, bytes]]:
        """Return up to `most` letters with their contents, a uniform sample if there are more."""
        ...

    def discard_letter(self, *, queue: bytes, letter: bytes) -> Awaitable[None]:
        """Forget a letter. Idempotent."""
        ...

    def count_letters(self, *, queue: bytes) -> Awaitable[int]:
        """Return how many letters wait."""
        ...

    # Blobs: whole values, each replaced as a whole.

    def load(self, *, keys: Sequence[bytes]) -> Awaitable[Sequence[Blob | None]]:
        """Return the blobs of these names, None where there is none."""
        ...

    def save(
        self, *, key: bytes, content: bytes, expected: int | None = None
    ) -> Awaitable[int | None]:
        """Replace a blob and return its new version; an erased one begins again at 1.

        With `expected`, only if that is its version still (0: there must be none); returns None,
        changing nothing, when somebody else was faster: load again and retry.
        """
        ...

    # Pages: byte strings that grow and are written in place.

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

    def append_page(
        self, *, page: bytes, content: bytes, expected: int | None = None
    ) -> Awaitable[int | None]:
        """Append and return the new length, or None, changing nothing, if it was not `expected`.

        Raises `StateOverflow`, changing nothing, if the page would exceed `checks.MOST_PAGE`.
        """
        ...

    def erase(self, *, keys: Sequence[bytes]) -> Awaitable[None]:
        """Erase the blobs and the pages of these names. Idempotent."""
        ...

    # Rosters: consecutive numbers, 0, 1, 2, …, for names, given once and for ever.

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

    def strike_roster(self, *, roster: bytes) -> Awaitable[None]:
        """Forget every name; the next to be enrolled is 0 again. Idempotent."""
        ...

    # Leases: one worker at a time does the background work.

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

    # Configuration: recommenders and API keys as documents, and secrets. Small, read whole.

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

    def remove_document(self, *, name: str) -> Awaitable[bool]:
        """Remove a document and advance the epoch; tell whether it was there."""
        ...

    def secret(self, *, name: str, proposal: bytes) -> Awaitable[bytes]:
        """Return the secret of that name, storing `proposal` first if there is none."""
        ...

    # Life.

    def ping(self) -> Awaitable[None]:
        """Return once the store has answered; raise `StoreUnavailable` otherwise."""
        ...

    async def open(self) -> None:
        """Connect, load scripts, and refuse a store that would evict ledgers."""
        ...

    async def close(self) -> None:
        """Let go of every connection."""
        ...
