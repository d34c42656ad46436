"""A server that does nothing by itself, and a wire to it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

from discreet.state.commands import Command
from discreet.state.wire import Wire


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


Losses = list[tuple[Sequence[Command], Sequence[Command]]]


async def wire_to(peer: Peer) -> tuple[Wire, Losses]:
    """Connect to a peer, and note what is lost with the connection."""
    loop = asyncio.get_running_loop()
    _, wire = await loop.create_connection(lambda: Wire(loop), "127.0.0.1", peer.port)
    await peer.arrived.wait()
    losses: Losses = []
    wire.lost = lambda ran, unsent: losses.append((ran, unsent))
    return wire, losses
