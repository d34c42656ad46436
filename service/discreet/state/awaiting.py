"""Decisions that await a reward: a bounded queue in the store, by recommender.

A decision is *opened* in the same atomic step as the debit that pays for its answer
(`stores.Debit.opened`), *due* at a moment of the store's clock, and *closed* once each of its items
has been counted: by feedback, or as the default. Which items have been, the store notes in the same
step that counts them (`stores.FeedbackRecord.awaited`), for as long as the decision is open. So
none is counted twice, however long nobody looked.

Feedback closes nothing before its time. How many decisions are open therefore follows from how many
answers were given, which is public; whether feedback came is not.

A queue that nobody has looked at for `ABANDONED_SECONDS` after its last decision was due is erased.
"""

from collections.abc import Awaitable, Sequence
from typing import NamedTuple, Protocol

ABANDONED_SECONDS = 30 * 86_400


class OpenDecision(NamedTuple):
    """A decision that counts as the default unless feedback comes before it is `due`.

    `content` is whatever the caller needs to count it, sealed. `most` is how many may be open in
    the recommender. Opening a decision again replaces its content; the later moment stands, or
    with `sooner` the earlier one.
    """

    generation: bytes
    decision: bytes
    content: bytes
    due: float
    most: int
    sooner: bool = False


class DueDecision(NamedTuple):
    """A decision whose time has come. There is no content if it is just being closed."""

    principal: bytes
    decision: bytes
    content: bytes | None


class DueDecisions(NamedTuple):
    """Decisions whose time has come, and how many are open, those included."""

    due: Sequence[DueDecision]
    open: int


class ClosedDecision(NamedTuple):
    """A decision of so many items, each of which has been counted."""

    principal: bytes
    decision: bytes
    items: int


class Awaiting(Protocol):
    """The decisions that await a reward."""

    def due(self, *, generation: bytes, most: int) -> Awaitable[DueDecisions]:
        """Return up to `most` decisions of each shard that are due, the earliest first."""
        ...

    def close_decisions(
        self, *, generation: bytes, decisions: Sequence[ClosedDecision]
    ) -> Awaitable[None]:
        """Forget decisions that have been counted. Idempotent."""
        ...

    def forget_open(self, *, generation: bytes, principal: bytes) -> Awaitable[int]:
        """Erase the open decisions of a principal; tell how many there were. Idempotent."""
        ...
