"""What a store must do, as one protocol that memory and Redis both keep.

A store keeps four things that decisions rest on, and some documents beside them:

    ledgers   what each principal has spent, in two accounts: answers and feedback
    claims    which feedback was counted already, so that it is counted and paid for once
    sums      what feedback adds up to; only the releaser reads them
    models    what was released; every answer is made from one (blobs, replaced as a whole)

Every method takes many at once; one is a list of one. Every method *issues its commands when
called* and returns an awaitable of the answers: two calls made before the first `await` travel in
one round trip.

Where a method answers each entry by itself, an entry that failed, or whose fate is unknown, is
listed as its error. Where it does not, a store that does not answer raises `StoreUnavailable`, and
the caller releases nothing.

A principal's ledger, claims and sums lie on one *shard*, so that feedback is claimed, paid for and
added in one atomic step, also on a cluster. There are `SHARDS` of them; whoever releases adds the
shards up.
"""

from collections.abc import Awaitable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from discreet.errors import DiscreetError
from discreet.privacy.charges import UNLIMITED, Charge, Limit
from discreet.state.awaiting import Awaiting as Awaiting
from discreet.state.awaiting import OpenDecision as OpenDecision
from discreet.state.ledgers import NO_CHARGE as NO_CHARGE
from discreet.state.ledgers import Account as Account
from discreet.state.ledgers import DaySpending as DaySpending
from discreet.state.ledgers import Ledger as Ledger
from discreet.state.ledgers import LedgerWindow as LedgerWindow
from discreet.state.store_values import Blob as Blob
from discreet.state.store_values import Blobs as Blobs
from discreet.state.store_values import Configurations as Configurations
from discreet.state.store_values import Event as Event
from discreet.state.store_values import Events as Events
from discreet.state.store_values import Leases as Leases
from discreet.state.store_values import Pages as Pages
from discreet.state.store_values import PageWrite as PageWrite
from discreet.state.store_values import Queues as Queues
from discreet.state.store_values import Registry as Registry
from discreet.state.store_values import Rosters as Rosters
from discreet.state.store_values import Streams as Streams
from discreet.state.store_values import Written as Written

Vector = npt.NDArray[np.int64]

SHARDS = 64
SCHEMA = 3
"""The layout of what is stored. A server refuses a store that was written under another one."""

NO_LIMIT = Limit()
EXACT = Charge(nano_epsilon=UNLIMITED, nano_rho=UNLIMITED)
"""What a release without any noise is booked as: unlimited, for good."""


class Debit(NamedTuple):
    """A charge to be made if the account's total stays within the limit.

    A `marker` makes it idempotent for `marker_ttl` seconds: the same marker with the same charge
    again for the same account is granted without a second debit. With another charge it is
    another debit: what was paid under the old price must not cover a dearer release.

    The limit is for what was ever spent, or, with a `window` in seconds, for what was spent in the
    current window of that length. `purpose` says what it was spent on, for the day's entry. What is
    paid for may be a decision to be `opened`, in the same step, if the debit is granted.
    """

    principal: bytes
    charge: Charge = NO_CHARGE
    limit: Limit = NO_LIMIT
    account: Account = Account.ANSWERS
    marker: bytes | None = None
    marker_ttl: int = 86_400
    window: int = 0
    purpose: bytes = b""
    opened: OpenDecision | None = None


class Debited(NamedTuple):
    """A ledger after an attempt to debit it: it includes the debit only if `granted`.

    `awaiting` tells whether the decision that came with it awaits a reward: there may be no room.
    """

    granted: bool
    ledger: Ledger
    awaiting: bool = False


class ClaimOutcome(Enum):
    """What became of feedback: counted now, counted or held before, contradicting what was; held
    until its decision is due; or, counting what was held, that another reward is by now."""

    COUNTED = "counted"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    HELD = "held"
    CHANGED = "changed"


OWN = b""
"""The block of a principal's own sums, which may serve that principal's answers only."""


Increments = Sequence[tuple[int, int]] | npt.NDArray[np.int32]
"""Fields of a block and their amounts, as pairs or as the rows of an array; or an array with an
amount for each of the block's fields."""


class OwnRow(NamedTuple):
    """Numbers that are kept as they are behind the first `head` fields of own sums and behind all
    that were put there before. What they mean, and when they are added up (`fold_own`), is for
    whoever gives them.

    They come from what was shown at `made_at`, in seconds since the epoch. If the principal's own
    sums were erased since then, or in that second, they teach nothing: the record is neither
    claimed nor charged nor added."""

    head: int
    numbers: npt.NDArray[np.int64]
    made_at: int


class FeedbackRecord(NamedTuple):
    """One piece of feedback: to be claimed once, paid for, and added to sums.

    `charge` is the price of a principal's first record between two releases of the recommender.
    Records that share one release share its noise: n of them cost n**2 times the rho of one, so the
    n-th is charged (2 n - 1) times, also if a window of the ledger ends in between. Feedback that
    the limit does not admit is claimed, and not added. `window` and `purpose` as in `Debit`.

    `increments` adds amounts to fields of blocks: a block is named by its recommender's
    `generation` and a few bytes, or is the principal's `OWN`. An array of one axis has an amount
    for every field from the first on: that is quicker where most of them change. An array of two
    has a field and its amount in each row. Where a record would add to thousands of own sums, an
    `OwnRow` can stand for them.

    `awaited` is the decision that it is about, where decisions are awaited; the claim is then that
    name and two bytes of the item's place. While the decision is open, the reward is HELD. It is
    counted by a record that `settles`, which says what is held for the item, None if nothing is. If
    it was counted, or the decision is not open, that is a DUPLICATE.
    """

    principal: bytes
    generation: bytes
    claim: bytes
    reward: int
    claim_ttl: int
    increments: Mapping[bytes, Increments | OwnRow]
    charge: Charge = NO_CHARGE
    limit: Limit = NO_LIMIT
    window: int = 0
    purpose: bytes = b""
    awaited: bytes = b""
    settles: bool = False
    held: int | None = None


