"""The catalogue and the profiles of a collaborative recommender (scopes serve and profile)."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from discreet.api.collaborative_schemas import (
    CatalogueAnswer,
    PopularAnswer,
    ProfileAnswer,
    ProfileRequest,
)
from discreet.api.routing import CallerGrant, ScopedRoute, described, part_of
from discreet.api.schemas import MOST_LIMIT
from discreet.families.collaborative.popularity import PopularItems
from discreet.families.collaborative.profiles import Profiles

router = APIRouter(route_class=ScopedRoute, tags=["profiles"])

RecommenderProfiles = Annotated[Profiles, part_of(Profiles)]
RecommenderPopularity = Annotated[PopularItems, part_of(PopularItems)]


@router.get(
    "/recommenders/{name}/catalogue",
    response_model=CatalogueAnswer,
    **described(("serve", "profile"), 404, 422),
)
async def catalogue(profiles: RecommenderProfiles) -> Any:
    """Show everything that may be recommended, with titles and categories."""
    items = [asdict(item) for item in profiles.listed]
    return {"items": items, "categories": profiles.categories}


@router.get(
    "/recommenders/{name}/popular",
    response_model=PopularAnswer,
    **described(("serve", "profile"), 404, 422),
)
async def popular(
    popularity: RecommenderPopularity, limit: Annotated[int, Query(ge=1, le=MOST_LIMIT)] = 40
) -> Any:
    """Show what anybody gets who has no profile: overall first, then by category. Costs nothing."""
    return {"rows": [row._asdict() for row in popularity.rows(limit)]}


@router.post(
    "/recommenders/{name}/profiles",
    response_model=ProfileAnswer,
    **described(("serve", "profile"), 400, 404, 413, 422),
)
async def post_profile(
    profiles: RecommenderProfiles, grant: CallerGrant, body: ProfileRequest
) -> Any:
    """Keep a client's profile. It is used as it is sent: make it private before, on the device."""
    grant.require_client(body.client)
    count = await profiles.keep(client=body.client, items=body.items, replace=body.replace)
    return {"client": body.client, "items": count}
