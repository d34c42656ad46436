"""The short way for direct routes: what takes it, and what does not.

What it answers, against a running server, is compared with the long way in
tests/end_to_end/test_socket.py.
"""

import asyncio

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from discreet.app import create_app
from discreet.protocol import DirectProtocol
from discreet.settings import Settings
from discreet.state.memory import MemoryStore
from tests.api.conftest import KEY

pytestmark = pytest.mark.anyio


async def respond(request: bytes, *, pieces: int = 1) -> tuple[bytes, list[str]]:
    """Return what is answered over a real connection, and which way the request took."""
    app = create_app(Settings(api_key=KEY), opening=lambda _: MemoryStore())
    ways: list[str] = []

    class Watched(DirectProtocol):
        def on_message_complete(self) -> None:
            ways.append("long" if self._arriving is None else "short")
            super().on_message_complete()

    config = Config(app, interface="asgi3", lifespan="off", log_config=None, proxy_headers=False)
    config.load()
    async with app.router.lifespan_context(app) as live:
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(
            lambda: Watched(config=config, server_state=state, app_state=dict(live)),
            "127.0.0.1",
            0,
        )
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        size = -(-len(request) // pieces)
        for start in range(0, len(request), size):
            writer.write(request[start : start + size])
            await writer.drain()
        async with asyncio.timeout(30):
            head = await reader.readuntil(b"\r\n\r\n")
            if b"100 Continue" in head:
                head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            body = await reader.readexactly(length)
        writer.close()
        server.close()
    return head + body, ways


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
    assert answer.startswith(b"HTTP/1.1 4")