class Learned(NamedTuple):
    """The outcome of a claim, whether the feedback was paid for and added (None: it is held), what
    that cost, and the ledger after it."""

    claim: ClaimOutcome
    added: bool | None
    price: Charge
    ledger: Ledger


class Ledgers(Protocol):
    """What principals (keyed digests) have spent. Ledgers never expire and never shrink."""

    def spend(self, debits: Sequence[Debit]) -> Awaitable[Sequence[Debited | DiscreetError]]:
        """Make each debit if its total stays within its limit, atomically and durably.

        A principal that comes twice is debited twice, in order. A charge of nothing changes
        nothing and tells how the ledger stands.
        """
        ...

    def ledgers(self, principals: Sequence[bytes]) -> Awaitable[Sequence[Ledger]]:
        """Return what each has spent; an unknown principal has spent nothing."""
        ...

    def days(self, principal: bytes) -> Awaitable[Sequence[DaySpending]]:
        """Return what was spent by day, account and purpose, in ascending order.

        Days that are further back than `ledgers.KEPT_DAYS` may be missing.
        """
        ...

    def forget_days(self, principal: bytes) -> Awaitable[None]:
        """Erase what was spent by day; the ledger stays. Idempotent."""
        ...

    def forget_markers(self, principal: bytes) -> Awaitable[Sequence[bytes]]:
        """Remove and return the markers of a principal (its event digests); the ledger stays."""
        ...


class Sums(Protocol):
    """What feedback adds up to, in packed signed 64-bit fields, by recommender and block.

    Sums gather until the releaser *freezes* them under the number of the next release: from then
    on feedback gathers for the release after it, and what is frozen does not change any more. So
    reading it again after a crash reads the same. Freezing also begins the count of each
    principal's records anew.
    """

    def learn(
        self, records: Sequence[FeedbackRecord]
    ) -> Awaitable[Sequence[Learned | DiscreetError]]:
        """Claim each once, charge it and add it, in one atomic step each, in this order.

        The same claim with the same reward again is a DUPLICATE, with another reward a CONFLICT;
        neither adds or costs anything. A claim is forgotten after `claim_ttl` seconds, by when its
        token has expired. An entry that would make a field leave 64 bits is `StateOverflow`, and
        nothing of it is claimed, charged or added.
        """
        ...

    def freeze(self, *, generation: bytes, number: int) -> Awaitable[None]:
        """Set what has gathered aside for release `number`. Idempotent.

        Numbers begin at 1 and rise by one; an older number changes nothing.
        """
        ...

    def frozen(self, *, generation: bytes, number: int) -> Awaitable[Mapping[bytes, Vector]]:
        """Return what was set aside for a release, by block in ascending order, added up over the
        shards. Raises `StateOverflow` if a sum over the shards leaves 64 bits."""
        ...

    def discard(self, *, generation: bytes, number: int) -> Awaitable[None]:
        """Erase what was set aside for a release whose model is stored. Idempotent."""
        ...

    def own(self, *, generation: bytes, principals: Sequence[bytes]) -> Awaitable[Sequence[Vector]]:
        """Return the own sums of these principals; who has none has an empty vector."""
        ...

    def fold_own(
        self, *, generation: bytes, principal: bytes, before: Vector, after: Vector
    ) -> Awaitable[bool]:
        """Put `after` in the place of `before` if a principal's own sums still begin with it; tell
        whether they did. What came behind it meanwhile stays."""
        ...

    def owners(self, *, generation: bytes) -> Awaitable[Sequence[bytes]]:
        """Return every principal with own sums, in ascending order."""
        ...

    def forget_own(self, *, generation: bytes, principal: bytes) -> Awaitable[bool]:
        """Erase a principal's own sums, and put no `OwnRow` from before there any more; tell
        whether there were any. Idempotent."""
        ...

    def erase_sums(self, *, generation: bytes) -> Awaitable[None]:
        """Erase all sums of a recommender, own ones too, and its open decisions. Claims lapse by
        themselves."""
        ...


class Store(
    Ledgers,
    Sums,
    Awaiting,
    Blobs,
    Events,
    Queues,
    Pages,
    Rosters,
    Streams,
    Leases,
    Configurations,
    Protocol,
):
    """Everything. One contract suite (`tests/contracts/test_stores*.py`) runs against every one."""

    def ping(self) -> Awaitable[None]:
        """Return once the store has taken a write and is seen to have lost nothing; raise
        `StoreUnavailable`, or `StoreFenced`, otherwise."""
        ...

    def clock(self) -> float:
        """Return the store's time, in seconds since the epoch: one clock for all workers."""
        ...

    def superseded(self) -> bool:
        """Tell whether a store that was refused can be used again by whoever opens it anew."""
        ...

    async def open(self) -> None:
        """Connect, load scripts, and refuse a store that would evict ledgers, is of another schema,
        is empty (unless it may be begun), or lost something."""
        ...

    async def close(self) -> None:
        """Let go of every connection."""
        ...


def shard_of(principal: bytes) -> int:
    """Return the shard on which everything of a principal lies."""
    return principal[0] % SHARDS
