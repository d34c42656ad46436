"""Routes that say who may call them, and read their bodies the strict way.

Every route declares its scope in the OpenAPI document (`x-scope`); one that does not cannot be
made. So what is documented and what is enforced are the same line.
"""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypedDict

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from discreet.api.bodies import parse, read_body
from discreet.api.problems import CONTENT_TYPE
from discreet.api.security import authorise
from discreet.decisions.runtime import Runtime
from discreet.metrics import Metrics

BEARER = "ApiKey"
_BODIES = frozenset({"POST", "PUT", "PATCH"})


class Live(TypedDict):
    """What the lifespan opens, and every request finds in `scope["state"]`."""

    runtime: Runtime
    metrics: Metrics
    most_body_bytes: int


def live(request: Request) -> Live:
    """Return what the lifespan opened."""
    return request.scope["state"]  # type: ignore[no-any-return]


def described(scope: str | None, *statuses: int, created: Any = None) -> dict[str, Any]:
    """Return what a route's declaration says about its scope, its problems, and a 201.

    `created` is a model, or a union of several.
    """
    codes = set(statuses) | {500}
    extra: dict[str, Any] = {"x-scope": scope}
    if scope is not None:
        extra["security"] = [{BEARER: []}]
        codes |= {401, 403, 503}
    responses = {code: _problem_response(code) for code in sorted(codes)}
    if created is not None:
        responses[201] = {"model": created, "description": "Created"}
    return {"openapi_extra": extra, "responses": responses}


def _problem_response(status: int) -> dict[str, Any]:
    descriptions = {
        400: "A body, or a recommendation id, that cannot be read",
        401: "No key, or an unknown one",
        403: "The key lacks the scope, or the budget is spent and the recommender refuses",
        404: "There is no such thing",
        409: "It contradicts what is already there",
        410: "The recommendation has expired",
        413: "The body is too large",
        422: "Fields that cannot be used, each named",
        500: "Something went wrong on our side",
        503: "The store did not answer: nothing was released or counted",
    }
    return {
        "description": descriptions[status],
        "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
    }


class ScopedRoute(APIRoute):
    """A FastAPI route that authorises first and then reads a bounded body."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self.scope: str | None = options["openapi_extra"]["x-scope"]
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        required = self.scope

        async def handler(request: Request) -> Response:
            opened = live(request)
            if required is not None:
                await authorise(opened["runtime"], request.scope["headers"], required)
            if request.method in _BODIES:
                request = await _with_checked_body(request, opened["most_body_bytes"])
            return await handle(request)

        return handler


async def _with_checked_body(request: Request, most: int) -> Request:
    body = await read_body(request.receive, request.scope["headers"], most)
    parse(body)

    async def replay() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    # It is JSON, whatever it was called: FastAPI looks at the name.
    headers = [pair for pair in request.scope["headers"] if pair[0] != b"content-type"]
    headers.append((b"content-type", b"application/json"))
    return Request({**request.scope, "headers": headers}, replay)


Answering = Callable[[Runtime, bytes], Awaitable[bytes]]
"""From a body's bytes to the answer's bytes; whatever it raises becomes a problem."""


class DirectRoute(APIRoute):
    """A route declared for the OpenAPI document and answered without FastAPI.

    Dependencies, response models and middleware cost more than the decision itself. The endpoint
    function only carries the declaration; the gateway finds `answer` by method and path.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self.scope: str = options["openapi_extra"]["x-scope"]
        self.answer: Answering = endpoint.answer  # type: ignore[attr-defined]
        super().__init__(path, endpoint, **options)
        self.app: ASGIApp = _unreachable


async def _unreachable(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("the gateway answers direct routes itself")
