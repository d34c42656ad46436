"""Questions, decisions and feedback, as every family takes and gives them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.families.budgets import PrivacyReport
from discreet.families.observer import AnswerOutcome
from discreet.privacy.charges import Charge
from discreet.state.stores import NO_CHARGE, Increments, Ledger, OpenDecision, OwnRow


@dataclass(frozen=True, slots=True)
class Sparse:
    """A vector that is zero but at these ascending positions."""

    indices: Sequence[int]
    values: Sequence[float]


Vector = Sparse | tuple[float, ...]
"""Features: sparse, or one number after the other."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that may be recommended though no catalogue need hold it."""

    id: str
    features: Vector


class Ask(NamedTuple):
    """A caller's question, already checked for form. Which fields mean something, families say."""

    recommender: str
    client: str
    context: Sequence[float] | Mapping[str, Any] = ()
    limit: int = 1
    exclude: Sequence[str] = ()
    candidates: Sequence[str | Candidate] | None = None
    event_id: str | None = None
    features: Vector | None = None
    category: str | None = None
    round: str | None = None
    activate: bool = True
    """Whether the decision awaits a reward at once, or once it is activated."""
    anybody: bool = False
    """Whether to answer from the released model alone, without looking at the client. Free."""
    full: bool = False
    """Whether the answer describes its items."""
    personal: bool = False
    """Whether the key is one person's: then the event id is too, and meets nobody else's."""
    shadow: Sequence[str] = ()
    """Recommenders that answer as well without being shown, for the decision log."""


def refuse_unused(ask: Ask, *, uses: Sequence[str] = ()) -> None:
    """Raise for a field that was given and means nothing here: it would be ignored in silence."""
    for field, given in (
        ("context", len(ask.context) > 0),
        ("features", ask.features is not None),
        ("category", ask.category is not None),
        ("round", ask.round is not None),
    ):
        if given and field not in uses:
            raise InvalidArgument(field, "is not used by this recommender; leave it out")


def plain_ids(ask: Ask) -> Sequence[str] | None:
    """Return the candidates of a recommender that judges none by features of its own."""
    if ask.candidates is None:
        return None
    for one in ask.candidates:
        if not isinstance(one, str):
            raise InvalidArgument("candidates", "must be ids: features are not used here")
    return ask.candidates  # type: ignore[return-value]  # each was looked at


class Recommendation(NamedTuple):
    """The answer. `expires_at` is in seconds since the epoch.

    `vendors` says for every item which vendor it is of, None for ours; the id of a vendor's item
    is a handle that the vendor can open. It is empty if all are ours. If `round` is given, the item
    is that round's. `reason` says why an answer is not personalised, or not protected. `awaiting`
    tells whether it counts as the default without feedback, None where none ever does.
    """

    recommendation_id: str
    items: tuple[str, ...]
    personalised: bool
    privacy: PrivacyReport
    expires_at: int
    vendors: tuple[str | None, ...] = ()
    round: str | None = None
    reason: str | None = None
    awaiting: bool | None = None
    described: tuple[Mapping[str, Any], ...] = ()
    """What each item is called and the like, if asked for: the catalogue's, and never stored."""

    @property
    def vendor(self) -> str | None:
        """The vendor of the first item, None for ours."""
        return self.vendors[0] if self.vendors else None


class Feedback(NamedTuple):
    """What a caller tells about a recommendation: exactly one of the two ids is given.

    `recommenders` are those that the caller may speak to; None means all. The reward is in the
    recommender's range, or, if it is `scaled`, in [0, 1].
    """

    reward: float
    recommendation_id: str | None = None
    event_id: str | None = None
    item: str | None = None
    recommenders: frozenset[str] | None = None
    scaled: bool = False


@dataclass(frozen=True, slots=True)
class Activation:
    """A decision was shown after all, and awaits its reward from now on; ids as in `Feedback`."""

    recommendation_id: str | None = None
    event_id: str | None = None
    recommenders: frozenset[str] | None = None


