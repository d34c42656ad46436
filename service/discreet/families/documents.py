"""What every recommender's document has, as people write it: `PUT /recommenders/{name}`, or YAML.

Unknown fields are refused, so that a misspelt `epsilon` can never fall back to a default. Fields
carry their own limits and say what they mean; the OpenAPI document shows both. What only one
algorithm knows is in the `document` module of its package; `every_document` joins them all.
"""

import operator
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)

MOST_ITEMS = 10_000
MOST_DIMENSIONS = 100_000
MOST_FEATURES = 1_000_000
MOST_NONZEROS = 1_000
MOST_CATEGORIES = 64
MOST_PERSONAL_SLOTS = 100
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must not contain control characters")
    return text


Identifier = Annotated[
    str, Field(min_length=1, max_length=200, strict=True), AfterValidator(_printable)
]
"""The id of an item, a client or an event: any printable text of 1 to 200 characters."""

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Position = Annotated[
    int,
    Field(strict=True),
    # The limits are looked at once for a list that ascends, at its ends.
    WithJsonSchema({"type": "integer", "minimum": 0, "maximum": MOST_FEATURES - 1}),
]


class Document(BaseModel):
    """A part of a recommender's document."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SparseFeatures(Document):
    """A vector that is zero almost everywhere: ascending positions, and what stands there."""

    indices: list[Position] = Field(max_length=MOST_NONZEROS, fail_fast=True)
    values: list[Number] = Field(max_length=MOST_NONZEROS, fail_fast=True)

    @model_validator(mode="after")
    def _well_formed(self) -> Self:
        if len(self.indices) != len(self.values):
            raise ValueError("indices and values must be equally many")
        if not all(map(operator.lt, self.indices, self.indices[1:])):
            raise ValueError("indices must ascend, each standing once")
        if self.indices and not (self.indices[0] >= 0 and self.indices[-1] < MOST_FEATURES):
            raise ValueError(f"indices must be from 0 to {MOST_FEATURES - 1}")
        return self


DenseFeatures = Annotated[list[Number], Field(min_length=1, max_length=10_000, fail_fast=True)]


def list_or_object(value: Any) -> str:
    """Return which of the two it is, as a tag: errors are then about the one that was meant."""
    return "(object)" if isinstance(value, dict | BaseModel) else "(list)"


Features = Annotated[
    Annotated[SparseFeatures, Tag("(object)")] | Annotated[DenseFeatures, Tag("(list)")],
    Discriminator(list_or_object),
]
"""Features as a list of numbers, or as positions and values."""


class ItemDocument(Document):
    """Something that can be recommended. Each algorithm says which fields it uses."""

    id: Identifier
    hidden: bool = Field(
        default=False, description="Hidden items keep what was learned but are not recommended."
    )
    title: Identifier | None = Field(default=None, description="What people call it.")
    categories: list[Identifier] | None = Field(default=None, max_length=MOST_CATEGORIES)
    features: Features | None = Field(
        default=None, description="A vector, for the algorithms that judge items by their features."
    )


class UnusableItem(ValueError):
    """An item that an algorithm cannot use; `field` is what is wrong with it, if one thing is."""

    def __init__(self, reason: str, *, field: str | None = None) -> None:
        super().__init__(reason)
        self.field = field

    def field_at(self, position: int) -> str:
        """Return the field's name in a list of items."""
        return f"items[{position}]" + ("" if self.field is None else f".{self.field}")


def peer_url(text: str) -> str:
    """Return the address of another instance, without a trailing slash."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or parts.username is not None:
        raise ValueError("must be http:// or https://, a host, perhaps a port and a path")
    if not (text.isascii() and text.isprintable() and " " not in text):
        raise ValueError("must be printable ASCII without spaces")
    return text.rstrip("/")


PeerUrl = Annotated[str, Field(min_length=1, max_length=500, strict=True), AfterValidator(peer_url)]


class BudgetDocument(Document):
    """The most that all answers, or all feedback, of one client may reveal together."""

    epsilon: Number = Field(gt=0, le=1e6)
    delta: Number = Field(default=1e-6, ge=0, lt=1)


_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_LONGEST_WINDOW = 366 * 86_400
LONGEST_TTL = 30 * 86_400


def duration_seconds(text: str) -> int:
    """Return a length of time (45s, 30m, 12h, 30d, 4w) in seconds."""
    return int(text[:-1]) * _UNITS[text[-1]]


def _window_length(text: str) -> str:
    if duration_seconds(text) > _LONGEST_WINDOW:
        raise ValueError("must be at most 366d")
    return text


Window = Annotated[
    str, Field(pattern=r"^[1-9][0-9]{0,3}[hdw]$", strict=True), AfterValidator(_window_length)
]
"""A length of time: hours, days or weeks (12h, 30d, 4w), at most 366 days."""


class WindowedBudgetDocument(BudgetDocument):
    """The most that all answers, or all feedback, of one client may reveal, ever or in a window."""

    per: Window | None = Field(
        default=None,
        description="The budget is for each window of this length (12h, 30d, 4w), by the store's "
        "clock and for everybody alike. Left out: for ever.",
    )

    @property
    def seconds(self) -> int:
        """The length of a window; 0 if the budget is for ever."""
        return 0 if self.per is None else duration_seconds(self.per)


class AnswersPrivacyDocument(Document):
    """What an answer may reveal about the client it is for."""

    epsilon: Number = Field(default=0.25, gt=0, le=50, description="For one personal item.")
    budget: WindowedBudgetDocument = Field(
        default=WindowedBudgetDocument(epsilon=8.0, per="30d"),
        description="For all answers to one client, ever or in a window. When it is spent, answers "
        "are made from the released model alone.",
    )
    personal_slots: int = Field(
        default=1,
        ge=1,
        le=MOST_PERSONAL_SLOTS,
        strict=True,
        description="How many items of a list are chosen for the client, the first ones. Each "
        "costs epsilon. The rest of the list comes from the released model alone and is free.",
    )
    on_exhausted: Literal["degrade", "refuse"] = Field(
        default="degrade",
        description="degrade: answer from the released model alone; refuse: answer 403.",
    )

    @model_validator(mode="after")
    def _pays_for_one(self) -> Self:
        if self.budget.epsilon < self.epsilon:
            raise ValueError("budget.epsilon must be at least epsilon, or nothing is personalised")
        return self


class FeedbackPrivacyDocument(Document):
    """What the released models may reveal about a client's feedback."""

    epsilon: Number = Field(
        default=1.0, ge=0.001, le=50, description="For one piece of feedback, for ever."
    )
    delta: Number = Field(default=1e-6, gt=1e-12, le=0.1)
    budget: WindowedBudgetDocument = Field(
        default=WindowedBudgetDocument(epsilon=8.0, per="30d"),
        description="For all feedback of one client, ever or in a window. When it is spent, "
        "feedback is accepted and not learned from.",
    )

    @model_validator(mode="after")
    def _payable(self) -> Self:
        if self.budget.delta == 0:
            raise ValueError("budget.delta must be greater than 0: the noise is Gaussian")
        if self.budget.epsilon < self.epsilon:
            raise ValueError("budget.epsilon must be at least epsilon, or nothing is learned")
        return self


