"""The hub's own routes, for its own page: `/api/...` in, JSON out.

Handlers are plain functions, which the framework runs in threads: SQLite and the server are waited
for there, and the page stays quick. Only the upload is read as it comes, into a private file.
"""

import os
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from discreet.hub import reading, views
from discreet.hub.hub import Hub
from discreet.hub.refusals import Refused
from discreet.hub.schemas import ChoicesBody, DrawBody, LimitsBody, SeenBody

Json = dict[str, Any]

INDEX = "index.html"
MEDIA_TYPES = {
    INDEX: "text/html; charset=utf-8",
    "hub.css": "text/css; charset=utf-8",
    "hub.js": "text/javascript; charset=utf-8",
    "calls.js": "text/javascript; charset=utf-8",
    "elements.js": "text/javascript; charset=utf-8",
    "history.js": "text/javascript; charset=utf-8",
    "choices.js": "text/javascript; charset=utf-8",
    "release.js": "text/javascript; charset=utf-8",
    "rows.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


def router(hub: Hub, folder: Path) -> APIRouter:
    """Return the routes of one person's hub; uploads pass through `folder`."""
    api = APIRouter(prefix="/api")

    @api.get("/state")
    def state() -> Json:
        return views.state(hub)

    @api.post("/catalogue")
    def fetch_catalogue() -> Json:
        rematched = hub.fetch_catalogue()
        return {"rematched": rematched, "state": views.state(hub)}

    @api.get("/items")
    def items(
        search: str = Query("", max_length=200), category: str = Query("", max_length=200)
    ) -> Json:
        return views.shelf(hub, search=search, category=category)

    @api.get("/history")
    def diary() -> Json:
        return views.diary(hub)

    @api.post("/history")
    def see(body: SeenBody) -> Json:
        if body.seen:
            hub.see(body.item)
        else:
            hub.unsee(body.item)
        return views.state(hub)

    @api.delete("/history")
    def erase() -> Json:
        hub.erase_history()
        return views.state(hub)

    @api.post("/import")
    async def import_file(request: Request) -> Json:
        handle, name = tempfile.mkstemp(prefix="upload-", dir=folder)
        try:
            await _receive(request, handle)
            imported = await run_in_threadpool(hub.import_file, Path(name))
            return {**asdict(imported), "state": await run_in_threadpool(views.state, hub)}
        finally:
            await run_in_threadpool(os.unlink, name)

    @api.put("/choices")
    def choose(body: ChoicesBody) -> Json:
        hub.choose(body.choices())
        return views.state(hub)

    @api.put("/limits")
    def limits(body: LimitsBody) -> Json:
        hub.set_limits(limit=body.limit, threshold=body.threshold)
        return views.state(hub)

    @api.post("/releases")
    def draw(body: DrawBody) -> Json:
        hub.draw(after=body.after, agreed=body.nano_epsilon, early=body.early)
        return views.state(hub)

    @api.post("/releases/{number}/send")
    def send(number: int) -> Json:
        hub.send(number)
        return views.state(hub)

    @api.post("/client")
    def replace_client() -> Json:
        return {**asdict(hub.replace_client()), "state": views.state(hub)}

    @api.post("/recommendations")
    def recommend() -> Json:
        return views.rows(hub.recommend())

    return api


def pages() -> APIRouter:
    """Return the routes of the page and its parts, which show nothing by themselves."""
    parts = APIRouter()
    for name in MEDIA_TYPES:
        parts.add_route("/" if name == INDEX else f"/page/{name}", _serve(name), methods=["GET"])
    return parts


def _serve(name: str) -> Callable[[Request], Awaitable[Response]]:
    body = (files(__package__) / "page" / name).read_bytes()

    async def part(request: Request) -> Response:
        return Response(body, media_type=MEDIA_TYPES[name])

    return part


async def _receive(request: Request, handle: int) -> None:
    """Write the body to a file that was made for its owner alone."""
    size = 0
    with os.fdopen(handle, "wb") as file:
        async for chunk in request.stream():
            size += len(chunk)
            if size > reading.MOST_BYTES:
                raise Refused("The file is larger than 1 GB. Is it the right one?")
            file.write(chunk)
    if size == 0:
        raise Refused("The file is empty.")
