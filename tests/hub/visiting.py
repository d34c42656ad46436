"""A visitor of the hub's own server, without a socket in between."""

import asyncio
from typing import Any

import httpx
from starlette.types import ASGIApp


class Visitor:
    """Asks one thing at a time."""

    def __init__(self, app: ASGIApp, *, home: str, headers: dict[str, str] | None = None) -> None:
        self._app = app
        self._home = home
        self._headers = headers or {}

    def request(self, method: str, path: str, **given: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app, raise_app_exceptions=False)
            headers = {**self._headers, **given.pop("headers", {})}
            async with httpx.AsyncClient(transport=transport, base_url=self._home) as client:
                return await client.request(method, path, headers=headers, **given)

        return asyncio.run(ask())

    def get(self, path: str, **given: Any) -> httpx.Response:
        return self.request("GET", path, **given)

    def post(self, path: str, **given: Any) -> httpx.Response:
        return self.request("POST", path, **given)

    def put(self, path: str, **given: Any) -> httpx.Response:
        return self.request("PUT", path, **given)

    def delete(self, path: str) -> httpx.Response:
        return self.request("DELETE", path)