Exact = Literal["exact"]
"""Explicitly disables protection: booked as unlimited, for good."""


def _protection(value: Any) -> str:
    return "(exact)" if isinstance(value, str) else "(private)"


D = TypeVar("D", bound=Document)

OrExact = Annotated[
    Annotated[D, Tag("(private)")] | Annotated[Exact, Tag("(exact)")],
    Discriminator(_protection),
]
"""A dial, or the word that turns its protection off. Errors are about the one that was meant."""

AnswersPrivacy = OrExact[AnswersPrivacyDocument]
FeedbackPrivacy = OrExact[FeedbackPrivacyDocument]


def protection(feedback: FeedbackPrivacyDocument | Exact) -> object:
    """Return what must not change while records wait that were paid for under it."""
    return feedback if feedback == "exact" else (feedback.epsilon, feedback.delta)


class ReleasesDocument(Document):
    """When the next model is released: by the clock, and less often as time goes by.

    Every release adds noise of its own to the sums, so there should not be more of them than
    learning needs. The moment must not depend on feedback, which is private.
    """

    seconds: Number = Field(
        default=1.0, ge=0.05, le=86_400, description="At least so long between two releases,"
    )
    growth: Number = Field(
        default=0.2,
        ge=0,
        le=10,
        description="and at least this share of the recommender's age,",
    )
    longest: Number = Field(
        default=3_600.0, ge=0.05, le=30 * 86_400, description="but no longer than this."
    )

    def pause(self, age: float) -> float:
        """Return the seconds to wait after a release at this age of the recommender."""
        return max(self.seconds, min(self.growth * max(age, 0.0), self.longest))


class RecommenderDocument(Document):
    """What is common to all recommenders. `items` may be plain ids or objects."""

    item_fields: ClassVar[frozenset[str]] = frozenset()
    """Which of an item's optional fields this algorithm uses; others are refused."""

    algorithm: str
    items: list[ItemDocument] = Field(default_factory=list, max_length=MOST_ITEMS)
    ledger: str | None = Field(
        default=None,
        pattern=NAME_PATTERN,
        strict=True,
        description="Recommenders that name the same group here share each client's ledger: what "
        "one spends is spent for all. Each checks its own budget; all have the same `per` and "
        "`delta`. Left out: a ledger of its own. "
        "It is fixed for good with the recommender's name.",
    )
    decision_ttl_seconds: int = Field(
        default=86_400,
        ge=1,
        le=LONGEST_TTL,
        strict=True,
        description="How long feedback is accepted, and a retry under one event_id answered alike: "
        "that for two minutes at least.",
    )

    def fixed(self) -> Mapping[str, object]:
        """Return what cannot change without losing what was learned, by field."""
        return {"algorithm": self.algorithm, "ledger": self.ledger}

    def owners(self) -> list[str]:
        """Return who owns a slot in every vector of statistics: items, and whatever else learns."""
        return [item.id for item in self.items]

    @model_validator(mode="before")
    @classmethod
    def _plain_ids(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("items"), list):
            return {**data, "items": [_as_item(item) for item in data["items"]]}
        return data

    @model_validator(mode="after")
    def _usable_items(self) -> Self:
        ids = [item.id for item in self.items]
        if len(set(ids)) != len(ids):
            raise ValueError("items must have distinct ids")
        for position, item in enumerate(self.items):
            try:
                self.require_usable(item)
            except UnusableItem as error:
                raise ValueError(f"{error.field_at(position)}: {error}") from None
        return self

    @classmethod
    def require_usable(cls, item: ItemDocument) -> None:
        """Raise `UnusableItem` for an item with a field that this algorithm has no use for."""
        for name in ("title", "categories", "features"):
            if name not in cls.item_fields and getattr(item, name) is not None:
                (algorithm,) = get_args(cls.model_fields["algorithm"].annotation)
                raise UnusableItem(f"not supported by {algorithm}", field=name)


def _as_item(value: Any) -> Any:
    return {"id": value} if isinstance(value, str) else value
