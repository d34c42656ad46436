"""One keep-alive HTTP/1.1 connection, as cheap as Python allows.

Synthetic visitors share a machine with the server that they visit. A general HTTP client costs
several times the server's own work for each request, so a demo on a small machine would mostly
measure its load generator. This one sends and reads JSON; httptools parses, in C.
"""

import asyncio
import json
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import httptools

CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 10.0
_CHUNK = 65_536


class NoAnswer(Exception):
    """The server did not answer; the message says why in a few words."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The status, the body (None unless it is a JSON object) and the Retry-After in seconds."""

    status: int
    body: dict[str, Any] | None
    retry_after: float


class _ResponseReader:
    """Collects what httptools parses."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.parts: list[bytes] = []
        self.retry_after = 0.0
        self.ends_by_closing = True
        self.has_headers = False
        self.complete = False
        self.keeps_alive = False

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"retry-after" and value.isdigit():
            self.retry_after = float(value)
        elif name in (b"content-length", b"transfer-encoding"):
            self.ends_by_closing = False

    def on_headers_complete(self) -> None:
        self.has_headers = True

    def on_body(self, body: bytes) -> None:
        self.parts.append(body)

    def on_message_complete(self) -> None:
        self.complete = True
        # Read now: after the last byte the parser already waits for another message.
        self.keeps_alive = self.parser.should_keep_alive()

    def answer(self) -> HttpAnswer:
        try:
            found = json.loads(b"".join(self.parts))
        except ValueError:
            found = None
        body = found if isinstance(found, dict) else None
        return HttpAnswer(self.parser.get_status_code(), body, self.retry_after)


class ServerConnection:
    """A connection to one server: opened when it is needed, opened again after it broke."""

    def __init__(self, *, url: str, key: str) -> None:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if secure else 80)
        self._security = ssl.create_default_context() if secure else None
        self._prefix = parts.path.rstrip("/")
        self._fixed = (
            f" HTTP/1.1\r\nHost: {parts.netloc.rpartition('@')[2]}\r\n"
            f"Authorization: Bearer {key}\r\nAccept: application/json\r\n"
        )
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> HttpAnswer:
        """Return the server's answer, or raise `NoAnswer`. Nothing is sent twice."""
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {self._prefix}{quote(path)}{self._fixed}"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await self._connected()
            async with asyncio.timeout(ANSWER_SECONDS):
                writer.write(head.encode() + content)
                return await self._read(reader)
        except TimeoutError:
            reason = "it took too long"
        except (OSError, EOFError, httptools.HttpParserError) as error:
            reason = type(error).__name__
        except asyncio.CancelledError:
            self._drop()
            raise
        self._drop()
        raise NoAnswer(reason)

    def close(self) -> None:
        """Let go of the connection."""
        self._drop()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is not None and self._streams[0].at_eof():
            self._drop()  # the server may close the connection between two requests
        if self._streams is None:
            self._streams = await asyncio.open_connection(
                self._host, self._port, ssl=self._security
            )
        return self._streams

    async def _read(self, reader: asyncio.StreamReader) -> HttpAnswer:
        reading = _ResponseReader()
        while not reading.complete:
            data = await reader.read(_CHUNK)
            if not data:
                if reading.has_headers and reading.ends_by_closing:
                    break
                raise EOFError
            reading.parser.feed_data(data)
        if not reading.keeps_alive:
            self._drop()
        return reading.answer()

    def _drop(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
