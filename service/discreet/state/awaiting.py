"""Decisions that await a reward: a bounded queue in the store, by recommender.

A decision is *opened* in the same atomic step as the debit that pays for its answer
(`stores.Debit.opened`). Feedback on it is *held*, and counts when the decision is *due*, at a
moment of the store's clock; what has no feedback then counts as the default. Once each of its items
has been counted, the decision is *closed*. Which items have been, the store notes in the same step
that counts them (`stores.FeedbackRecord.awaited`), for as long as the decision is open. So none is
counted twice, however long nobody looked.

Were feedback counted as it comes and silence only later, every model would be made of clicks whose
counterpart is still missing: whatever was shown lately would look liked by everybody.

Feedback closes nothing before its time. How many decisions are open, and when each of them counts,
therefore follows from which answers were given, which is public; whether feedback came is not.

A queue that nobody has looked at for `ABANDONED_SECONDS` after its last decision was due is erased.
"""

from collections.abc import Awaitable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

ABANDONED_SECONDS = 30 * 86_400


class OpenDecision(NamedTuple):
    """A decision that counts as the default unless feedback comes before it is `due`.

    It has so many `items`; `content` is whatever the caller needs to count them, sealed. `most` is
    how many decisions may be open in the recommender. Opening a decision again replaces its
    content; the later moment stands, or with `sooner` the earlier one.
    """

    generation: bytes
    decision: bytes
    items: int
    content: bytes
    due: float
    most: int
    sooner: bool = False


class Counted(Enum):
    """Stands for the reward of an item that was counted."""

    COUNTED = "c"


class DueDecision(NamedTuple):
    """A decision whose time has come, and the reward that is held for each of its items, None where
    no feedback came. There is no content if the decision is just being closed."""

    principal: bytes
    decision: bytes
    content: bytes | None
    rewards: tuple[int | Counted | None, ...]


class DueDecisions(NamedTuple):
    """Decisions whose time has come, and how many are open, those included."""

    due: Sequence[DueDecision]
    open: int


class Awaiting(Protocol):
    """The decisions that await a reward."""

    def due(self, *, generation: bytes, most: int) -> Awaitable[DueDecisions]:
        """Return up to `most` decisions of each shard that are due, the earliest first."""
        ...

    def close_decisions(
        self, *, generation: bytes, decisions: Sequence[tuple[bytes, bytes]]
    ) -> Awaitable[None]:
        """Forget decisions, each a principal and a name, that have been counted. Idempotent."""
        ...

    def forget_open(self, *, generation: bytes, principal: bytes) -> Awaitable[int]:
        """Erase the open decisions of a principal; tell how many there were. Idempotent."""
        ...