class Receipt(NamedTuple):
    """Feedback was accepted; `duplicate` if it had been counted before.

    `learned` is False if the client's budget for feedback is spent: then nothing was added. It is
    None while the reward is held, to be learned from once its decision is due.
    """

    duplicate: bool
    learned: bool | None = True
    changed: bool = False
    """Whether this was to count what had been held, and another reward is by now."""


Places = npt.NDArray[np.intp]
Utilities = Mapping[int, tuple[float, bool | None]]
"""Of slots: what a model thinks they are worth, and whether they are shortlisted, if any are."""


def utilities_of(
    slots: Places, worth: npt.NDArray[np.float64], shortlist: Places | None = None
) -> Utilities:
    """Return utilities by slot."""
    listed = None if shortlist is None else set(shortlist.tolist())
    return {
        slot: (value, None if listed is None else slot in listed)
        for slot, value in zip(slots.tolist(), worth.tolist(), strict=True)
    }


@dataclass(slots=True, eq=False)
class Question:
    """A checked question. Families derive their own, with what they need to decide it.

    `client` is the client's principal: a keyed digest. Nobody changes a question; it is not frozen
    because there is one for every answer, and making a frozen one takes three times as long.
    """

    client: bytes
    limit: int


class Choice(NamedTuple):
    """One recommended slot and the probability with which it was drawn. Never shown to a caller."""

    slot: int
    propensity: float


class Decision(NamedTuple):
    """What was decided for one question.

    `choices` and `note` travel in the sealed recommendation id, and are what `learn` is given.
    `reason` says in a few words why an answer is not personalised, or not protected. `vendors`
    says for every item which vendor it is of, None for ours; the id of a vendor's item is a handle
    that the vendor can open. It is empty if all are ours. `expires_at` ends the time for feedback
    earlier than the document does.
    """

    items: tuple[str, ...]
    choices: tuple[Choice, ...]
    personalised: bool
    note: bytes = b""
    reason: str | None = None
    vendors: tuple[str | None, ...] = ()
    round: str | None = None
    expires_at: int | None = None
    decision_id: bytes | None = None
    """A name for the decision that a family gives itself; otherwise a random one is drawn."""


class Answered(NamedTuple):
    """A decision with what it cost the client, and the ledger that paid, after it.

    `awaiting` tells whether the decision was opened, to count as the default without feedback.
    """

    decision: Decision
    outcome: AnswerOutcome
    charge: Charge = NO_CHARGE
    ledger: Ledger | None = None
    awaiting: bool = False


Opens = Callable[[Sequence[int], Sequence[Decision]], Sequence[OpenDecision | None]]
"""Returns how the store keeps the decisions for these questions, by their places, while they await
a reward; None for one that does not."""


class PendingDecision(NamedTuple):
    """What a recommendation id carries, sealed: enough to learn from feedback."""

    generation: bytes
    decision_id: bytes
    expires_at: int
    principal: bytes
    personalised: bool
    choices: tuple[Choice, ...]
    note: bytes = b""
    deferred: bool = False
    """Whether it awaits a reward only once it is activated."""


class RetryMark(NamedTuple):
    """Under what a debit is made once, and for how many seconds that is remembered."""

    digest: bytes
    ttl: int


class PendingFeedback(NamedTuple):
    """Feedback on a decision, its reward in [0, 1]; a claim must be remembered for `ttl` seconds.

    What settles an awaited decision has no item's id, but a `position`, and says what was `held`.
    """

    pending: PendingDecision
    feedback: Feedback
    ttl: int
    position: int | None = None
    held: int | None = None


class Lesson(NamedTuple):
    """What feedback adds to fields of blocks, and the price of a client's first such record
    between two releases (`stores.FeedbackRecord`)."""

    increments: Mapping[bytes, Increments | OwnRow]
    charge: Charge = NO_CHARGE
