"""The outermost layer: every request is timed, logged and answered here, and no error escapes.

Direct routes are found by one lookup and never enter FastAPI; everything else does.
"""

import asyncio
import logging
import random
import re
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, NamedTuple

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from discreet.api.addresses import network_of
from discreet.api.bodies import Disconnected, Headers, read_body
from discreet.api.heads import KnownHead, KnownHeads
from discreet.api.paths import matched_path
from discreet.api.problems import (
    CONTENT_TYPE,
    INTERNAL,
    NOT_ALLOWED_METHOD,
    NOT_FOUND,
    TOO_MANY,
    Problem,
    ProblemKind,
    Refused,
    invalid,
    problem_of,
)
from discreet.api.routing import DirectRoute, Live, require_known
from discreet.api.security import authorise
from discreet.decisions.batcher import Waiter
from discreet.decisions.grants import KeyGrant
from discreet.errors import DiscreetError, NotAuthenticated, Overloaded
from discreet.logs import RequestLog
from discreet.metrics import Metrics

log = logging.getLogger(__name__)

_JSON = (b"content-type", b"application/json")
_JSON_LINE = b"%b: %b\r\n" % _JSON
_PROBLEM = (b"content-type", CONTENT_TYPE.encode())
_HUNG_UP = 499
"""What the log calls a request whose caller hung up; nobody is sent this status."""


