"""The catalogue and the profiles of a collaborative recommender (scope serve)."""

from typing import Any

from fastapi import APIRouter, Request

from discreet.api.collaborative_schemas import CatalogueAnswer, ProfileAnswer, ProfileRequest
from discreet.api.routing import ScopedRoute, described, live
from discreet.families.collaborative.profiles import keep_profile
from discreet.families.collaborative.recommender import CollaborativeRecommender
from discreet.errors import UnknownRecommender

router = APIRouter(route_class=ScopedRoute, tags=["profiles"])


async def _find(request: Request, name: str) -> CollaborativeRecommender:
    found = await live(request)["runtime"].registry.find(name)
    if not isinstance(found, CollaborativeRecommender):
        raise UnknownRecommender("that recommender takes no profiles: it is not collaborative")
    return found


@router.get(
    "/recommenders/{name}/catalogue",
    response_model=CatalogueAnswer,
    **described("serve", 404, 422),
)
async def catalogue(request: Request, name: str) -> Any:
    """Show everything that may be recommended, with titles and categories."""
    found = await _find(request, name)
    return {
        "items": [
            {"id": item.id, "title": item.title, "categories": list(item.categories)}
            for item in found.listed
        ],
        "categories": list(found.categories),
    }


@router.post(
    "/recommenders/{name}/profiles",
    response_model=ProfileAnswer,
    **described("serve", 400, 404, 413, 422),
)
async def post_profile(request: Request, name: str, body: ProfileRequest) -> Any:
    """Keep a client's profile. It is used as it is sent: this recommender protects nobody."""
    found = await _find(request, name)
    count = await keep_profile(
        live(request)["runtime"],
        found,
        client=body.client,
        slots=found.slots_of(body.items),
        replace=body.replace,
    )
    return {"client": body.client, "items": count}
