"""Recommenders: created, shown, changed, removed. Scope: admin.

An answer's `ETag` names the document that it shows. With `If-Match` a change is made only if that
is still the document that stands, so that nobody overwrites what they have not seen.
"""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Response
from pydantic_core import to_json

from discreet.api import schemas
from discreet.api.conditions import Condition
from discreet.api.routing import Registry, ScopedRoute, described
from discreet.decisions import changes
from discreet.families.cards import GuaranteeCard
from discreet.families.documents import NAME_PATTERN
from discreet.families.registration import every_document
from discreet.families.stored import StoredDocument, describe

router = APIRouter(route_class=ScopedRoute, tags=["recommenders"])

NewName = Annotated[str, Path(pattern=NAME_PATTERN)]
WithItems = Annotated[bool, Query(description="Whether the answer lists the items.")]


def documents_router() -> APIRouter:
    """Return the routes that take and show a document, of any family registered by now."""
    documents = APIRouter(route_class=ScopedRoute, tags=["recommenders"])
    every = every_document()
    # FastAPI reads the type of a body from the function; which types there are is known only now.
    put_recommender.__annotations__["document"] = every
    changing: dict[str, Any] = {"response_model": every, "response_model_exclude_none": True}
    for method, endpoint, declared in (
        ("PUT", put_recommender, described("admin", 400, 412, 413, 422, created=every)),
        ("PATCH", patch_recommender, described("admin", 400, 404, 412, 413, 422)),
        ("GET", show_recommender, described("admin", 404, 422)),
    ):
        documents.add_api_route(
            "/recommenders/{name}", endpoint, methods=[method], **changing, **declared
        )
    return documents


async def put_recommender(
    registry: Registry,
    name: NewName,
    document: Any,
    condition: Condition,
    items: WithItems = True,
) -> Any:
    """Create a recommender (201) or change it (200); what was learned stays.

    Without `items` in it those that are there stay; `[]` removes them all. One that this version
    could not read begins anew (201).

    Once this has been answered, every worker serves the new document.
    """
    made = await registry.put(name, document, repair=True, condition=condition)
    return await _shown(made.after, made.tag, items=items, status=201 if made.created else 200)


async def patch_recommender(
    registry: Registry,
    name: str,
    body: Annotated[dict[str, Any], Body(examples=[{"decision_ttl_seconds": 3600}])],
    condition: Condition,
    items: WithItems = True,
) -> Any:
    """Change some fields of a recommender: a JSON merge patch (RFC 7396).

    What is not named stays, null goes back to the default, and a list is replaced as a whole. The
    result is validated like a document that was put.
    """
    made = await registry.change(name, changes.patch(body), condition=condition)
    return await _shown(made.after, made.tag, items=items)


async def show_recommender(registry: Registry, name: str, items: WithItems = True) -> Any:
    """Show a recommender's document."""
    stored, tag = await registry.stored(name)
    return await _shown(stored, tag, items=items)


async def _shown(stored: StoredDocument, tag: str, *, items: bool, status: int = 200) -> Response:
    """Answer a document; in a thread, because a large catalogue takes long."""
    content = await asyncio.to_thread(lambda: to_json(describe(stored.document, items=items)))
    headers = {"ETag": f'"{tag}"'}
    return Response(content, status, headers, media_type="application/json")


@router.get("/recommenders", response_model=schemas.RecommendersAnswer, **described("admin"))
async def list_recommenders(registry: Registry) -> Any:
    """List the names of all recommenders, and which of them this version cannot read."""
    unreadable = await registry.unreadable()
    return {
        "recommenders": await registry.names(),
        "unreadable": [{"name": name, "reason": why} for name, why in unreadable.items()],
    }


@router.delete("/recommenders/{name}", status_code=204, **described("admin", 404, 412, 422))
async def remove_recommender(registry: Registry, name: str, condition: Condition) -> None:
    """Remove a recommender and everything it learned. Clients' ledgers stay."""
    await registry.remove(name, condition=condition)


@router.get(
    "/recommenders/{name}/guarantee",
    response_model=GuaranteeCard,
    **described(("serve", "admin", "profile"), 404, 422),
)
async def show_guarantee(registry: Registry, name: str) -> Any:
    """Show what a recommender promises: who is protected against whom, and at what price."""
    return (await registry.find(name)).card()
