"""HTTP/1.1 with bounds: uvicorn's protocol over llhttp, and what that leaves open.

uvicorn's own protocols bound neither time nor, with httptools, size. Its other parser, h11, bounds
the size of headers and nothing else of the following, and takes several times the CPU for a request
(docs/performance.md); so the bounds are here, around the fast parser:

- headers and trailers have a greatest size and number, and so has what is not understood yet;
- a request has deadlines for its headers and its body, an answer one for being read;
- a worker has a greatest number of connections, in all and by address;
- of requests that are sent before earlier ones are answered (pipelining) a few are parsed, the rest
  stays as it came, and nothing more is read from the connection meanwhile;
- no other version than HTTP/1.1 and 1.0 is spoken; HTTP/1.1 needs exactly one Host; two
  Authorization headers are refused, and any transfer coding but chunked;
- trailers are read and thrown away: nothing in them is ever taken for a header;
- a wish to speak another protocol (`Upgrade: h2c`) is ignored, as RFC 9110 allows, and the request
  answered as it stands;
- a caller who has finished sending (`shutdown(SHUT_WR)`) is answered;
- whoever waits to be told to send a body (`Expect`), and is answered without it, is asked for none;
- what is refused is answered in its turn, behind the requests before it, and the connection closes
  only after the caller has had time to read that.
"""

import asyncio
import math
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from discreet.api.addresses import network_of
from discreet.api.problems import (
    BAD_REQUEST,
    HEADERS_TOO_LARGE,
    REQUEST_TIMEOUT,
    TOO_MANY_CONNECTIONS,
    ProblemKind,
)
from discreet.connections import AnswerTransport, ConnectionTable, HoldingFlow
from discreet.http_messages import RequestRefused, head_without_upgrade, last_answer, too_much_of_it

_LINGER_SECONDS = 2.0
_LINGER_BYTES = 8 * 2**20
"""What is still read, and thrown away, of a caller who has been answered for good."""
_SLICE = 2_048
"""Bytes that are parsed in one go, beyond the body that is due: the requests in them may have to
wait for the one before, and each takes a hundred times as much memory as it had bytes."""
_VERSIONS = frozenset({"1.0", "1.1"})


