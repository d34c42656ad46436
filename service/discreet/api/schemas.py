"""What callers send and get, exactly as the OpenAPI document shows it.

Numbers are numbers: neither `"0.5"` nor `true` is one. Unknown fields are refused, and every list
and string is bounded. Requests are validated from the raw bytes by these models; answers are
written without them, and tests hold the two together.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from discreet.families.documents import (
    MOST_DIMENSIONS,
    MOST_ITEMS,
    Features,
    Identifier,
    ItemDocument,
)

MOST_LIMIT = 100
MOST_BATCH = 1_000
LONGEST_TOKEN = 16_384

Unit = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
# Stopping at the first wrong number keeps a list of 100,000 of them from costing 100,000 errors.
Context = Annotated[list[Unit], Field(min_length=1, max_length=MOST_DIMENSIONS, fail_fast=True)]
Identifiers = Annotated[list[Identifier], Field(max_length=MOST_ITEMS, fail_fast=True)]
Token = Annotated[str, Field(strict=True, min_length=1, max_length=LONGEST_TOKEN)]


class Body(BaseModel):
    """A request body or a part of one."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class CandidateRequest(Body):
    """Something that may be recommended though no catalogue need hold it."""

    id: Identifier
    features: Features


def _kind(value: Any) -> str:
    return "(id)" if isinstance(value, str) else "(object)"


Candidates = Annotated[
    list[
        Annotated[
            Annotated[Identifier, Tag("(id)")] | Annotated[CandidateRequest, Tag("(object)")],
            Discriminator(_kind),
        ]
    ],
    Field(max_length=MOST_ITEMS, fail_fast=True),
]


class RecommendRequest(Body):
    """A question: what should this client see?

    Which of the optional fields mean something depends on the recommender's algorithm; one that
    means nothing is refused.
    """

    recommender: Identifier
    client: Identifier = Field(description="Whose budget pays. Kept only as a keyed digest.")
    context: Context = Field(
        default_factory=list,
        description="Numbers in [0, 1]; as many as the recommender declares (p-dap).",
    )
    limit: int = Field(default=1, strict=True, ge=1, le=MOST_LIMIT)
    exclude: Identifiers = Field(
        default_factory=list, description="Items that must not be recommended."
    )
    candidates: Candidates | None = Field(
        default=None,
        description="If given, only these items may be recommended: ids, or objects with features "
        "of their own (fclub, mirror-descent).",
    )
    features: Features | None = Field(
        default=None, description="What is known about the client (mirror-descent)."
    )
    category: Identifier | None = Field(
        default=None, description="Only items of this category (collaborative)."
    )
    round: Identifier | None = Field(
        default=None, description="Which round; without it, the client's next open one (p-rec)."
    )
    event_id: Identifier | None = Field(
        default=None,
        description="Makes a retry safe: the same request under the same id gets the same answer "
        "and is charged once.",
    )


class FeedbackRequest(Body):
    """How a recommendation was received. Give either `recommendation_id` or `event_id`."""

    reward: Unit
    recommendation_id: Token | None = None
    event_id: Identifier | None = None
    item: Identifier | None = Field(
        default=None, description="Which item it is about; required if several were recommended."
    )


class RecommendBatch(Body):
    """Up to 1,000 questions."""

    requests: list[RecommendRequest] = Field(max_length=MOST_BATCH)


class FeedbackBatch(Body):
    """Up to 1,000 pieces of feedback."""

    feedback: list[FeedbackRequest] = Field(max_length=MOST_BATCH)


class ItemsRequest(Body):
    """Items to add, as plain ids or objects; those already there take the settings given."""

    items: list[ItemDocument | Identifier] = Field(min_length=1, max_length=MOST_ITEMS)


class ItemChange(Body):
    """What can change about an item."""

    hidden: bool = Field(strict=True)


class Amount(BaseModel):
    """A privacy cost or limit. Null when the recommender protects nobody."""

    epsilon: float | None
    delta: float | None


class Privacy(BaseModel):
    """What this answer cost the client, and where their budget stands after it."""

    epsilon: float | None
    spent: Amount
    remaining: Amount


class RecommendedItem(BaseModel):
    """One recommended item. If `vendor` is there, `id` is a handle that the vendor can open."""

    id: str
    vendor: str | None = None


