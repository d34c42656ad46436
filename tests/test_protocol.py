"""The short way for direct routes: what takes it, and what does not.

What it answers, against a running server, is compared with the long way in
tests/end_to_end/test_socket.py.
"""

import asyncio
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from discreet.app import create_app
from discreet.protocol import DirectProtocol
from discreet.settings import Settings
from discreet.state.memory import MemoryStore
from tests.api.conftest import KEY

pytestmark = pytest.mark.anyio


class Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


async def respond(request: bytes, *, pieces: int = 1) -> tuple[bytes, list[str]]:
    """Return what is answered, and which ways the requests took."""
    app = create_app(Settings(api_key=KEY), opening=lambda _: MemoryStore())
    ways: list[str] = []

    class Watched(DirectProtocol):
        def on_message_complete(self) -> None:
            ways.append("long" if self._arriving is None else "short")
            super().on_message_complete()

    config = Config(app, lifespan="off", log_config=None)
    config.load()
    async with app.router.lifespan_context(app) as live:
        protocol = Watched(config=config, server_state=ServerState(), app_state=dict(live))
        transport = Transport()
        protocol.connection_made(transport)
        size = -(-len(request) // pieces)
        for start in range(0, len(request), size):
            protocol.data_received(request[start : start + size])
        async with asyncio.timeout(30):
            while b"HTTP/1.1" not in transport.written or protocol.tasks:
                await asyncio.sleep(0)
        protocol.connection_lost(None)
    return transport.written, ways


def post(body: bytes, *headers: str, path: str = "/feedback", version: str = "1.1") -> bytes:
    lines = [
        f"POST {path} HTTP/{version}",
        "host: x",
        f"authorization: Bearer {KEY}",
        *headers,
        f"content-length: {len(body)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


BODY = b'{"recommendation_id":"x","reward":1}'


@pytest.mark.parametrize("pieces", [1, 7])
async def test_a_direct_request_takes_the_short_way(pieces: int) -> None:
    answer, ways = await respond(post(BODY), pieces=pieces)
    assert ways == ["short"]
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"invalid-recommendation-id" in answer


@pytest.mark.parametrize(
    "request_",
    [
        post(BODY, path="/handles/open"),
        post(BODY, path="/feedback?x=1"),
        post(BODY, version="1.0"),
        post(BODY, "connection: close"),
        post(BODY, "expect: 100-continue"),
        post(b" " * (2 * 2**20 + 1)),
    ],
)
async def test_everything_else_takes_the_long_way(request_: bytes) -> None:
    answer, ways = await respond(request_)
    assert ways == ["long"]
    assert b" 4" in answer.splitlines()[0] or b"100 Continue" in answer
