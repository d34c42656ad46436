"""Where another program of the same person may say what was seen: `POST /push`.

A browser extension or another device sends titles, with a key of its own that opens nothing else.
The answer says how many were received and nothing more: who holds this key can add to a history and
learns nothing about it.

The hub's own server takes it on loopback. For other devices `discreet hub --push-host` opens a
second server that has this one route and nothing else, with TLS, since a history passes through it.
"""

import hmac
import json
import os
import secrets
import stat
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from discreet.errors import InvalidArgument
from discreet.hub.folders import write_private
from discreet.hub.services import HubServices

PATH = "/push"
KEY_FILE = "push.key"
MOST_BYTES = 1 << 20
MOST_TITLES = 1_000


class PushedTitles(BaseModel):
    """What is pushed: titles, as a person would write them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    titles: list[Annotated[str, Field(min_length=1, max_length=500)]] = Field(
        min_length=1, max_length=MOST_TITLES
    )


def push_key(folder: Path) -> str:
    """Return the key for pushing, made on first use and readable by its owner alone."""
    path = folder / KEY_FILE
    if not path.exists():
        write_private(path, f"hp_{secrets.token_urlsafe(32)}\n")
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise InvalidArgument("--data", f"{path} can be read by others: chmod 600 it, or delete it")
    return path.read_text("utf-8").strip()


class PushEndpoint:
    """The route as an application of its own, so that it can stand alone on another address."""

    def __init__(self, services: HubServices, *, key: str) -> None:
        self._services = services
        self._expected = f"Bearer {key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if request.url.path != PATH:
            return _refused(404, "There is nothing here.")
        if request.method != "POST":
            return _refused(405, "Send titles with POST.")
        # The key before the body: a stranger's body is not read.
        given = request.headers.get("authorization", "").encode()
        if not hmac.compare_digest(given, self._expected):
            return _refused(401, "Send the key in push.key as Authorization: Bearer …")
        try:
            pushed = PushedTitles.model_validate(json.loads(await _body(request)))
        except _TooLarge:
            return _refused(413, "Send at most 1 MB at once.")
        except ClientDisconnect:
            return _refused(400, "The request broke off.")
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "body"
            return _refused(422, f"{where}: {first['msg']}.")
        except ValueError:
            return _refused(422, 'Send {"titles": ["…"]} as JSON.')
        await run_in_threadpool(self._services.push, pushed.titles)
        return JSONResponse({"received": len(pushed.titles)}, headers={"Cache-Control": "no-store"})


class _TooLarge(Exception):
    """A body above the limit."""


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise _TooLarge
    return bytes(body)


def _refused(status: int, detail: str) -> Response:
    return JSONResponse({"detail": detail}, status, headers={"Cache-Control": "no-store"})
