"""Recommenders and their items: created, shown, changed, removed. Scope: admin."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from discreet.api import schemas
from discreet.api.routing import Registry, ScopedRoute, described
from discreet.families.cards import GuaranteeCard
from discreet.families.documents import NAME_PATTERN, ItemDocument
from discreet.families.registration import every_document

router = APIRouter(route_class=ScopedRoute, tags=["recommenders"])

NewName = Annotated[str, Path(pattern=NAME_PATTERN)]


def documents_router() -> APIRouter:
    """Return the routes that take and show a document, of any family registered by now."""
    documents = APIRouter(route_class=ScopedRoute, tags=["recommenders"])
    every = every_document()
    # FastAPI reads the type of a body from the function; which types there are is known only now.
    put_recommender.__annotations__["document"] = every
    documents.add_api_route(
        "/recommenders/{name}",
        put_recommender,
        methods=["PUT"],
        response_model=every,
        response_model_exclude_none=True,
        **described("admin", 400, 413, 422, created=every),
    )
    documents.add_api_route(
        "/recommenders/{name}",
        show_recommender,
        methods=["GET"],
        response_model=every,
        response_model_exclude_none=True,
        **described("admin", 404, 422),
    )
    return documents


async def put_recommender(
    registry: Registry, response: Response, name: NewName, document: Any
) -> Any:
    """Create a recommender (201) or change it (200); what was learned stays.

    One that this version could not read begins anew (201).

    Once this has been answered, every worker serves the new document.
    """
    created = await registry.put(name, document, repair=True)
    response.status_code = 201 if created else 200
    return await registry.show(name)


async def show_recommender(registry: Registry, name: str) -> Any:
    """Show a recommender's document."""
    return await registry.show(name)


@router.get("/recommenders", response_model=schemas.RecommendersAnswer, **described("admin"))
async def list_recommenders(registry: Registry) -> Any:
    """List the names of all recommenders, and which of them this version cannot read."""
    unreadable = await registry.unreadable()
    return {
        "recommenders": await registry.names(),
        "unreadable": [{"name": name, "reason": why} for name, why in unreadable.items()],
    }


@router.delete("/recommenders/{name}", status_code=204, **described("admin", 404, 422))
async def remove_recommender(registry: Registry, name: str) -> None:
    """Remove a recommender and everything it learned. Clients' ledgers stay."""
    await registry.remove(name)


@router.get(
    "/recommenders/{name}/guarantee",
    response_model=GuaranteeCard,
    **described(("serve", "admin", "profile"), 404, 422),
)
async def show_guarantee(registry: Registry, name: str) -> Any:
    """Show what a recommender promises: who is protected against whom, and at what price."""
    return (await registry.find(name)).guarantee()


@router.get(
    "/recommenders/{name}/items",
    response_model=schemas.ItemsAnswer,
    response_model_exclude_none=True,
    **described("admin", 404, 422),
)
async def list_items(registry: Registry, name: str) -> Any:
    """List a recommender's items, hidden ones too."""
    return {"items": await registry.items(name)}


@router.post(
    "/recommenders/{name}/items",
    response_model=schemas.ItemsAnswer,
    response_model_exclude_none=True,
    **described("admin", 400, 404, 413, 422),
)
async def add_items(registry: Registry, name: str, body: schemas.ItemsRequest) -> Any:
    """Add items, or change those that are there; at once for every worker."""
    items = [ItemDocument(id=one) if isinstance(one, str) else one for one in body.items]
    await registry.add_items(name, items)
    return {"items": await registry.items(name)}


@router.patch(
    "/recommenders/{name}/items/{item:segment}",
    response_model=schemas.ItemChanged,
    **described("admin", 400, 404, 413, 422),
)
async def change_item(registry: Registry, name: str, item: str, body: schemas.ItemChange) -> Any:
    """Hide an item, or show it again. It keeps what was learned about it."""
    await registry.hide_item(name, item, body.hidden)
    return {"id": item, "hidden": body.hidden}


@router.delete(
    "/recommenders/{name}/items/{item:segment}", status_code=204, **described("admin", 404, 422)
)
async def remove_item(registry: Registry, name: str, item: str) -> None:
    """Remove an item; what was learned about it is never given to another."""
    await registry.remove_item(name, item)
