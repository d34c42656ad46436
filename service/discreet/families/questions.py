"""Questions and answers, as every family takes and gives them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from discreet.families.budgets import PrivacyReport
from discreet.errors import InvalidArgument


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
    context: Sequence[float] = ()
    limit: int = 1
    exclude: Sequence[str] = ()
    candidates: Sequence[str | Candidate] | None = None
    event_id: str | None = None
    features: Vector | None = None
    category: str | None = None
    round: str | None = None


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

    If `vendor` is given, the only item is another vendor's, and its id a handle that the vendor
    can open. If `round` is given, the item is that round's.
    """

    recommendation_id: str
    items: tuple[str, ...]
    personalised: bool
    privacy: PrivacyReport
    expires_at: int
    vendor: str | None = None
    round: str | None = None


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a caller tells about a recommendation: exactly one of the two ids is given."""

    reward: float
    recommendation_id: str | None = None
    event_id: str | None = None
    item: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """Feedback was accepted; `duplicate` if it had been counted before."""

    duplicate: bool
