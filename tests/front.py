"""A worker's front door on a real socket, in this process, over the memory store."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from uvicorn.config import Config
from uvicorn.server import ServerState

from discreet.api.gateway import HttpGateway
from discreet.app import create_app
from discreet.bounded_http import BoundedProtocol
from discreet.connections import ConnectionTable, HttpLimits
from discreet.families.p_dap.document import AdaptivePartitionDocument
from discreet.protocol import DirectProtocol
from discreet.settings import Settings
from discreet.state.memory import MemoryStore
from tests.api.conftest import FILMS, KEY
from tests.waiting import PATIENCE

AUTHORISED = f"Authorization: Bearer {KEY}\r\n".encode()
QUESTION = b'{"recommender":"films","client":"ada","context":[0.5,0.5]}'


def post(
    body: bytes = QUESTION,
    *headers: str,
    path: str = "/recommend",
    version: str = "1.1",
    host: str = "host: x",
) -> bytes:
    """Return a request with a declared length."""
    lines = [
        f"POST {path} HTTP/{version}",
        host,
        f"authorization: Bearer {KEY}",
        *headers,
        f"content-length: {len(body)}",
    ]
    return "\r\n".join(line for line in lines if line).encode() + b"\r\n\r\n" + body


@dataclass
class Front:
    """Where it listens, and what it has seen."""

    port: int
    app: HttpGateway
    live: dict[str, Any]
    table: ConnectionTable
    ways: list[str]

    async def talk(
        self, *pieces: bytes, finished: bool = False, seconds: float = PATIENCE
    ) -> bytes:
        """Send pieces over a connection of its own; return what comes until it is closed.

        `finished` says so to the other side, which may answer all the same.
        """
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            async with asyncio.timeout(seconds):
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
                if finished:
                    with suppress(OSError):  # the other side may have closed by then
                        writer.write_eof()
                return await reader.read()
        finally:
            writer.close()

    async def flood(self, first: bytes, piece: bytes, *, seconds: float = PATIENCE) -> None:
        """Send without end and read nothing, until the connection breaks."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1)
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(first)
        try:
            async with asyncio.timeout(seconds):
                while True:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
        finally:
            writer.close()

    async def connected(self, count: int, *, seconds: float = PATIENCE) -> None:
        """Return once there are so many connections."""
        async with asyncio.timeout(seconds):
            while len(self.table) != count:  # noqa: ASYNC110  the table tells nobody
                await asyncio.sleep(0.01)

    async def spent(self, client: str = "ada") -> float:
        """Return the epsilon that a client has paid for answers."""
        report = await self.live["services"].clients.budget(recommender="films", client=client)
        return float(report.answers.spent.epsilon)


def statuses(answer: bytes) -> list[int]:
    """Return the statuses of the answers in these bytes."""
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]


@asynccontextmanager
async def fronting(
    limits: HttpLimits | None = None, *, direct: bool = True, **settings: Any
) -> AsyncIterator[Front]:
    """Serve one recommender, films, on a socket of this machine."""
    app = create_app(Settings(api_key=KEY, **settings), opening=lambda _: MemoryStore())
    ways: list[str] = []
    kind = DirectProtocol if direct else BoundedProtocol

    class Watched(kind):  # type: ignore[misc, valid-type]
        def on_message_complete(self) -> None:
            if not self._upgrading:
                ways.append("long" if getattr(self, "_arriving", None) is None else "short")
            super().on_message_complete()

    config = Config(app, interface="asgi3", lifespan="off", log_config=None, proxy_headers=False)
    config.load()
    table = ConnectionTable(limits or HttpLimits())
    async with app.router.lifespan_context(app) as live:
        await live["services"].registry.put(
            "films",
            AdaptivePartitionDocument.model_validate(
                {
                    **FILMS,
                    "privacy": {
                        "answers": {"epsilon": 1.0, "budget": {"epsilon": 1e3, "delta": 1e-6}}
                    },
                }
            ),
        )
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(
            lambda: Watched(config=config, server_state=state, app_state=dict(live), table=table),
            "127.0.0.1",
            0,
        )
        try:
            port = server.sockets[0].getsockname()[1]
            yield Front(port, app, dict(live), table, ways)
        finally:
            server.close()
            for connection in list(state.connections):
                connection.transport.abort()  # type: ignore[union-attr]
            if state.tasks:
                await asyncio.wait(state.tasks)
            await asyncio.sleep(0)
