"""What other vendors ask (scope peer), and handles opened for whoever serves the user."""

from typing import Any

from fastapi import APIRouter

from discreet.api import peers_schemas
from discreet.api.routing import CallerGrant, Forwards, Requester, ScopedRoute, described
from discreet.api.shown import moment

router = APIRouter(route_class=ScopedRoute, tags=["vendors"])


@router.post(
    "/peers/recommenders/{name}/forwards",
    response_model=peers_schemas.ForwardAnswer,
    **described("peer", 400, 404, 409, 413, 422),
)
async def forward(
    forwards: Forwards, requester: Requester, name: str, body: peers_schemas.ForwardRequest
) -> Any:
    """Choose an item for another vendor's user, and hand it out behind a handle."""
    item = await forwards.answer(
        requester=requester, recommender=name, centre=tuple(body.centre), epsilon=body.epsilon
    )
    return {"handle": item.handle, "expires_at": item.expires_at}


@router.post(
    "/peers/recommenders/{name}/feedback",
    response_model=peers_schemas.PeerFeedbackAnswer,
    **described("peer", 400, 404, 410, 413, 422),
)
async def peer_feedback(
    forwards: Forwards, requester: Requester, name: str, body: peers_schemas.PeerFeedbackRequest
) -> Any:
    """Report how an item behind a handle was received. The first report counts; the answer does
    not tell whether this one was it."""
    await forwards.record(
        requester=requester, recommender=name, handle=body.handle, reward=body.reward
    )
    return {"accepted": True}


@router.post(
    "/handles/open",
    response_model=peers_schemas.HandleAnswer,
    **described("serve", 400, 404, 410, 413, 422, recommender_in="body"),
)
async def open_handle(
    forwards: Forwards, grant: CallerGrant, body: peers_schemas.HandleRequest
) -> Any:
    """Show the item behind a handle of ours."""
    opened = await forwards.open(body.handle)
    grant.require_recommender(opened.recommender)
    return {
        "recommender": opened.recommender,
        "item": {"id": opened.item},
        "expires_at": moment(opened.expires_at),
    }
