"""What a recommender is, as people write it: the body of `PUT /recommenders/{name}`, or YAML.

Unknown fields are refused, so that a misspelt `epsilon` can never fall back to a default. Fields
carry their own limits and say what they mean; the OpenAPI document shows both.
"""

from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

MOST_ITEMS = 10_000
MOST_DIMENSIONS = 100_000
MOST_VENDORS = 16
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


class Document(BaseModel):
    """A part of a recommender's document."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ItemDocument(Document):
    """Something that can be recommended."""

    id: Identifier
    hidden: bool = Field(
        default=False, description="Hidden items keep what was learned but are not recommended."
    )


class ContextDocument(Document):
    """The shape of what callers tell about a client."""

    dimensions: int = Field(
        ge=1, le=MOST_DIMENSIONS, strict=True, description="Numbers in [0, 1] per request."
    )


class PartitionDocument(Document):
    """How the context space is divided into cells.

    A cell of level l splits into segments**dimensions smaller ones once it has seen
    base * segments**(growth * l) observations.
    """

    segments: int = Field(default=2, ge=2, le=16, strict=True)
    base: Number = Field(default=100.0, ge=1, le=1e12)
    growth: Number = Field(default=1.0, gt=0, le=16)
    similarity: Number = Field(
        default=0.5,
        gt=0,
        le=4,
        description="In geometric mode epsilon grows with depth l as segments**(similarity * l).",
    )


class ExplorationDocument(Document):
    """Answers drawn without looking at the context, so that new items get a chance. Free."""

    rate: Number = Field(default=0.02, ge=0, le=1)


class BudgetDocument(Document):
    """The most that all answers together may tell about one client."""

    epsilon: Number = Field(gt=0, le=1e6)
    delta: Number = Field(default=0.0, ge=0, lt=1)


def _vendor_url(text: str) -> str:
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


class VendorDocument(Document):
    """Another instance whose items may be recommended here.

    The key for it is a secret, and therefore no part of this document.
    """

    name: str = Field(pattern=NAME_PATTERN, strict=True)
    url: Annotated[
        str, Field(min_length=1, max_length=500, strict=True), AfterValidator(_vendor_url)
    ]


class VendorPrivacyDocument(Document):
    """What other vendors may learn about the rewards that our items earned with their users."""

    epsilon: Number = Field(
        default=1.0, ge=0.001, le=50, description="For one reward, over all running sums."
    )
    budget: Number = Field(
        default=4.0,
        gt=0,
        le=1e6,
        description="For one reward, over all changes of epsilon. Once it is spent no sums are "
        "told any more.",
    )


class PrivacyDocument(Document):
    """What each answer may tell about a context, and all of them together about a client."""

    epsilon: Number = Field(default=1.0, gt=0, le=50, description="For one recommended item.")
    mode: Literal["uniform", "geometric", "none"] = Field(
        default="uniform",
        description="geometric: finer cells get a larger epsilon, and the largest is charged; "
        "none: no protection at all, said aloud.",
    )
    vendor_share: Number = Field(
        default=0.5,
        gt=0,
        lt=1,
        description="The part of epsilon that a vendor's own choice may use; only when there are "
        "vendors to ask.",
    )
    budget: BudgetDocument = BudgetDocument(epsilon=20.0, delta=1e-6)
    accounting: Literal["basic", "zcdp"] = "basic"
    on_exhausted: Literal["degrade", "refuse"] = Field(
        default="degrade",
        description="degrade: keep answering, from a distribution that ignores the client; "
        "refuse: answer 403.",
    )

    @model_validator(mode="after")
    def _zcdp_needs_delta(self) -> Self:
        if self.accounting == "zcdp" and self.budget.delta == 0:
            raise ValueError(
                "budget.delta must be greater than 0 with zcdp accounting: "
                "it proves (epsilon, delta) guarantees only"
            )
        return self


def _as_item(value: Any) -> Any:
    return {"id": value} if isinstance(value, str) else value


class RecommenderDocument(Document):
    """A recommender. `items` may be plain ids or objects."""

    algorithm: Literal["p-dap"]
    items: list[ItemDocument] = Field(default_factory=list, max_length=MOST_ITEMS)
    context: ContextDocument
    partition: PartitionDocument = PartitionDocument()
    exploration: ExplorationDocument = ExplorationDocument()
    privacy: PrivacyDocument = PrivacyDocument()
    vendors: list[VendorDocument] = Field(
        default_factory=list,
        max_length=MOST_VENDORS,
        description="Other instances that are asked for items, when they promise more than ours.",
    )
    vendor_privacy: VendorPrivacyDocument = VendorPrivacyDocument()
    decision_ttl_seconds: int = Field(
        default=86_400,
        ge=1,
        le=30 * 86_400,
        strict=True,
        description="How long feedback is accepted, and a retry under one event_id answered alike.",
    )

    @model_validator(mode="before")
    @classmethod
    def _plain_ids(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("items"), list):
            return {**data, "items": [_as_item(item) for item in data["items"]]}
        return data

    @model_validator(mode="after")
    def _distinct_items(self) -> Self:
        ids = [item.id for item in self.items]
        if len(set(ids)) != len(ids):
            raise ValueError("items must have distinct ids")
        names = [vendor.name for vendor in self.vendors]
        if len(set(names)) != len(names):
            raise ValueError("vendors must have distinct names")
        return self
