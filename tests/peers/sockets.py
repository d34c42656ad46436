"""Servers that answer with whatever bytes a test gives them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

Respond = Callable[[asyncio.StreamWriter, bytes], Awaitable[None]]


def http(status: int, body: bytes, *headers: str) -> bytes:
    """Return the bytes of an HTTP answer."""
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def answering(content: bytes) -> Respond:
    """Return what always answers with the same bytes."""

    async def respond(writer: asyncio.StreamWriter, request: bytes) -> None:
        writer.write(content)

    return respond


class RawServer:
    """Reads one request at a time and answers with raw bytes."""

    def __init__(self, respond: Respond) -> None:
        self.respond = respond
        self.requests: list[bytes] = []
        self.arrived = asyncio.Condition()
        self.connections = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                request = head + await reader.readexactly(length)
                async with self.arrived:
                    self.requests.append(request)
                    self.arrived.notify_all()
                await self.respond(writer, request)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def wait_for_requests(self, count: int) -> None:
        """Return once so many requests have arrived."""
        async with self.arrived:
            await self.arrived.wait_for(lambda: len(self.requests) >= count)


@asynccontextmanager
async def listening(respond: Respond) -> AsyncIterator[RawServer]:
    """Open a server on a free port."""
    raw = RawServer(respond)
    server = await asyncio.start_server(raw.serve, "127.0.0.1", 0)
    raw.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield raw
    finally:
        server.close()
