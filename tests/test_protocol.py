"""The short way for direct routes: what takes it, and what does not.

What it answers, against a running server, is compared with the long way in
tests/end_to_end/test_socket.py.
"""

import pytest

from discreet.protocol import SHORT_BODY
from tests.front import fronting
from tests.front import post as request_to

pytestmark = pytest.mark.anyio


async def respond(request: bytes, *, pieces: int = 1) -> tuple[bytes, list[str]]:
    """Return what is answered over a real connection, and which way the request took."""
    size = -(-len(request) // pieces)
    parts = [request[start : start + size] for start in range(0, len(request), size)]
    async with fronting() as front:
        answer = await front.talk(*parts, finished=True)
    return answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n"), front.ways


def post(body: bytes, *headers: str, path: str = "/feedback", version: str = "1.1") -> bytes:
    return request_to(body, *headers, path=path, version=version)


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
        post(b" " * (SHORT_BODY + 1)),
    ],
)
async def test_everything_else_takes_the_long_way(request_: bytes) -> None:
    answer, ways = await respond(request_)
    assert ways == ["long"]
    assert answer.startswith(b"HTTP/1.1 4")
