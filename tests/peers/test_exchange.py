"""Messages to peers, against real sockets that misbehave."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from discreet.errors import PeerUnavailable
from discreet.peers.circuit import FAILURES
from discreet.peers.exchange import MOST_AT_ONCE, Exchange
from tests.peers.test_vendors import Clock, heard, http, listening, saying

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def speaking(
    *,
    seconds: float = 5.0,
    clock: Clock | None = None,
    changes: list[tuple[str, bool]] | None = None,
) -> AsyncIterator[Exchange]:
    noted = changes if changes is not None else []
    exchange = Exchange(
        keys={"b": "the-key"},
        changed=lambda name, is_open: noted.append((name, is_open)),
        seconds=seconds,
        most_bytes=1_000,
        clock=clock or Clock(),
    )
    try:
        yield exchange
    finally:
        await exchange.close()


async def reason(exchange: Exchange, url: str, peer: str = "b") -> str:
    with pytest.raises(PeerUnavailable) as caught:
        await exchange.post(peer=peer, url=url, content=b"{}")
    return caught.value.reason


async def test_a_message_goes_out_with_the_key_and_its_answer_comes_back() -> None:
    async with listening(saying(http(200, b"yes"))) as server, speaking() as exchange:
        assert await exchange.post(peer="b", url=server.url + "/x", content=b"no") == (200, b"yes")
        (request,) = server.requests
    assert request.startswith(b"POST /x HTTP/1.1\r\n")
    assert b"authorization: Bearer the-key\r\n" in request
    assert request.endswith(b"\r\n\r\nno")


async def test_a_refusal_is_the_peers_word_and_no_failure() -> None:
    async with listening(saying(http(404, b"?"))) as server, speaking() as exchange:
        for _ in range(FAILURES + 1):
            assert await exchange.post(peer="b", url=server.url, content=b"{}") == (404, b"?")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (http(500, b""), "refused"),
        (http(200, b"x" * 1_001), "malformed"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "dead"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nx", "slow"),
    ],
    ids=["an error", "a body without end", "not http", "half an answer"],
)
async def test_whatever_goes_wrong_has_one_word_and_opens_the_circuit(
    content: bytes, why: str
) -> None:
    changes: list[tuple[str, bool]] = []
    seconds = 0.1 if why == "slow" else 5.0
    async with (
        listening(saying(content)) as server,
        speaking(seconds=seconds, changes=changes) as exchange,
    ):
        for _ in range(FAILURES):
            assert exchange.reachable("b")
            assert await reason(exchange, server.url) == why
        assert not exchange.reachable("b")
        assert await reason(exchange, server.url) == "closed"
        assert changes == [("b", True)]
        assert len(server.requests) == FAILURES


async def test_a_peer_that_comes_back_is_spoken_to_again() -> None:
    clock, changes = Clock(), list[tuple[str, bool]]()
    async with (
        listening(saying(http(200, b""))) as server,
        speaking(clock=clock, changes=changes) as exchange,
    ):
        for _ in range(FAILURES):
            assert await reason(exchange, "http://127.0.0.1:1/") == "dead"
        clock.now += 60
        assert await exchange.post(peer="b", url=server.url, content=b"{}") == (200, b"")
        assert changes == [("b", True), ("b", False)]


async def test_strangers_and_crowds_are_not_spoken_to() -> None:
    release = asyncio.Event()

    async def wait(writer: asyncio.StreamWriter, request: bytes) -> None:
        await release.wait()
        writer.write(http(200, b""))

    async with listening(wait) as server, speaking(seconds=30) as exchange:
        assert await reason(exchange, server.url, peer="c") == "closed"
        assert not exchange.reachable("c")
        crowd = [
            asyncio.create_task(exchange.post(peer="b", url=server.url, content=b"{}"))
            for _ in range(MOST_AT_ONCE)
        ]
        await heard(server, MOST_AT_ONCE)
        assert await reason(exchange, server.url) == "busy"
        release.set()
        assert await asyncio.gather(*crowd) == [(200, b"")] * MOST_AT_ONCE


async def test_who_gives_up_blames_nobody() -> None:
    async def never(writer: asyncio.StreamWriter, request: bytes) -> None:
        await asyncio.sleep(600)

    async with listening(never) as server, speaking(seconds=30) as exchange:
        for number in range(FAILURES + 1):
            task = asyncio.create_task(exchange.post(peer="b", url=server.url, content=b"{}"))
            await heard(server, number + 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert exchange.reachable("b")
        for _ in range(FAILURES):
            exchange.distrust(peer="b")
        assert not exchange.reachable("b")
        exchange.distrust(peer="nobody")
