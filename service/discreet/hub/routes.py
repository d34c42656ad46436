"""The hub's own routes, for its own page: `/api/services/{name}/...` in, JSON out.

Handlers are plain functions, which the framework runs in threads: SQLite and the server are waited
for there, and the page stays quick. Only the upload is read as it comes, into a private file.
"""

import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from discreet.hub import reading, views
from discreet.hub.catalogue import LONGEST_NAME
from discreet.hub.choices import Choices
from discreet.hub.errors import HubRefusal
from discreet.hub.hub import CatalogueUpdate
from discreet.hub.services import HubServices
from discreet.hub.views import Json

Text = Annotated[str, Query(max_length=LONGEST_NAME)]
ServiceName = Annotated[str, InPath(max_length=64)]


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


class OfferBody(HubBody):
    """An agreement to the offered catalogue whose difference was shown, or a refusal of it."""

    digest: str = Field(max_length=64)
    accept: bool


def router(services: HubServices, folder: Path) -> APIRouter:
    """Return the routes of one person's hub; uploads pass through `folder`."""
    api = APIRouter(prefix="/api/services")

    @api.get("")
    def listed() -> Json:
        return views.services(services)

    @api.get("/{name}/state")
    def state(name: ServiceName) -> Json:
        return views.state(services.service(name))

    @api.post("/{name}/catalogue")
    def fetch_catalogue(name: ServiceName) -> Json:
        update = services.fetch_catalogue(name)
        return {**asdict(update), "state": views.state(services.service(name))}

    @api.post("/{name}/catalogue/offer")
    def decide_offer(name: ServiceName, body: OfferBody) -> Json:
        update = CatalogueUpdate(0)
        if body.accept:
            update = services.accept_catalogue(name, body.digest)
        else:
            services.service(name).refuse_catalogue()
        return {**asdict(update), "state": views.state(services.service(name))}

    @api.delete("/{name}/pins")
    def reset_pins(name: ServiceName) -> Json:
        services.service(name).reset_pins()
        return views.state(services.service(name))

    @api.get("/{name}/items")
    def items(name: ServiceName, search: Text = "", category: Text = "") -> Json:
        return views.search(services.service(name), text=search, category=category)

    @api.get("/{name}/history")
    def full_history(name: ServiceName) -> Json:
        return views.full_history(services.service(name))

    @api.post("/{name}/history")
    def see(name: ServiceName, body: SeenBody) -> Json:
        if body.seen:
            services.see(name, body.item)
        else:
            services.unsee(name, body.item)
        return views.state(services.service(name))

    @api.delete("/{name}/history")
    def erase(name: ServiceName) -> Json:
        services.erase_history()
        return views.state(services.service(name))

    @api.post("/{name}/import")
    async def import_file(name: ServiceName, request: Request) -> Json:
        hub = services.service(name)
        handle, path = tempfile.mkstemp(prefix="upload-", dir=folder)
        try:
            await _receive(request, handle)
            imported = await run_in_threadpool(services.import_file, name, Path(path))
            return {**asdict(imported), "state": await run_in_threadpool(views.state, hub)}
        finally:
            await run_in_threadpool(os.unlink, path)

    @api.put("/{name}/choices")
    def choose(name: ServiceName, body: Choices) -> Json:
        hub = services.service(name)
        hub.choose(body)
        return views.state(hub)

    @api.put("/{name}/limits")
    def limits(name: ServiceName, body: LimitsBody) -> Json:
        hub = services.service(name)
        hub.set_limits(limit=body.limit, threshold=body.threshold)
        return views.state(hub)

    @api.post("/{name}/releases")
    def create(name: ServiceName, body: CreateBody) -> Json:
        hub = services.service(name)
        hub.create(after=body.after, agreed=body.nano_epsilon, early=body.early)
        return views.state(hub)

    @api.post("/{name}/releases/{number}/send")
    def send(name: ServiceName, number: int) -> Json:
        hub = services.service(name)
        hub.send(number)
        return views.state(hub)

    @api.post("/{name}/client")
    def replace_client(name: ServiceName) -> Json:
        hub = services.service(name)
        return {**asdict(hub.replace_client()), "state": views.state(hub)}

    @api.post("/{name}/recommendations")
    def recommend(name: ServiceName) -> Json:
        return views.rows(services.service(name).recommend())

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