class BoundedProtocol(HttpToolsProtocol):
    """One connection. Requests are answered by the application, in their order."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        *,
        table: ConnectionTable,
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.due = math.inf
        self.reading_due = math.inf
        self.network = ""
        self._table = table
        self._limits = table.limits
        self._in_head = False  # whether a request's first bytes have come, its headers not all
        self._in_body = False
        self._upgrading = False
        self._room = 0  # bytes of headers, or then of trailers, that may still come
        self._pending = 0  # bytes of earlier pieces of which nothing could be made yet
        self._progress = False
        self._refusal: RequestRefused | None = None
        self._last_words: bytes | None = None
        self._finished = False  # whether the last answer has been written
        self._ended = False  # whether the caller will send no more
        self._discarded = 0
        self._unread = b""
        """What was received and not parsed yet: requests before it wait for their turn."""
        self._reading = False
        self._body_left = 0  # bytes that are not looked into for another request

    # The connection.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow: HoldingFlow = HoldingFlow(transport)
        self.network = network_of(self.client[0]) if self.client else ""
        self.due = self._table.now + self._limits.header_seconds
        if self._table.enter(self):
            return
        if self._table.crowded:
            self._finished = True
            transport.abort()
            return
        detail = "too many connections; close some, or wait until others have"
        self._refuse(TOO_MANY_CONNECTIONS, detail)

    def connection_lost(self, exc: Exception | None) -> None:
        self._table.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            self._discard(len(data))
        else:
            self._unread += data
            self._read()

    def _read(self) -> None:
        """Parse what was received, until requests have to wait for their turn."""
        if self._reading:
            return  # an answer was there at once: whoever parses goes on
        self._reading = True
        while self._unread and not (self.pipeline or self._deaf):
            size = _SLICE + self._body_left
            piece, self._unread = self._unread[:size], self._unread[size:]
            self._parse(piece)
        self._reading = False
        if self._deaf:
            discarded, self._unread = self._unread, b""
            self._discard(len(discarded))
        self.flow.holds = bool(self._unread or self.pipeline)
        if self.flow.holds:
            self.flow.pause_reading()

    def _parse(self, data: bytes) -> None:
        if self._pending:
            if self._pending > self._limits.header_bytes:
                self._refuse(*too_much_of_it(self._limits.header_bytes))
                return
        elif not (self._in_head or self._in_body):
            self.due = self._table.now + self._limits.header_seconds
        self._progress = False
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as found:
            self._feed_without_upgrade(data[found.args[0] :])
        except httptools.HttpParserError as error:
            self._refuse_found(error)
        self._pending = 0 if self._progress else self._pending + len(data)

    def _feed_without_upgrade(self, rest: bytes) -> None:
        """Read the request again as one that does not wish for another protocol."""
        while self._upgrading:
            self._upgrading = False
            version = self.parser.get_http_version().encode()
            line = b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)
            head = head_without_upgrade(line, self.headers)
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            try:
                self.parser.feed_data(head)
                if rest:
                    self.parser.feed_data(rest)
            except httptools.HttpParserUpgrade as found:
                rest = rest[found.args[0] :]
            except httptools.HttpParserError as error:
                self._refuse_found(error)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Note that the caller has finished; answer what is complete before closing."""
        self._ended = True
        self._require_complete()
        return not self._finished and self._answering

    def _require_complete(self) -> None:
        if self._ended and not self._unread and (self._in_head or self._in_body):
            self._refuse(BAD_REQUEST, "the request is incomplete")

    @property
    def _deaf(self) -> bool:
        """Whether nothing that the caller sends matters any more."""
        return self._finished or self._refusal is not None or self.transport.is_closing()

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def held_back(self) -> bool:
        return self.flow.read_paused

    def pause_writing(self) -> None:
        super().pause_writing()
        self.reading_due = self._table.now + self._limits.body_seconds

    def resume_writing(self) -> None:
        super().resume_writing()
        self.reading_due = math.inf

    def expire(self) -> None:
        """End a connection that has taken too long: politely at first."""
        if self.transport.is_closing() or self._finished or self.reading_due <= self._table.now:
            self.transport.abort()
        elif self._in_head or self._in_body:
            self._refuse(REQUEST_TIMEOUT, "the request took too long to arrive")
        else:
            self._close()

    def _close(self) -> None:
        self.transport.close()
        self.due = self._table.now + _LINGER_SECONDS

    # One request: what the parser calls.

    def on_message_begin(self) -> None:
        self.url = b""
        self.expect_100_continue = False
        self.headers = []
        self._in_head = True
        self.due = self._table.now + self._limits.header_seconds
        self._body_left = 0
        self._room = self._limits.header_bytes

    def on_url(self, url: bytes) -> None:
        self.url += url
        self._room -= len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._room -= len(name) + len(value) + 4
        if self._room < 0:
            raise self._found(*too_much_of_it(self._limits.header_bytes))
        if not self._in_head:
            return  # a trailer
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._progress = True
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise self._found(BAD_REQUEST, "this is not a proxy")
            self._upgrading = True
            return
        self._require_sound_headers()
        self.begin_request()
        self._in_head = False
        self._in_body = True
        self._room = self._limits.header_bytes
        self.due = self._table.now + self._limits.body_seconds

    def _require_sound_headers(self) -> None:
        hosts = keys = 0
        version = self.parser.get_http_version()
        for name, value in self.headers:
            if name == b"host":
                hosts += 1
            elif name == b"authorization":
                keys += 1
            elif name == b"transfer-encoding" and (value.lower() != b"chunked" or version == "1.0"):
                raise self._found(BAD_REQUEST, "the one transfer coding is HTTP/1.1's chunked")
        if version not in _VERSIONS:
            raise self._found(BAD_REQUEST, "speak HTTP/1.1")
        if hosts != 1 and (hosts or version != "1.0"):
            raise self._found(BAD_REQUEST, "send exactly one Host header")
        if keys > 1:
            raise self._found(BAD_REQUEST, "send at most one Authorization header")
        if len(self.headers) > self._limits.headers:
            detail = f"a request may have at most {self._limits.headers} headers"
            raise self._found(HEADERS_TOO_LARGE, detail)

    def begin_request(self) -> None:
        """Hand the request, whose headers are complete, to the application."""
        self._discarded = 0
        self.scope = {  # type: ignore[typeddict-item]
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": "1.1",
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,  # type: ignore[typeddict-item]
            "root_path": self.root_path,
            "headers": self.headers,
            "state": self.app_state.copy(),
        }
        for name, value in self.headers:
            if name == b"content-length":
                self._body_left = int(value)
        super().on_headers_complete()
        self.cycle.transport = AnswerTransport(  # type: ignore[assignment]
            self.transport, self._close_answered
        )

    def _close_answered(self) -> None:
        self._finish(b"") if self._in_body else self.transport.close()

    def on_body(self, body: bytes) -> None:
        self._progress = True
        self._body_left = max(0, self._body_left - len(body))
        if self.cycle.response_complete:
            self._discard(len(body))
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._progress = True
        if self._upgrading:
            return
        self._in_body = False
        answered = self.cycle.response_complete
        self.due = self._table.now + self._limits.idle_seconds if answered else math.inf
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Begin the next request, or wait for one, or close."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            self.due = self._table.now + _LINGER_SECONDS
        elif self._finished:
            pass
        elif self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        elif self._in_body and self.expect_100_continue:
            self._finish(b"")
        elif self._last_words is not None:
            self._finish(self._last_words)
        elif not (self._in_head or self._in_body):
            self.due = self._table.now + self._limits.idle_seconds
        flow = self.flow
        if self.transport.is_closing():
            return
        if not self._reading and (self._unread or self._ended or flow.holds):
            self._read()
            self._require_complete()
            if self._ended and not (self._finished or self._answering):
                self._close()
        if flow.read_paused:
            flow.resume_reading()

    # What is refused.

    def _found(self, kind: ProblemKind, detail: str) -> RequestRefused:
        self._refusal = RequestRefused(kind, detail)
        return self._refusal

    def _refuse_found(self, error: httptools.HttpParserError) -> None:
        refusal = self._refusal
        if refusal is not None:
            self._refuse(refusal.kind, str(refusal))
        elif isinstance(error, httptools.HttpParserCallbackError):
            self._refuse(BAD_REQUEST, "the address cannot be read; send the path of a route")
        else:
            # The parser's own words: they say what it met, and repeat nothing of it.
            self._refuse(BAD_REQUEST, f"this is not HTTP/1.1: {error}")

    def _refuse(self, kind: ProblemKind, detail: str) -> None:
        """Answer a problem behind what is being answered, and then close: but a request that was
        answered before its body was there gets no second answer."""
        self._refusal = RequestRefused(kind, detail)
        if self._in_body and not self._answering:
            self._finish(b"")
            return
        answer = last_answer(self._refusal, self.server_state.default_headers)
        if metrics := self.app_state.get("metrics"):
            if kind is TOO_MANY_CONNECTIONS:
                metrics.refused(kind.slug)
            metrics.began()
            metrics.answered("OTHER", "(none)", kind.status, 0.0)
        answering = self._answering
        if self._in_body and answering:
            if self.pipeline and self.pipeline[0][0] is self.cycle:
                self.pipeline.popleft()
            else:
                answering = False
                self.cycle.disconnected = True
                self.cycle.response_complete = True
                self.cycle.message_event.set()
        self._in_head = self._in_body = False
        if answering:
            self._last_words = answer
            self.due = math.inf
        else:
            self._finish(answer)

    def _finish(self, answer: bytes) -> None:
        """Write the last answer, and give the caller time to read it before the connection goes:
        whoever is sending a body, as long as that may take."""
        lingering = self._table.now + _LINGER_SECONDS
        self.due = max(self.due, lingering) if self._in_body else lingering
        self._in_head = self._in_body = False
        self._finished = True
        if self.transport.is_closing():
            return
        self.transport.write(answer)
        if self._ended:
            self.transport.close()
        elif self.transport.can_write_eof():
            self.transport.write_eof()

    def _discard(self, size: int) -> None:
        self._discarded += size
        if self._discarded > _LINGER_BYTES:
            self.transport.abort()
