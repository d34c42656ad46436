"""What callers send and get, exactly as the OpenAPI document shows it.

Numbers are numbers: neither `"0.5"` nor `true` is one. Unknown fields are refused, and every list
and string is bounded. Requests are validated from the raw bytes by these models; answers are
written without them, and tests hold the two together.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, WithJsonSchema

from discreet.families.contexts import LONGEST_CATEGORY, MOST_FIELDS
from discreet.families.documents import (
    FEW_ITEMS,
    MOST_DIMENSIONS,
    Features,
    Identifier,
    Number,
    list_or_object,
)

MOST_LIMIT = 100
MOST_BATCH = 1_000
LONGEST_TOKEN = 16_384

Unit = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
# Stopping at the first wrong number keeps a list of 100,000 of them from costing 100,000 errors.
ContextVector = Annotated[
    list[Unit], Field(min_length=1, max_length=MOST_DIMENSIONS, fail_fast=True)
]
# Which type a value must have, the recommender's document says; its reader looks at each of them.
ContextValue = Annotated[
    Any,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number"},
                {"type": "string", "maxLength": LONGEST_CATEGORY},
                {"type": "boolean"},
                {"type": "null"},
            ]
        }
    ),
]
ContextFields = Annotated[dict[str, ContextValue], Field(max_length=MOST_FIELDS)]


def _list_or_object_only(value: Any) -> str | None:
    return list_or_object(value) if isinstance(value, list | dict) else None


Context = Annotated[
    Annotated[ContextVector, Tag("(list)")] | Annotated[ContextFields, Tag("(object)")],
    Discriminator(
        _list_or_object_only,
        custom_error_type="context_type",
        custom_error_message="must be a list of numbers from 0 to 1, or an object with the fields "
        "that the recommender declares; leave it out if nothing is known",
    ),
]
Identifiers = Annotated[list[Identifier], Field(max_length=FEW_ITEMS, fail_fast=True)]
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
    Field(max_length=FEW_ITEMS, fail_fast=True),
]


class RecommendRequest(Body):
    """What should this client see?

    Which optional fields are used depends on the recommender's algorithm; one that is not used is
    refused.
    """

    recommender: Identifier
    client: Identifier = Field(description="Whose budget pays. Stored only as a keyed digest.")
    context: Context = Field(
        default_factory=list,
        description="What is known about the client, as the recommender's document declares it: "
        "so many numbers in [0, 1], or values by name, of which any that are not required may be "
        "missing or null (contextual, p-dap).",
        examples=[[0.2, 0.7], {"age": 31, "country": "CH", "member": True}],
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
    items: Literal["ids", "full"] = Field(
        default="ids",
        description="What is answered of each item: its id, or also its title, attributes and "
        "categories.",
    )
    event_id: Identifier | None = Field(
        default=None,
        description="Makes a retry safe: the same request under the same id gets the same answer "
        "and is charged once.",
    )
    activate: bool = Field(
        default=True,
        strict=True,
        description="False: the answer may not be shown. It awaits a reward only once POST "
        "/activate says that it was (only where the document has reward.wait).",
    )


class FeedbackRequest(Body):
    """How a recommendation was received. Give either `recommendation_id` or `event_id`."""

    reward: Number = Field(
        description="In the range that the recommender's document declares: [0, 1] unless it says "
        "otherwise (reward.range).",
        examples=[1],
    )
    recommendation_id: Token | None = None
    event_id: Identifier | None = None
    item: Identifier | None = Field(
        default=None, description="Which item it is about; required if several were recommended."
    )


class ActivationRequest(Body):
    """A recommendation that was shown after all. Give `recommendation_id` or `event_id`."""

    recommendation_id: Token | None = None
    event_id: Identifier | None = None


class ActivationAnswer(BaseModel):
    """Whether the recommendation awaits a reward now."""

    awaiting: bool = Field(
        description="False if as many await one as may: without feedback it counts as nothing."
    )


class RecommendBatch(Body):
    """Up to 1,000 requests."""

    requests: list[RecommendRequest] = Field(max_length=MOST_BATCH)


class FeedbackBatch(Body):
    """Up to 1,000 pieces of feedback."""

    feedback: list[FeedbackRequest] = Field(max_length=MOST_BATCH)


class PrivacyAmount(BaseModel):
    """A privacy cost or limit. Null where nothing is protected."""

    epsilon: float | None
    delta: float | None


class AnswerPrivacy(BaseModel):
    """What this answer cost the client, and what is left of their budget for answers."""

    epsilon: float | None = Field(description="Null where the answer is not protected.")
    spent: PrivacyAmount
    remaining: PrivacyAmount
    resets_at: str | None = Field(
        default=None,
        description="When the budget's window ends, the same for everybody; left out if the "
        "budget is for ever.",
    )


class RecommendedItem(BaseModel):
    """One recommended item. If `vendor` is there, `id` is a handle that the vendor can open."""

    id: str
    vendor: str | None = None
    title: str | None = Field(default=None, description="This and the next two if asked for.")
    attributes: dict[str, Any] | None = None
    categories: list[str] | None = None


class RecommendAnswer(BaseModel):
    """The answer to a question."""

    recommendation_id: str
    items: list[RecommendedItem]
    personalised: bool = Field(
        description="False when the answer did not depend on the client at all, and was free."
    )
    privacy: AnswerPrivacy
    round: str | None = Field(default=None, description="The round of the item (p-rec).")
    reason: str | None = Field(
        default=None, description="Why the answer is not personalised, or not protected."
    )
    expires_at: str = Field(
        description="Feedback is accepted until then.", examples=["2026-11-16T03:00:00Z"]
    )
    awaiting: bool | None = Field(
        default=None,
        description="Whether it counts as the default if no feedback comes until then; left out "
        "where the document has no reward.wait.",
    )


class FeedbackAnswer(BaseModel):
    """Feedback was accepted."""

    accepted: Literal[True]
    duplicate: bool = Field(description="The same reward had been counted before.")
    learned: bool | None = Field(
        description="False when the client's budget for feedback is spent: nothing was learned. "
        "Null where the document has reward.wait: it is learned from at `expires_at`."
    )


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
    event_id: str | None = Field(
        default=None, description="of a 503: a retry under this event id is not debited again"
    )


class RefusedEntry(BaseModel):
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

    results: list[RecommendedEntry | RefusedEntry]


class FeedbackBatchAnswer(BaseModel):
    """One result for each piece of feedback, in order."""

    results: list[FeedbackEntry | RefusedEntry]


class AccountAnswer(BaseModel):
    """What one account has spent, and what is left of its budget."""

    spent: PrivacyAmount
    remaining: PrivacyAmount
    resets_at: str | None = Field(
        default=None,
        description="When the budget's window ends, the same for everybody; left out if the "
        "budget is for ever.",
    )


class BudgetAnswer(BaseModel):
    """A client's two accounts with a recommender."""

    answers: AccountAnswer
    feedback: AccountAnswer


class ErasedAnswer(BaseModel):
    """What was erased about a client, and a sealed certificate of it."""

    events: int = Field(description="Answers that were kept for retries.")
    records: int = Field(description="Profiles, histories and the like.")
    certificate: dict[str, Any] = Field(
        description="What was erased, by kind and recommender, when, and what remains and why. "
        "The service keeps no copy."
    )
    seal: str = Field(description="Proves to `POST /erasures/verify` that this service made it.")


class ErasureProof(BaseModel):
    """A certificate of an erasure, as it was answered, with its seal."""

    certificate: dict[str, Any]
    seal: str = Field(max_length=128)


class VerifiedAnswer(BaseModel):
    """Whether a certificate is this service's, unchanged."""

    valid: bool


class UnreadableRecommender(BaseModel):
    """A recommender that this version cannot read and does not serve."""

    name: str
    reason: str


class RecommendersAnswer(BaseModel):
    """Every recommender's name; those that this version cannot read are listed with the reason."""

    recommenders: list[str]
    unreadable: list[UnreadableRecommender] = []


class HealthAnswer(BaseModel):
    """All is well, but for so many recommenders that cannot be read, if there are any."""

    status: Literal["ok"]
    unreadable: int | None = None
