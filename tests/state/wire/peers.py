"""A server that does nothing by itself, and a connection to it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

from discreet.state.wire.commands import CommandGroup, PendingCommand, packed
from discreet.state.wire.connection import PipelinedConnection


class Peer:
    """A server that reads only when told to, and answers what it is told to."""

    def __init__(self) -> None:
        self.port = 0
        self.arrived = asyncio.Event()
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.arrived.set()

    def answer(self, *numbers: int) -> None:
        """Send these numbers as replies."""
        self.writer.write(b"".join(b":%d\r\n" % number for number in numbers))


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[Peer]:
    """Run a peer on the loopback interface."""
    peer = Peer()
    server = await asyncio.start_server(peer.accept, "127.0.0.1", 0, limit=1024)
    peer.port = server.sockets[0].getsockname()[1]
    yield peer
    peer.writer.transport.abort()
    server.close()
    await server.wait_closed()


Losses = list[tuple[Sequence[PendingCommand], Sequence[PendingCommand]]]


async def connected(peer: Peer) -> tuple[PipelinedConnection, Losses]:
    """Connect to a peer, and note what is lost with the connection."""
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(
        lambda: PipelinedConnection(loop), "127.0.0.1", peer.port
    )
    await peer.arrived.wait()
    losses: Losses = []
    connection.lost = lambda ran, unsent: losses.append((list(ran), list(unsent)))
    return connection, losses


def commands(
    size: int, *deadlines: float, payload: bytes = packed((b"N",)), repeatable: bool = False
) -> list[PendingCommand]:
    """Return so many commands of one group; the first have these deadlines, the others none."""
    group = CommandGroup(asyncio.get_running_loop(), size)
    until = [*deadlines, *[float("inf")] * (size - len(deadlines))]
    return [
        PendingCommand(payload, b"", repeatable, until[position], group, position)
        for position in range(size)
    ]
