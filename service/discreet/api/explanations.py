"""What the released model thinks of a context: utilities, shortlist, odds, price. Scope: admin."""

from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from discreet.api.direct import sparse_or_dense
from discreet.api.routing import Explained, ScopedRoute, described
from discreet.api.schemas import Body, Context, Identifiers
from discreet.decisions.explanations import as_epsilon
from discreet.families.documents import Features, Identifier
from discreet.families.questions import Ask

router = APIRouter(route_class=ScopedRoute, tags=["recommenders"])

MOST_EXPLAINED = 1_000


class ExplainRequest(Body):
    """A question as it would be asked, and how many items to tell about."""

    client: Identifier | None = Field(
        default=None,
        description="Whose own sums are looked at (fclub), and booked with an unlimited release, "
        "for good. Refused where an answer depends on nothing but the question.",
    )
    context: Context = Field(default_factory=list)
    features: Features | None = None
    exclude: Identifiers = Field(default_factory=list)
    candidates: Identifiers | None = None
    most: int = Field(default=20, strict=True, ge=1, le=MOST_EXPLAINED)


class ExplainedItemAnswer(BaseModel):
    """What the model thinks of one item."""

    id: str
    utility: float = Field(description="What it is worth to this visitor, by the model's measure.")
    shortlisted: bool | None = Field(
        description="Whether it is one of those that a personal draw chooses from; null where the "
        "algorithm has no shortlist."
    )
    odds: float = Field(description="The probability that it is answered first;")
    odds_unpaid: float = Field(description="the same once the client's budget is spent.")


class ExplainAnswer(BaseModel):
    """What an answer would be drawn from. Not protected: it is for the administrator's eyes."""

    protected: Literal[False]
    booked: bool = Field(description="Whether a client was booked with an unlimited release.")
    release: int = Field(description="Number of the model; 0 has learned nothing yet.")
    price: float | None = Field(
        description="The epsilon that an answer of one item costs; null if it is not protected."
    )
    items: list[ExplainedItemAnswer] = Field(description="The likeliest first.")


@router.post(
    "/recommenders/{name}/explain",
    response_model=ExplainAnswer,
    **described("admin", 400, 404, 413, 422),
)
async def explain(explanations: Explained, name: str, body: ExplainRequest) -> Any:
    """Tell what the released model thinks of a question. Not protected; see `client`.

    Without a client it is made from the released model and from what is sent alone: nothing is
    booked. `collaborative` and `p-rec` have no such model, and are a 404.
    """
    ask = Ask(
        name,
        "",
        body.context,
        exclude=body.exclude,
        candidates=body.candidates,
        features=None if body.features is None else sparse_or_dense(body.features),
    )
    found = await explanations.explain(ask, client=body.client, most=body.most)
    return {
        "protected": False,
        "booked": found.booked,
        "release": found.release,
        "price": as_epsilon(found.price),
        "items": found.items,
    }