class RecommendAnswer(BaseModel):
    """The answer to a question."""

    recommendation_id: str
    items: list[RecommendedItem]
    personalised: bool = Field(
        description="False when the answer did not depend on the client at all, and was free."
    )
    privacy: Privacy
    round: str | None = Field(default=None, description="Whose object it is (p-rec).")
    expires_at: str = Field(
        description="Feedback is accepted until then.", examples=["2026-11-16T03:00:00Z"]
    )


class FeedbackAnswer(BaseModel):
    """Feedback was accepted; `duplicate` if it had been counted before."""

    accepted: Literal[True]
    duplicate: bool


class FieldError(BaseModel):
    """What is wrong with one field."""

    field: str
    message: str


class ProblemDocument(BaseModel):
    """An RFC 9457 problem. `type` is stable; docs/api.md lists them all."""

    type: str = Field(examples=["urn:discreet:problem:invalid-request"])
    title: str
    status: int
    detail: str
    instance: str | None = None
    errors: list[FieldError] | None = None
    retry_after: int | None = None


class FailedEntry(BaseModel):
    """An entry of a batch that was refused."""

    status: int = Field(ge=400)
    problem: ProblemDocument


class RecommendedEntry(RecommendAnswer):
    """An entry of a batch that was answered."""

    status: Literal[200]


class FeedbackEntry(FeedbackAnswer):
    """An entry of a batch that was counted."""

    status: Literal[200]


class RecommendBatchAnswer(BaseModel):
    """One result for each request, in order."""

    results: list[RecommendedEntry | FailedEntry]


class FeedbackBatchAnswer(BaseModel):
    """One result for each piece of feedback, in order."""

    results: list[FeedbackEntry | FailedEntry]


class BudgetAnswer(BaseModel):
    """How a client stands with a recommender."""

    spent: Amount
    remaining: Amount


class ErasedAnswer(BaseModel):
    """What was erased about a client. Ledgers stay, under a keyed digest."""

    events: int = Field(description="Answers that were kept for retries.")
    records: int = Field(description="Profiles, histories and the like.")


class Item(BaseModel):
    """An item of a recommender; optional fields are there if it has them."""

    id: str
    hidden: bool
    title: str | None = None
    categories: list[str] | None = None
    features: Features | None = None


class ItemChanged(BaseModel):
    """How an item stands now."""

    id: str
    hidden: bool


class ItemsAnswer(BaseModel):
    """Every item of a recommender."""

    items: list[Item]


class ForwardRequest(Body):
    """A question for another vendor's user, who is known by the cell of their context only."""

    level: int = Field(strict=True, ge=0, le=64)
    centre: Context = Field(description="The centre of the cell.")
    epsilon: float = Field(
        strict=True,
        gt=0,
        le=50,
        allow_inf_nan=False,
        description="The most that the item may tell others about the cell.",
    )
    training: bool = Field(
        strict=True, description="Feedback on it shall not enter the running sums."
    )
    stream: str = Field(
        default="",
        strict=True,
        pattern=r"^[A-Za-z0-9_-]{0,64}$",
        description="The running sum that feedback shall enter; without it, the cell's own.",
    )


class RunningSumAnswer(BaseModel):
    """A noisy running sum of rewards; `deviation` is the standard deviation of the noise."""

    releases: int
    count: int
    total: float
    deviation: float


class ForwardAnswer(BaseModel):
    """An item behind a handle. `expires_at` is in seconds since the epoch."""

    handle: str
    expires_at: int
    sums: RunningSumAnswer | None


class PeerFeedbackRequest(Body):
    """How an item behind a handle was received."""

    handle: Token
    reward: Unit


class HandleRequest(Body):
    """A handle of ours that came with another instance's recommendation."""

    handle: Token


class OpenedItem(BaseModel):
    """An item of ours."""

    id: str


class HandleAnswer(BaseModel):
    """The item behind a handle."""

    recommender: str
    item: OpenedItem
    expires_at: str = Field(examples=["2026-11-16T03:00:00Z"])


class RecommendersAnswer(BaseModel):
    """Every recommender's name."""

    recommenders: list[str]


class HealthAnswer(BaseModel):
    """All is well."""

    status: Literal["ok"]


Json = dict[str, Any]