_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_TRACE_PARENT = re.compile(
    rb"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)


class RequestTrace(NamedTuple):
    """What ties an answer to its line in the log, and to what the caller calls it.

    A caller's own id, and W3C trace context, are taken over if they are well formed; anything else
    is neither given back nor logged.
    """

    request_id: str
    parent: bytes = b""
    trace_id: str = ""

    def ids(self) -> tuple[str, str]:
        """Return what the line in the log carries."""
        return self.request_id, self.trace_id

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return what every answer carries."""
        own = (b"x-request-id", self.request_id.encode())
        return [own, (b"traceparent", self.parent)] if self.parent else [own]


def trace_of(headers: Headers) -> RequestTrace:
    """Return what a request is known by; its own id guards nothing, so it may be cheap."""
    request_id = parent = trace_id = b""
    for name, value in headers:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            request_id = value
        elif name == b"traceparent" and (found := _TRACE_PARENT.fullmatch(value)):
            parent, trace_id = value, found[1]
    return RequestTrace(request_id.decode() or _new_id(), parent, trace_id.decode())


def _new_id() -> str:
    return f"{random.getrandbits(64):016x}"


Fetch = Callable[[], Awaitable[bytes]]


class HttpGateway(FastAPI):
    """The application. `declare` and `mount` functions add its routes; then call `seal`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            redirect_slashes=False,
            docs_url=None,
            redoc_url=None,
            exception_handlers={
                DiscreetError: _show,
                Refused: _show,
                ValidationError: _show,
                RequestValidationError: _show_invalid,
                HTTPException: _show_http,
                Disconnected: _show_disconnected,
                Exception: _show,
            },
            **options,
        )
        self._direct: dict[str, DirectRoute] = {}
        self.heads = KnownHeads()
        self._requests = RequestLog()

    def seal(self) -> None:
        """Learn which routes are direct; called once, when all have been declared."""
        self._direct = {
            route.path: route for route in self.router.routes if isinstance(route, DirectRoute)
        }
        self._requests = RequestLog()

    def direct_route(self, method: str, path: str) -> DirectRoute | None:
        """Return the route that answers this without FastAPI, if there is one."""
        return self._direct.get(path) if method == "POST" else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        state, method = scope["state"], scope["method"]
        raw = scope.get("raw_path") or b""
        if b"%" in raw:
            try:
                scope["path"] = matched_path(raw)
            except Refused as error:
                refusal = _response(Request(scope), problem_of(error))
                refusal.raw_headers += trace_of(scope["headers"]).headers()
                await refusal(scope, receive, send)
                return
        if method == "HEAD":
            scope = {**scope, "method": "GET"}  # the server leaves the body out
        direct = self.direct_route(method, scope["path"])
        if direct is not None:

            async def fetch() -> bytes:
                most, room = state["most_body_bytes"], state["body_room"]
                body = await read_body(receive, scope["headers"], most, room)
                require_known(QueryParams(scope["query_string"]))
                return body

            status, headers, content = await self.answer(
                direct,
                state,
                scope["headers"],
                fetch,
                host=client[0] if (client := scope.get("client")) else "",
            )
            if status != _HUNG_UP:
                await send({"type": "http.response.start", "status": status, "headers": headers})
                await send({"type": "http.response.body", "body": content})
            return
        began = perf_counter()
        trace = trace_of(scope["headers"])
        state["metrics"].began()
        status = _HUNG_UP
        try:
            status = await self.pass_on(scope, receive, send, trace)
        finally:
            template = str(getattr(scope.get("route"), "path_format", "(none)"))
            seconds = perf_counter() - began
            self._record(state["metrics"], method, template, status, seconds, *trace.ids())

    def admit(self, route: DirectRoute, live: Live) -> bool:
        """Take on a request for a direct route, if there is room: `answer` it then."""
        admission = live["admission"]
        return admission.enter_batch() if route.many else admission.enter()

    def known_grant(self, head: KnownHead, live: Live) -> KeyGrant | None:
        """Return what the key in a head allows, its request counted; None if it has to be looked
        up."""
        grant, services = head.grant, live["services"]
        if grant is None:
            return None
        snapshot = services.registry.trusted()
        if snapshot is None or head.epoch != snapshot.epoch:
            return None
        if not head.route.many:
            services.rates.take(grant)
        return grant

    def join(self, head: KnownHead, live: Live, grant: KeyGrant, body: bytes, who: Waiter) -> bool:
        """Let a request be answered with others of its turn, if that is all it needs.

        `grant` is from `known_grant` right now. `who` is told what came of it, and has to be
        `finished`; else, `answer` it. Raises what is wrong with the request.
        """
        joined, services = head.route.joined, live["services"]
        if joined is None:
            return False
        return joined.enter(services, services.registry.latest(), grant, body, who)

    def finished(
        self, route: DirectRoute, live: Live, began: float, outcome: Any
    ) -> tuple[int, bytes, bytes]:
        """Return the answer to a request that joined others: status, lines of headers, content."""
        request_id = _new_id()
        status, lines = 200, _JSON_LINE
        try:
            if isinstance(outcome, Exception):
                raise outcome
            assert route.joined is not None
            content = route.joined.show(outcome)
        except Exception as error:
            status, content, more = self._problem(error, live, request_id)
            lines = header_lines([_PROBLEM, *more])
        seconds, path = perf_counter() - began, route.path
        live["admission"].leave(seconds if status == 200 else None)
        live["metrics"].answered("POST", path, status, seconds)
        self._requests.write("POST", path, status, seconds, request_id)
        named = (lines, len(content), request_id.encode())
        return status, b"%bcontent-length: %d\r\nx-request-id: %b\r\n" % named, content

    def _problem(
        self, error: Exception, live: Live, request_id: str
    ) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
        """Return status, content and headers of the answer to what went wrong."""
        problem = problem_of(error)
        if problem.status == INTERNAL.status:
            log.error("a request failed", exc_info=error, extra={"request_id": request_id})
        elif problem.status == TOO_MANY:
            live["metrics"].refused(problem.slug)
        return problem.status, problem.body(request_id=request_id), _encoded(problem)

    async def answer(
        self,
        route: DirectRoute,
        live: Live,
        headers: Headers,
        body: bytes | Fetch,
        *,
        host: str = "",
        began: float | None = None,
        head: KnownHead | None = None,
        grant: KeyGrant | None = None,
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Answer a direct route: status, headers and content. Whatever goes wrong is answered too.

        `body` is the whole body of a request that was admitted; or how to get it, from a caller
        who is asked for a key first, and admitted once the body is there. `head` remembers what the
        key allows; `grant` is that, if it is known already (`known_grant`).
        """
        began = perf_counter() if began is None else began
        trace = trace_of(headers)
        metrics, services = live["metrics"], live["services"]
        metrics.began()
        status = _HUNG_UP
        out: list[tuple[bytes, bytes]] = []
        content = b""
        admitted = isinstance(body, bytes)
        try:
            if grant is None:
                snapshot = services.registry.trusted()
                grant = await authorise(services.keys, headers, route.scopes)
                if head is not None and snapshot is not None:
                    head.grant, head.epoch = grant, snapshot.epoch
                if not route.many:
                    services.rates.take(grant)
            if not isinstance(body, bytes):
                body = await body()
                began = perf_counter()
                admitted = self.admit(route, live)
                if not admitted:
                    await asyncio.sleep(live["admission"].refusal_delay())
                    raise Overloaded
            content = await route.answer(services, grant, body)
            status = 200
            out.append(_JSON)
        except Disconnected:
            pass
        except Exception as error:
            if isinstance(error, NotAuthenticated):
                if admitted:
                    admitted = False
                    self._leave(route, live, None)
                await asyncio.sleep(live["wrong_keys"].delay(network_of(host)))
            status, content, more = self._problem(error, live, trace.request_id)
            out = [_PROBLEM, *more]
        finally:
            if admitted:
                self._leave(route, live, perf_counter() - began if status == 200 else None)
            seconds = perf_counter() - began
            self._record(metrics, "POST", route.path, status, seconds, *trace.ids())
        out.append((b"content-length", str(len(content)).encode()))
        out.extend(trace.headers())
        return status, out, content

    def _leave(self, route: DirectRoute, live: Live, seconds: float | None) -> None:
        admission = live["admission"]
        if route.many:
            admission.leave_batch()
        else:
            admission.leave(seconds)

    def _record(
        self,
        metrics: Metrics,
        method: str,
        route: str,
        status: int,
        seconds: float,
        request_id: str,
        trace_id: str = "",
    ) -> None:
        metrics.answered(method, route, status, seconds)
        self._requests.write(method, route, status, seconds, request_id, trace_id)

    async def pass_on(self, scope: Scope, receive: Receive, send: Send, trace: RequestTrace) -> int:
        """Let FastAPI answer; return the status that it sent."""
        status = _HUNG_UP
        scope["state"]["request_id"] = trace.request_id

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *trace.headers()]
            await send(message)

        try:
            await super().__call__(scope, receive, send_on)
        except Exception:
            # Starlette has sent our 500 by now, and hands the exception on to be logged.
            log.exception("a request failed", extra={"request_id": trace.request_id})
        return status


def header_lines(headers: Headers) -> bytes:
    """Return headers as they are sent."""
    return b"".join([b"%b: %b\r\n" % pair for pair in headers])


def _encoded(problem: Problem) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in problem.headers.items()]


def _response(request: Request, problem: Problem) -> Response:
    if problem.status == TOO_MANY:
        request.scope["state"]["metrics"].refused(problem.slug)
    return Response(
        problem.body(request_id=request.scope["state"].get("request_id")),
        status_code=problem.status,
        headers=dict(problem.headers),
        media_type=CONTENT_TYPE,
    )


async def _show(request: Request, error: Exception) -> Response:
    return _response(request, problem_of(error))


async def _show_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return _response(request, invalid(error.errors()))


async def _show_disconnected(request: Request, error: Exception) -> Response:
    """Answer a caller who hung up: the server drops it, the log has the status."""
    return Response(status_code=_HUNG_UP)


async def _show_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kinds = {
        404: (NOT_FOUND, "no such route; /docs lists them all"),
        405: (NOT_ALLOWED_METHOD, "the Allow header lists the methods of this route"),
    }
    kind, detail = kinds.get(
        error.status_code,
        (ProblemKind("http", error.status_code, "Request failed"), "see the status"),
    )
    return _response(request, problem_of(Refused(kind, detail, headers=error.headers)))
