"""What other instances ask (scope peer), and handles opened for whoever serves the user."""

from typing import Any

from fastapi import APIRouter, Request

from discreet.families.p_dap.forwarding import Forward
from discreet.api import schemas
from discreet.api.routing import ScopedRoute, described, live
from discreet.api.security import bearer
from discreet.api.shown import moment
from discreet.families.p_dap.forwards import answer_forward, hear_feedback, open_handle
from discreet.errors import NotAllowed

router = APIRouter(route_class=ScopedRoute, tags=["vendors"])


async def requester_of(request: Request) -> str:
    """Return how the calling instance is known here: by the label of its key."""
    label = await live(request)["runtime"].keys.label_of(bearer(request.scope["headers"]))
    if label is None:
        raise NotAllowed("other instances need a key of their own: `discreet keys create`")
    return label


@router.post(
    "/peers/recommenders/{name}/forwards",
    response_model=schemas.ForwardAnswer,
    **described("peer", 400, 404, 409, 413, 422),
)
async def forward(request: Request, name: str, body: schemas.ForwardRequest) -> Any:
    """Choose an item for another vendor's user, and hand it out behind a handle."""
    answer = await answer_forward(
        live(request)["runtime"],
        requester=await requester_of(request),
        forward=Forward(
            recommender=name,
            level=body.level,
            centre=tuple(body.centre),
            epsilon=body.epsilon,
            training=body.training,
            stream=body.stream,
        ),
    )
    sums = answer.sums
    return {
        "handle": answer.handle,
        "expires_at": answer.expires_at,
        "sums": None
        if sums is None
        else {
            "releases": sums.releases,
            "count": sums.count,
            "total": sums.total,
            "deviation": sums.deviation,
        },
    }


@router.post(
    "/peers/recommenders/{name}/feedback",
    response_model=schemas.FeedbackAnswer,
    **described("peer", 400, 404, 409, 410, 413, 422),
)
async def peer_feedback(request: Request, name: str, body: schemas.PeerFeedbackRequest) -> Any:
    """Say how an item behind a handle was received. Repeating it is harmless."""
    receipt = await hear_feedback(
        live(request)["runtime"],
        requester=await requester_of(request),
        recommender=name,
        handle=body.handle,
        reward=body.reward,
    )
    return {"accepted": True, "duplicate": receipt.duplicate}


@router.post(
    "/handles/open",
    response_model=schemas.HandleAnswer,
    **described("serve", 400, 404, 410, 413, 422),
)
async def open_one(request: Request, body: schemas.HandleRequest) -> Any:
    """Show the item behind a handle of ours."""
    opened = await open_handle(live(request)["runtime"], handle=body.handle)
    return {
        "recommender": opened.recommender,
        "item": {"id": opened.item},
        "expires_at": moment(opened.expires_at),
    }
