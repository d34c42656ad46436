"""Recommendations that were shown after all."""

from typing import Any

from fastapi import APIRouter

from discreet.api import schemas
from discreet.api.routing import AwaitedRewards, CallerGrant, ScopedRoute, described
from discreet.families.questions import Activation

router = APIRouter(route_class=ScopedRoute, tags=["decisions"])


@router.post(
    "/activate",
    response_model=schemas.ActivationAnswer,
    **described("serve", 400, 404, 410, 413, 422, recommender_in="body"),
)
async def activate(
    rewards: AwaitedRewards, grant: CallerGrant, body: schemas.ActivationRequest
) -> Any:
    """Let a recommendation that was asked for with `activate: false` await its reward from now on.
    Repeating it is harmless: the first time counts."""
    activation = Activation(body.recommendation_id, body.event_id, grant.recommenders)
    return {"awaiting": await rewards.activate(activation)}
