"""Recommenders and their items: created, shown, changed, removed. Scope: admin."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from discreet.api import schemas
from discreet.api.routing import ScopedRoute, described, live
from discreet.families.documents import NAME_PATTERN, ItemDocument
from discreet.decisions.every_document import EveryDocument
from discreet.decisions.registry import RecommenderRegistry

router = APIRouter(route_class=ScopedRoute, tags=["recommenders"])

NewName = Annotated[str, Path(pattern=NAME_PATTERN)]


def _registry(request: Request) -> RecommenderRegistry:
    return live(request)["runtime"].registry


@router.get("/recommenders", response_model=schemas.RecommendersAnswer, **described("admin"))
async def list_recommenders(request: Request) -> Any:
    """Name every recommender."""
    return {"recommenders": await _registry(request).names()}


@router.put(
    "/recommenders/{name}",
    response_model=EveryDocument,
    response_model_exclude_none=True,
    **described("admin", 400, 413, 422, created=EveryDocument),
)
async def put_recommender(
    request: Request, response: Response, name: NewName, document: EveryDocument
) -> Any:
    """Create a recommender (201) or change it (200); what was learned stays.

    Once this has been answered, every worker serves the new document.
    """
    created = await _registry(request).put(name, document)
    response.status_code = 201 if created else 200
    return await _registry(request).show(name)


@router.get(
    "/recommenders/{name}",
    response_model=EveryDocument,
    response_model_exclude_none=True,
    **described("admin", 404, 422),
)
async def show_recommender(request: Request, name: str) -> Any:
    """Show a recommender's document."""
    return await _registry(request).show(name)


@router.delete("/recommenders/{name}", status_code=204, **described("admin", 404, 422))
async def remove_recommender(request: Request, name: str) -> None:
    """Remove a recommender and everything it learned. Clients' ledgers stay."""
    await _registry(request).remove(name)
    live(request)["metrics"].removed(name)


@router.get(
    "/recommenders/{name}/items",
    response_model=schemas.ItemsAnswer,
    response_model_exclude_none=True,
    **described("admin", 404, 422),
)
async def list_items(request: Request, name: str) -> Any:
    """List a recommender's items, hidden ones too."""
    return {"items": await _registry(request).items(name)}


@router.post(
    "/recommenders/{name}/items",
    response_model=schemas.ItemsAnswer,
    response_model_exclude_none=True,
    **described("admin", 400, 404, 413, 422),
)
async def add_items(request: Request, name: str, body: schemas.ItemsRequest) -> Any:
    """Add items, or change those that are there; at once for every worker."""
    items = [ItemDocument(id=one) if isinstance(one, str) else one for one in body.items]
    await _registry(request).add_items(name, items)
    return {"items": await _registry(request).items(name)}


@router.patch(
    "/recommenders/{name}/items/{item:path}",
    response_model=schemas.ItemChanged,
    **described("admin", 400, 404, 413, 422),
)
async def change_item(request: Request, name: str, item: str, body: schemas.ItemChange) -> Any:
    """Hide an item, or show it again. It keeps what was learned about it."""
    await _registry(request).hide_item(name, item, body.hidden)
    return {"id": item, "hidden": body.hidden}


@router.delete(
    "/recommenders/{name}/items/{item:path}", status_code=204, **described("admin", 404, 422)
)
async def remove_item(request: Request, name: str, item: str) -> None:
    """Remove an item; what was learned about it is never given to another."""
    await _registry(request).remove_item(name, item)
