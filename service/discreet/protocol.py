"""The short way for the request path, on a bounded HTTP/1.1 (`bounded_http`).

An ASGI call costs more than parsing the request: a scope, an event, two messages out and one in.
A direct route with a body of declared and small length needs none of it. Its body is collected
here, the gateway answers it, and the answer is written at once. Everything else (other routes,
chunked or large bodies, HTTP/1.0, `Expect`, a request behind another one) goes the long way, where
the key is checked before the body is read.

A worker that has as much to do as it can finish soon refuses the rest here, before it is looked at
(`api.admission`).
"""

import math
from time import perf_counter
from typing import cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from discreet.api.gateway import HttpGateway, trace_of
from discreet.api.problems import CONTENT_TYPE, OVERLOADED, problem_of
from discreet.api.routing import DirectRoute, Live
from discreet.bounded_http import BoundedProtocol
from discreet.errors import Overloaded

CLOSE = b"connection: close\r\n\r\n"
SHORT_BODY = 16 * 2**10
"""Bytes of a body that is collected before its key is checked: no more than headers may have."""


def _no_room() -> bytes:
    problem = problem_of(Overloaded())
    content = problem.body()
    headers = {"Content-Type": CONTENT_TYPE, "Content-Length": str(len(content)), **problem.headers}
    lines = "".join(f"{name.lower()}: {value}\r\n" for name, value in headers.items())
    return f"{lines}\r\n".encode() + content


_NO_ROOM = _no_room()
"""The answer to a request that there was no room for, after the headers that all answers have."""


class _UnusedEvent:
    """Takes the place of the event that uvicorn keeps: nothing waits for one here."""

    def set(self) -> None:
        """Do nothing."""


_UNUSED_EVENT = _UnusedEvent()


class DirectExchange:
    """One direct request, with what uvicorn looks at in its own requests."""

    __slots__ = (
        "body",
        "disconnected",
        "headers",
        "keep_alive",
        "message_event",
        "response_complete",
        "route",
    )

    def __init__(self, route: DirectRoute, headers: list[tuple[bytes, bytes]]) -> None:
        self.route = route
        self.headers = headers
        self.body = b""
        self.keep_alive = True
        self.disconnected = False
        self.response_complete = False
        self.message_event = _UNUSED_EVENT


class DirectProtocol(BoundedProtocol):
    """A bounded connection, with a short way for direct routes."""

    _arriving: DirectExchange | None = None
    """The direct request whose body is being collected."""

    def begin_request(self) -> None:
        route = self._direct_route()
        if route is None:
            super().begin_request()
        else:
            self._arriving = DirectExchange(route, self.headers)
            self.cycle = self._arriving  # type: ignore[assignment]

    def _direct_route(self) -> DirectRoute | None:
        if self.cycle is not None and not self.cycle.response_complete:
            return None  # uvicorn queues what is pipelined
        parser, app = self.parser, cast(HttpGateway, self.app)
        route = app.direct_route(parser.get_method().decode(), self.url.decode("latin-1"))
        if route is None or self.expect_100_continue:
            return None
        if parser.get_http_version() != "1.1" or not parser.should_keep_alive():
            return None
        for name, value in self.headers:
            if name == b"content-length":
                most = min(SHORT_BODY, self.app_state["most_body_bytes"])
                return route if int(value) <= most else None
        return None

    def on_body(self, body: bytes) -> None:
        if self._arriving is None:
            super().on_body(body)
        else:
            self._progress = True
            self._arriving.body += body

    def on_message_complete(self) -> None:
        exchange, self._arriving = self._arriving, None
        if exchange is None:
            super().on_message_complete()
            return
        self._progress = True
        self._in_body = False
        self.due = math.inf
        app, live = cast(HttpGateway, self.app), cast(Live, self.app_state)
        if not app.admit(exchange.route, live):
            self.loop.call_later(live["admission"].refusal_delay(), self._refuse_one, exchange)
            return
        task = self.loop.create_task(self._exchange(exchange, perf_counter()))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def _refuse_one(self, exchange: DirectExchange) -> None:
        """Answer that there was no room; the connection goes on."""
        if exchange.disconnected or self.transport.is_closing():
            return
        self.app_state["metrics"].refused(OVERLOADED.slug)
        parts = [STATUS_LINE[OVERLOADED.status]]
        for name, value in (
            *self.server_state.default_headers,
            *trace_of(exchange.headers).headers(),
        ):
            parts += (name, b": ", value, b"\r\n")
        self.transport.write(b"".join((*parts, _NO_ROOM)))
        exchange.response_complete = True
        if not exchange.keep_alive:
            self.transport.close()
        self.on_response_complete()

    async def _exchange(self, exchange: DirectExchange, began: float) -> None:
        try:
            status, headers, content = await cast(HttpGateway, self.app).answer(
                exchange.route,
                cast(Live, self.app_state),
                exchange.headers,
                exchange.body,
                host=self.client[0] if self.client else "",
                began=began,
            )
            if self.flow.write_paused and not exchange.disconnected:
                await self.flow.drain()
            if self.transport.is_closing():
                return
            parts = [STATUS_LINE[status]]
            for name, value in (*self.server_state.default_headers, *headers):
                parts += (name, b": ", value, b"\r\n")
            parts += (b"\r\n" if exchange.keep_alive else CLOSE, content)
            self.transport.write(b"".join(parts))
        except BaseException:
            # Only a stop that ran out of patience gets here: the answer is lost, as is the caller.
            exchange.keep_alive = False
            raise
        finally:
            exchange.response_complete = True
            if not exchange.keep_alive:
                self.transport.close()
            self.on_response_complete()
