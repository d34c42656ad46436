"""What vendors send and get."""

from pydantic import BaseModel, Field

from discreet.api.schemas import Body, ContextVector, Token, Unit


class ForwardRequest(Body):
    """A request for another vendor's user, who is known by the middle of a cell only."""

    centre: ContextVector = Field(description="The middle of the cell.")
    epsilon: float = Field(
        strict=True,
        gt=0,
        le=50,
        allow_inf_nan=False,
        description="The most that the item may reveal about the cell.",
    )


class ForwardAnswer(BaseModel):
    """An item behind a handle. `expires_at` is in seconds since the epoch."""

    handle: str
    expires_at: int


class PeerFeedbackRequest(Body):
    """How an item behind a handle was received."""

    handle: Token
    reward: Unit


class PeerFeedbackAnswer(BaseModel):
    """Feedback was taken: the same whatever was counted before."""

    accepted: bool


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
