"""What every recommender's document has, as people write it: `PUT /recommenders/{name}`, or YAML.

Unknown fields are refused, so that a misspelt `epsilon` can never fall back to a default. Fields
carry their own limits and say what they mean; the OpenAPI document shows both. What only one
algorithm knows is in the `document` module of its package; `every_document` joins them all.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from discreet.families.items import FEW_ITEMS as FEW_ITEMS
from discreet.families.items import MOST_FEATURES as MOST_FEATURES
from discreet.families.items import MOST_ITEMS as MOST_ITEMS
from discreet.families.items import MOST_NONZEROS as MOST_NONZEROS
from discreet.families.items import Document as Document
from discreet.families.items import Features as Features
from discreet.families.items import Identifier as Identifier
from discreet.families.items import ItemDocument as ItemDocument
from discreet.families.items import Number as Number
from discreet.families.items import SparseFeatures as SparseFeatures
from discreet.families.items import UnusableItem as UnusableItem
from discreet.families.items import as_item
from discreet.families.items import list_or_object as list_or_object

MOST_DIMENSIONS = 100_000
MOST_PERSONAL_SLOTS = 100
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"


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


def _protection(value: Any) -> str | None:
    if isinstance(value, str):
        return "(exact)" if value == "exact" else None
    return "(private)"


D = TypeVar("D", bound=Document)

OrExact = Annotated[
    Annotated[D, Tag("(private)")] | Annotated[Exact, Tag("(exact)")],
    Discriminator(
        _protection,
        custom_error_type="protection",
        custom_error_message="must be an object with an epsilon and a budget, or the word exact, "
        "which turns this protection off",
    ),
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


class DecisionLogDocument(Document):
    """Writes decisions down in the clear, for `discreet evaluate`."""

    to: Literal["file", "stdout", "stream"] = Field(
        description="file: JSON lines in the server's folder for decisions; stdout: the same on "
        "standard output; stream: a stream in the store, read by `discreet decisions`."
    )
    sample: Number = Field(
        default=1.0, gt=0, le=1, description="The share of decisions that is written, by chance."
    )
    keep: Window = Field(
        default="30d",
        description="How long lines are kept in files and in the stream (12h, 30d, 4w). What "
        "collects standard output has a retention of its own.",
    )

    def reveals(self) -> str:
        """Return what the card says of it."""
        where = {
            "file": f"files of the server, for {self.keep}",
            "stdout": "standard output, kept by whatever collects it",
            "stream": f"a stream in the store, for {self.keep}",
        }[self.to]
        return (
            f"whoever reads the decision log: {self.sample:.4g} of all decisions are logged in "
            f"the clear to {where}: the context, what was shown with which probability, and the "
            "reward, under a keyed digest of the client"
        )


class RecommenderDocument(Document):
    """What is common to all recommenders. `items` may be plain ids or objects."""

    item_fields: ClassVar[frozenset[str]] = frozenset()
    """Whether this algorithm uses an item's categories or features; others are refused."""
    why_few_items: ClassVar[str] = "what is stored is read as a whole"
    """Why there may be no more items than `most_items`, for people."""

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
    log: DecisionLogDocument | None = Field(
        default=None,
        description="Write decisions and their rewards down, in the clear. Left out: nothing is.",
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
            return {**data, "items": [as_item(item) for item in data["items"]]}
        return data

    @model_validator(mode="after")
    def _usable_items(self) -> Self:
        self.require_items(self.items)
        return self

    def require_items(self, items: Sequence[ItemDocument]) -> None:
        """Raise `ValueError` if these could not be all items of this document."""
        self.require_room(len(items))
        if len({item.id for item in items}) != len(items):
            raise ValueError("items must have distinct ids")
        for position, item in enumerate(items):
            try:
                self.require_usable(item)
            except UnusableItem as error:
                raise ValueError(f"{error.field_at(position)}: {error}") from None

    def most_items(self) -> int:
        """Return how many items there may be under this document."""
        return FEW_ITEMS

    def require_room(self, count: int) -> None:
        """Raise `ValueError` if there are more items than this algorithm can serve."""
        most = self.most_items()
        if count > most:
            raise ValueError(
                f"items: {self.algorithm} holds at most {most:,} items: {self.why_few_items}"
            )

    def require_usable(self, item: ItemDocument) -> None:
        """Raise `UnusableItem` for an item with a field that this algorithm has no use for."""
        for name in ("categories", "features"):
            if name not in self.item_fields and getattr(item, name) is not None:
                raise UnusableItem(f"not supported by {self.algorithm}", field=name)
