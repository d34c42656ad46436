"""A proxy on loopback that records every byte between two instances."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.waiting import PATIENCE, join


@dataclass
class Message:
    """One HTTP message: its first line, its headers and its JSON body."""

    first: str
    headers: dict[str, str]
    body: Any


@dataclass
class Tap:
    """What went there and back, connection by connection."""

    url: str = ""
    there: list[bytearray] = field(default_factory=list)
    back: list[bytearray] = field(default_factory=list)

    @property
    def asked(self) -> list[Message]:
        return [message for stream in list(self.there) for message in messages(bytes(stream))]

    @property
    def answered(self) -> list[Message]:
        return [message for stream in list(self.back) for message in messages(bytes(stream))]


def messages(stream: bytes) -> list[Message]:
    """Return every complete message of a connection; whatever is left over must be nothing."""
    found = []
    while stream:
        head, _, rest = stream.partition(b"\r\n\r\n")
        first, *lines = head.decode("ascii").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        length = int(headers["content-length"])
        assert len(rest) >= length, "the recording ends within a message"
        found.append(Message(first, headers, json.loads(rest[:length])))
        stream = rest[length:]
    return found


@contextmanager
def tapping(host: str, port: int) -> Iterator[Tap]:
    """Listen on a port of our own and pass everything on."""
    tap, ready = Tap(), threading.Event()
    loop = asyncio.new_event_loop()
    done = asyncio.Event()

    async def pump(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, record: bytearray
    ) -> None:
        with suppress(ConnectionError):
            while chunk := await reader.read(65_536):
                record += chunk
                writer.write(chunk)
                await writer.drain()
        writer.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = bytearray(), bytearray()
        tap.there.append(there)
        tap.back.append(back)
        other_reader, other_writer = await asyncio.open_connection(host, port)
        await asyncio.gather(pump(reader, other_writer, there), pump(other_reader, writer, back))

    async def run() -> None:
        server = await asyncio.start_server(connect, "127.0.0.1", 0)
        tap.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        await done.wait()
        server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), daemon=True)
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        yield tap
    finally:
        loop.call_soon_threadsafe(done.set)
        join(thread)
        loop.close()
