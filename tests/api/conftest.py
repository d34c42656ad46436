"""The application over the memory store, called without a network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from discreet.api.gateway import HttpGateway
from discreet.api.routing import Live
from discreet.app import create_app
from discreet.families.p_dap.document import AdaptivePartitionDocument
from discreet.settings import Settings
from discreet.state.memory import MemoryStore
from discreet.state.stores import Store

KEY = "the-key-in-the-environment"
FILMS = {
    "algorithm": "p-dap",
    "items": ["a", "b", "c/d", "e"],
    "context": {"dimensions": 2},
    "privacy": {
        "answers": {"epsilon": 1.0, "budget": {"epsilon": 3.0, "delta": 1e-6}},
        "feedback": {"budget": {"epsilon": 8.0}},
    },
}


class Caller(httpx.AsyncClient):
    """A client of one application, with its key, and what the application's lifespan opened."""

    app: HttpGateway
    live: Live
    store: Store
    address = "127.0.0.1"
    """Where it calls from."""

    async def ask(self, client: str = "somebody", **changes: Any) -> httpx.Response:
        """Ask for a recommendation."""
        body = {"recommender": "films", "client": client, "context": [0.25, 0.75], **changes}
        return await self.post("/recommend", json=body)


@asynccontextmanager
async def calling(
    store: Store | None = None, *, key: str | None = KEY, **settings: Any
) -> AsyncIterator[Caller]:
    """Run the application, with one recommender called films, and call it."""
    held = store if store is not None else MemoryStore()
    app: HttpGateway = create_app(Settings(api_key=KEY, **settings), opening=lambda _: held)
    async with app.router.lifespan_context(app) as live:

        async def with_state(scope: Any, receive: Any, send: Any) -> None:
            called = {"state": dict(live), "client": (caller.address, 1)}
            await app({**scope, **called}, receive, send)

        registry = live["services"].registry
        if "films" not in await registry.names():
            await registry.put("films", AdaptivePartitionDocument.model_validate(FILMS))
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        transport = httpx.ASGITransport(app=with_state, raise_app_exceptions=True)
        async with Caller(transport=transport, base_url="http://test", headers=headers) as caller:
            caller.app = app
            caller.live = live
            caller.store = held
            yield caller


@pytest.fixture(scope="module")
async def caller(anyio_backend: str) -> AsyncIterator[Caller]:
    """A caller for one module: changing a recommender takes a lease's time to settle."""
    async with calling() as one:
        yield one
