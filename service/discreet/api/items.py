"""A recommender's items: listed, added, changed and removed, one by one or in bulk. Scope: admin.

Every change is made once for all workers, whatever it adds: many items in one request cost little
more than one. `POST …/items/import` takes JSON lines, keeps every line that can be used and names
every line that cannot. Sending a page again changes nothing.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from discreet.api import items_schemas as schemas
from discreet.api.bodies import parse, read_body
from discreet.api.conditions import Condition
from discreet.api.problems import Refused
from discreet.api.routing import (
    Registry,
    ScopedRoute,
    described,
    live,
    room_beside,
    slow_if_wrong,
)
from discreet.decisions import changes
from discreet.decisions.registry import RecommenderRegistry
from discreet.errors import InvalidArgument
from discreet.families.documents import ItemDocument, UnusableItem
from discreet.families.items import as_item
from discreet.families.stored import StoredDocument
from discreet.validation import explained, problems_with

router = APIRouter(route_class=ScopedRoute, tags=["items"])

MOST_LISTED = 10_000
MOST_LINES = 100_000
IMPORT_FACTOR = 16
"""How much larger a body of lines may be than any other: fewer pages, fewer changes."""
MOST_ERRORS = 100
LINES = "application/jsonl"
_ITEM = TypeAdapter(ItemDocument)


@router.get(
    "/recommenders/{name}/items",
    response_model=schemas.ItemsAnswer,
    response_model_exclude_none=True,
    **described("admin", 404, 422),
)
async def list_items(
    registry: Registry,
    name: str,
    after: Annotated[int, Query(ge=-1, description="`next` of the page before.")] = -1,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = MOST_LISTED,
) -> Any:
    """List a recommender's items, hidden ones too, in the order in which they came.

    If there are more, `next` says where to go on.
    """
    stored, _ = await registry.stored(name)
    content = await asyncio.to_thread(_page, stored, after, limit)
    return Response(content, media_type="application/json")


def _page(stored: StoredDocument, after: int, limit: int) -> bytes:
    """Return some items, by slot: another item never gets one that was removed."""
    slots, items = stored.slots, stored.document.items
    rest = sorted(
        (item for item in items if slots[item.id] > after), key=lambda item: slots[item.id]
    )
    page: dict[str, Any] = {
        "items": [item.model_dump(exclude_none=True) for item in rest[:limit]],
        "total": len(items),
    }
    if len(rest) > limit:
        page["next"] = slots[rest[limit - 1].id]
    return to_json(page)


@router.post(
    "/recommenders/{name}/items",
    response_model=schemas.ItemsChanged,
    **described("admin", 400, 404, 412, 413, 422),
)
async def add_items(
    registry: Registry, name: str, body: schemas.ItemsRequest, condition: Condition
) -> Any:
    """Add items, or replace those that are there; at once for every worker. All or none."""
    items = [ItemDocument(id=one) if isinstance(one, str) else one for one in body.items]
    made = await registry.change(name, changes.add_items(items), condition=condition)
    return _counted(made, len({item.id for item in items}))


@router.patch(
    "/recommenders/{name}/items/{item:segment}",
    response_model=schemas.ItemAnswer,
    response_model_exclude_none=True,
    **described("admin", 400, 404, 412, 413, 422),
)
async def change_item(
    registry: Registry, name: str, item: str, body: schemas.ItemChange, condition: Condition
) -> Any:
    """Hide an item, show it again, or describe it anew: a merge patch, in which null removes a
    field. It keeps what was learned about it."""
    fields = body.model_dump(exclude_unset=True)
    made = await registry.change(name, changes.change_item(item, fields), condition=condition)
    changed = next(one for one in made.after.document.items if one.id == item)
    return changed.model_dump(exclude_none=True)


@router.delete(
    "/recommenders/{name}/items/{item:segment}",
    status_code=204,
    **described("admin", 404, 412, 422),
)
async def remove_item(registry: Registry, name: str, item: str, condition: Condition) -> None:
    """Remove an item; what was learned about it is never given to another."""
    await registry.change(name, changes.remove_item(item), condition=condition)


class LinesRoute(ScopedRoute):
    """Reads JSON lines, in a thread: a hundred thousand of them would hold up other requests."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        async def handler(request: Request) -> Response:
            opened, headers = live(request), request.scope["headers"]
            async with slow_if_wrong(request):
                await self.authorise(request)
            most = IMPORT_FACTOR * opened["most_body_bytes"]
            body = await read_body(request.receive, headers, most, opened["body_room"])
            async with room_beside(opened["admission"]):
                registry = opened["services"].registry
                answer = await _import(registry, request.path_params["name"], body)
            return Response(to_json(answer), media_type="application/json")

        return handler


async def import_items(name: str) -> Any:
    """Add items, or replace those that are there, from JSON lines: an id or an object a line.

    Lines that can be used are taken, the others are named. At most 100,000 lines; send the next
    ones in another request. Sending the same lines again changes nothing.
    """


def _described() -> dict[str, Any]:
    declared = described("admin", 400, 404, 413, 422)
    lines = {"schema": {"type": "string", "description": "An id or an item a line, as JSON."}}
    declared["openapi_extra"]["requestBody"] = {"content": {LINES: lines}, "required": True}
    return declared


router.add_api_route(
    "/recommenders/{name}/items/import",
    import_items,
    methods=["POST"],
    response_model=schemas.ItemsImported,
    response_model_exclude_none=True,
    route_class_override=LinesRoute,
    **_described(),
)


async def _import(registry: RecommenderRegistry, name: str, body: bytes) -> dict[str, Any]:
    read, wrong = await asyncio.to_thread(_read_lines, body)
    numbers, items = list(read), list(read.values())
    refused: dict[int, UnusableItem] = {}
    made = await registry.change(name, changes.add_items(items, refused))
    for place, error in refused.items():
        wrong[numbers[place]] = {"field": error.field or "(line)", "message": str(error)}
    taken = {item.id for place, item in enumerate(items) if place not in refused}
    errors = [{"line": number, **wrong[number]} for number in sorted(wrong)[:MOST_ERRORS]]
    return {**_counted(made, len(taken)), "refused": len(wrong), "errors": errors}


def _read_lines(body: bytes) -> tuple[dict[int, ItemDocument], dict[int, dict[str, str]]]:
    """Return items by line, and what is wrong with the other lines."""
    lines = body.split(b"\n")
    if len(lines) > MOST_LINES + 1:
        raise InvalidArgument("body", f"at most {MOST_LINES:,} lines; send the rest in another")
    items: dict[int, ItemDocument] = {}
    wrong: dict[int, dict[str, str]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            items[number] = _ITEM.validate_python(as_item(parse(line)))
        except Refused as error:
            wrong[number] = {"field": "(line)", "message": str(error)}
        except ValidationError as error:
            wrong[number] = dict(explained(problems_with(error))[0])
    if not items and not wrong:
        raise InvalidArgument("body", "must be JSON lines: an id or an item a line")
    return items, wrong


def _counted(made: changes.ChangedRecord, sent: int) -> dict[str, int]:
    counts = changes.ItemCounts.of(made)
    return {
        "added": counts.added,
        "changed": counts.changed,
        "unchanged": sent - counts.added - counts.changed,
        "total": len(made.after.document.items),
    }
