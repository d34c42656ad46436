"""The catalogue and the profiles of a collaborative recommender (scope serve)."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter

from discreet.api.collaborative_schemas import CatalogueAnswer, ProfileAnswer, ProfileRequest
from discreet.api.routing import ScopedRoute, described, part_of
from discreet.families.collaborative.profiles import Profiles

router = APIRouter(route_class=ScopedRoute, tags=["profiles"])

RecommenderProfiles = Annotated[Profiles, part_of(Profiles)]


@router.get(
    "/recommenders/{name}/catalogue",
    response_model=CatalogueAnswer,
    **described("serve", 404, 422),
)
async def catalogue(profiles: RecommenderProfiles) -> Any:
    """Show everything that may be recommended, with titles and categories."""
    items = [asdict(item) for item in profiles.listed]
    return {"items": items, "categories": profiles.categories}


@router.post(
    "/recommenders/{name}/profiles",
    response_model=ProfileAnswer,
    **described("serve", 400, 404, 413, 422),
)
async def post_profile(profiles: RecommenderProfiles, body: ProfileRequest) -> Any:
    """Keep a client's profile. It is used as it is sent: make it private before, on the device."""
    count = await profiles.keep(client=body.client, items=body.items, replace=body.replace)
    return {"client": body.client, "items": count}
