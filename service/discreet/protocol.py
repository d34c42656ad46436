"""The short way for the request path, on a bounded HTTP/1.1 (`bounded_http`).

An ASGI call costs more than parsing the request: a scope, an event, two messages out and one in.
A direct route with a body of declared and small length needs none of it. Its body is collected
here, the gateway answers it, and the answer is written at once. Everything else (other routes,
chunked or large bodies, HTTP/1.0, `Expect`, a request behind another one) goes the long way, where
the key is checked before the body is read. A request that arrives in one piece, with a head that
was read before (`api.heads`), is not even parsed.

A request whose key is known joins others of its turn and is told what came of it, without a task
of its own: one costs as much as the parsing.

A worker that has as much to do as it can finish soon refuses the rest here, before it is looked at
(`api.admission`).
"""

import math
from collections.abc import Coroutine
from time import perf_counter
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from discreet.api.bodies import SHORT_BODY
from discreet.api.gateway import HttpGateway, header_lines, trace_of
from discreet.api.heads import END, KnownHead
from discreet.api.problems import CONTENT_TYPE, OVERLOADED, problem_of
from discreet.api.routing import Live
from discreet.bounded_http import BoundedProtocol
from discreet.errors import Overloaded

AnswerParts = tuple[int, list[tuple[bytes, bytes]], bytes]
Answering = Coroutine[Any, Any, AnswerParts]

OK = 200
CLOSE = b"connection: close\r\n\r\n"


def _no_room() -> bytes:
    problem = problem_of(Overloaded())
    content = problem.body()
    headers = {"Content-Type": CONTENT_TYPE, "Content-Length": str(len(content)), **problem.headers}
    lines = "".join(f"{name.lower()}: {value}\r\n" for name, value in headers.items())
    return f"{lines}\r\n".encode() + content


_NO_ROOM = _no_room()
"""The answer to a request that there was no room for, after the headers that all answers have."""


_openings: dict[int, tuple[list[tuple[bytes, bytes]], bytes]] = {}
"""By status: how answers begin, with the list of headers that it was made from."""


class _UnusedEvent:
    """Takes the place of the event that uvicorn keeps: nothing waits for one here."""

    def set(self) -> None:
        """Do nothing."""


_UNUSED_EVENT = _UnusedEvent()


class DirectExchange:
    """One direct request of a connection, with what uvicorn looks at in its own requests."""

    __slots__ = (
        "began",
        "body",
        "connection",
        "content",
        "disconnected",
        "head",
        "keep_alive",
        "message_event",
        "response_complete",
    )

    connection: "DirectProtocol"
    """Whose request it is, while it is being answered: else the two would hold on to each other."""
    began: float

    def __init__(self, head: KnownHead, body: bytes = b"") -> None:
        self.head = head
        self.body = body
        self.content = b""
        """The head itself, if it was in one piece with its body and is not known yet."""
        self.keep_alive = True
        self.disconnected = False
        self.response_complete = False
        self.message_event = _UNUSED_EVENT

    def answered(self, outcome: Any) -> None:
        """Write what came of a request that joined others."""
        to = self.connection
        answer = to.gateway.finished(self.head.route, to.live, self.began, outcome)
        to.write_answer(self, *answer)


