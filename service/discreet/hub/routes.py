"""The hub's own routes, for its own page: `/api/...` in, JSON out.

Handlers are plain functions, which the framework runs in threads: SQLite and the server are waited
for there, and the page stays quick. Only the upload is read as it comes, into a private file.
"""

import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from discreet.hub import reading, views
from discreet.hub.catalogue import LONGEST_NAME
from discreet.hub.choices import Choices
from discreet.hub.errors import HubRefusal
from discreet.hub.hub import Hub
from discreet.hub.views import Json

Text = Annotated[str, Query(max_length=LONGEST_NAME)]


class HubBody(BaseModel):
    """What the page sends. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SeenBody(HubBody):
    """An item was seen, or was not after all."""

    item: str = Field(min_length=1, max_length=LONGEST_NAME)
    seen: bool


class LimitsBody(HubBody):
    """The total's limit, and the number of changed items before another list is offered."""

    limit: float = Field(allow_inf_nan=False)
    threshold: int


class CreateBody(HubBody):
    """An agreement: the last list known, the price shown, and whether earlier than stated."""

    after: int = Field(ge=0)
    nano_epsilon: int = Field(ge=0)
    early: bool = False


def router(hub: Hub, folder: Path) -> APIRouter:
    """Return the routes of one person's hub; uploads pass through `folder`."""
    api = APIRouter(prefix="/api")

    @api.get("/state")
    def state() -> Json:
        return views.state(hub)

    @api.post("/catalogue")
    def fetch_catalogue() -> Json:
        return {"rematched": hub.fetch_catalogue(), "state": views.state(hub)}

    @api.get("/items")
    def items(search: Text = "", category: Text = "") -> Json:
        return views.search(hub, text=search, category=category)

    @api.get("/history")
    def full_history() -> Json:
        return views.full_history(hub)

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
    def choose(body: Choices) -> Json:
        hub.choose(body)
        return views.state(hub)

    @api.put("/limits")
    def limits(body: LimitsBody) -> Json:
        hub.set_limits(limit=body.limit, threshold=body.threshold)
        return views.state(hub)

    @api.post("/releases")
    def create(body: CreateBody) -> Json:
        hub.create(after=body.after, agreed=body.nano_epsilon, early=body.early)
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


async def _receive(request: Request, handle: int) -> None:
    """Write the body to a file that was made for its owner alone."""
    size = 0
    with os.fdopen(handle, "wb") as file:
        async for chunk in request.stream():
            size += len(chunk)
            if size > reading.MOST_BYTES:
                raise HubRefusal("The file is larger than 1 GB. Is it the right one?")
            file.write(chunk)
    if size == 0:
        raise HubRefusal("The file is empty.")
