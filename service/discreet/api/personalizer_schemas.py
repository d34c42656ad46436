"""What Personalizer's callers send and get, by the names of its protocol."""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

MOST_ACTIONS = 100
LONGEST_ID = 256


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must not contain control characters")
    return text


PersonalizerId = Annotated[
    str, Field(strict=True, min_length=1, max_length=LONGEST_ID), AfterValidator(_printable)
]
NestedObjects = Annotated[list[dict[str, Any]], Field(max_length=1_000)]
"""Objects with whatever features an application has; `families.nested` reads them."""


class _Call(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, validate_by_name=False
    )


class RankableAction(_Call):
    """Something that may be ranked first."""

    id: PersonalizerId
    features: NestedObjects = Field(description="What is known about it, nested as you like.")


class RankRequest(_Call):
    """Which of these actions should come first?"""

    context_features: NestedObjects | None = Field(
        default=None,
        description="What is known about the moment and the user, nested as you like. Without the "
        "header X-Discreet-Client one of them names the user, as the document says.",
        examples=[[{"timeOfDay": "morning"}, {"user": {"id": "user-17", "device": "phone"}}]],
    )
    actions: list[RankableAction] = Field(
        min_length=1,
        max_length=MOST_ACTIONS,
        description="In the order in which they would be shown otherwise.",
        examples=[
            [
                {"id": "pastry", "features": [{"taste": "sweet", "nutrition": {"calories": 300}}]},
                {"id": "soup", "features": [{"taste": "salty", "nutrition": {"calories": 150}}]},
            ]
        ],
    )
    excluded_actions: list[PersonalizerId] | None = Field(
        default=None,
        max_length=MOST_ACTIONS,
        description="They keep their places and are never chosen.",
    )
    event_id: PersonalizerId | None = Field(
        default=None,
        description="Under which the reward will come; a retry under it gets the same answer and "
        "is charged once. Without it, one is made up.",
    )
    defer_activation: bool | None = Field(
        default=None,
        strict=True,
        description="Whether the wait for a reward begins only when the event is activated.",
    )

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        ids = {action.id for action in self.actions}
        if len(ids) != len(self.actions):
            raise ValueError("actions: must have distinct ids")
        if ids <= set(self.excluded_actions or ()):
            raise ValueError("excludedActions: must leave an action to choose")
        return self


class RewardRequest(_Call):
    """How good the chosen action was."""

    value: float = Field(
        strict=True,
        allow_inf_nan=False,
        description="In the range that the document declares; a value from -1 to 1 that is outside "
        "of it counts as its nearest end.",
    )


class RankedAction(BaseModel):
    """An action in its place."""

    id: str
    probability: float | None = Field(
        description="With which it could have come first: 0 if it was excluded, the same for all "
        "others if the answer looked at nobody, and null otherwise, for it would tell what the "
        "draw hides."
    )


class RankAnswer(BaseModel):
    """The chosen action, and the others in the order of the request."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


class InnerError(BaseModel):
    """What kind of problem it is, as elsewhere in this service (docs/api.md)."""

    code: str


class ErrorDetail(BaseModel):
    """A field, and what is wrong with it."""

    code: str
    message: str
    target: str


class ErrorContent(BaseModel):
    """What went wrong, in Personalizer's shape."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)

    code: str = Field(examples=["BadRequest"])
    message: str
    target: str | None = None
    details: list[ErrorDetail] = Field(default_factory=list)
    inner_error: InnerError


class ErrorResponse(BaseModel):
    """An error."""

    error: ErrorContent