class DirectProtocol(BoundedProtocol):
    """A bounded connection, with a short way for direct routes."""

    _arriving: DirectExchange | None = None
    """The direct request whose body is being collected."""
    _piece: bytes = b""
    """What the parser is given, if a request may begin with it."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.gateway = cast(HttpGateway, self.app)
        self.live = cast(Live, self.app_state)

    def data_received(self, data: bytes) -> None:
        cycle = self.cycle
        if (
            (cycle is None or cycle.response_complete)
            and not (self._in_head or self._in_body or self._pending)
            and self._refusal is None
            and not self._finished
        ):
            end = data.find(END) + len(END)
            head = self.gateway.heads.find(data[:end])
            if head is not None and len(data) == end + head.length:
                self._arrived(DirectExchange(head, data[end:]))
                return
            self._piece = data
        super().data_received(data)
        self._piece = b""

    def begin_request(self) -> None:
        head = self._direct_head()
        if head is None:
            super().begin_request()
        else:
            self._arriving = DirectExchange(head)
            self.cycle = self._arriving  # type: ignore[assignment]

    def _direct_head(self) -> KnownHead | None:
        if self.cycle is not None and not self.cycle.response_complete:
            return None  # uvicorn queues what is pipelined
        parser = self.parser
        route = self.gateway.direct_route(parser.get_method().decode(), self.url.decode("latin-1"))
        if route is None or self.expect_100_continue:
            return None
        if parser.get_http_version() != "1.1" or not parser.should_keep_alive():
            return None
        for name, value in self.headers:
            if name == b"content-length":
                length = int(value)
                most = min(SHORT_BODY, self.app_state["most_body_bytes"])
                return KnownHead(route, self.headers, length) if length <= most else None
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
        end = len(self._piece) - exchange.head.length
        if end > 0 and self._piece.find(END) + len(END) == end:
            exchange.content = self._piece[:end]
        self._arrived(exchange)

    def _arrived(self, exchange: DirectExchange) -> None:
        """Answer a request that is here as a whole, or refuse it."""
        self.due = math.inf
        self.cycle = exchange  # type: ignore[assignment]
        app, live, head = self.gateway, self.live, exchange.head
        if not app.admit(head.route, live):
            self.loop.call_later(live["admission"].refusal_delay(), self._refuse_one, exchange)
            return
        exchange.connection, exchange.began = self, perf_counter()
        try:
            grant = app.known_grant(head, live)
            joined = grant is not None and app.join(head, live, grant, exchange.body, exchange)
        except Exception as error:
            live["metrics"].began()
            exchange.answered(error)
            return
        if joined:
            live["metrics"].began()
            return
        answer = app.answer(
            *(head.route, live, head.headers, exchange.body),
            host=self.client[0] if self.client else "",
            began=exchange.began,
            head=head,
            grant=grant,
        )
        self._begin_task(self._exchange(exchange, answer))

    def _begin_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    async def _exchange(self, exchange: DirectExchange, answer: Answering) -> None:
        try:
            status, headers, content = await answer
            self.write_answer(exchange, status, header_lines(headers), content)
        except BaseException:
            # Only a stop that ran out of patience gets here: the answer is lost, as is the caller.
            exchange.keep_alive = False
            self._complete(exchange)
            raise

    def _refuse_one(self, exchange: DirectExchange) -> None:
        """Answer that there was no room; the connection goes on."""
        if exchange.disconnected or self.transport.is_closing():
            return
        self.app_state["metrics"].refused(OVERLOADED.slug)
        named = header_lines(trace_of(exchange.head.headers).headers())
        self.transport.write(self._opening(OVERLOADED.status) + named + _NO_ROOM)
        exchange.response_complete = True
        if not exchange.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def write_answer(
        self, exchange: DirectExchange, status: int, lines: bytes, content: bytes
    ) -> None:
        """Write an answer with these lines of headers, after those before it have left."""
        if self.flow.write_paused and not exchange.disconnected:
            later = self._answer_later(exchange, status, lines, content)
            self._begin_task(later)
            return
        if not self.transport.is_closing():
            ending = b"\r\n" if exchange.keep_alive else CLOSE
            self.transport.write(b"".join((self._opening(status), lines, ending, content)))
        if exchange.content and status == OK:
            self.gateway.heads.keep(exchange.content, exchange.head)
        self._complete(exchange)

    async def _answer_later(
        self, exchange: DirectExchange, status: int, lines: bytes, content: bytes
    ) -> None:
        await self.flow.drain()
        self.write_answer(exchange, status, lines, content)

    def _opening(self, status: int) -> bytes:
        """Return the status line and the headers that all answers have, the same for a second."""
        default = self.server_state.default_headers
        known = _openings.get(status)
        if known is None or known[0] is not default:
            known = _openings[status] = default, STATUS_LINE[status] + header_lines(default)
        return known[1]

    def _complete(self, exchange: DirectExchange) -> None:
        del exchange.connection
        exchange.response_complete = True
        if not exchange.keep_alive:
            self.transport.close()
        self.on_response_complete()
