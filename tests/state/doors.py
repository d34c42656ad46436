"""A door in front of a real server: it may speak TLS, and it may be shut at the worst moment."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator


class Door:
    """Passes everything on, until `slam_on_reply`: the next answers are lost with their line."""

    def __init__(self, to_port: int) -> None:
        self.port = 0
        self.slam_on_reply = False
        self._to_port = to_port
        self._passing: set[asyncio.Task[None]] = set()

    async def welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._to_port)
        for way in (
            self._pass(reader, inner_writer, replies=False),
            self._pass(inner_reader, writer, replies=True),
        ):
            task = asyncio.create_task(way)
            self._passing.add(task)
            task.add_done_callback(self._passing.discard)

    async def close(self) -> None:
        passing = list(self._passing)
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)
        await asyncio.sleep(0)  # lets aborted connections close

    async def _pass(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, replies: bool
    ) -> None:
        try:
            while data := await source.read(65536):
                if replies and self.slam_on_reply:
                    self.slam_on_reply = False
                    return
                sink.write(data)
                await sink.drain()
        except OSError:
            return  # whoever hangs up on one side hangs up on the other
        finally:
            sink.transport.abort()


@contextlib.asynccontextmanager
async def door(to_port: int, tls: ssl.SSLContext | None = None) -> AsyncIterator[Door]:
    """Open a door to a server on the loopback interface."""
    opened = Door(to_port)
    server = await asyncio.start_server(opened.welcome, "127.0.0.1", 0, ssl=tls)
    opened.port = server.sockets[0].getsockname()[1]
    try:
        yield opened
    finally:
        server.close()
        await opened.close()
