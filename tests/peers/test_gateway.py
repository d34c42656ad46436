"""Messages to peers, against real sockets that misbehave in every way we could think of."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from discreet.errors import PeerUnavailable
from discreet.peers.circuit import FAILURES
from discreet.peers.gateway import MOST_AT_ONCE, MOST_URGENT_BYTES, HttpPeerGateway
from tests.peers.sockets import answering, http, listening
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def opened(
    *allowed: str,
    seconds: float = 5.0,
    urgent_seconds: float = 5.0,
    clock: Clock | None = None,
    changes: list[tuple[str, str, bool]] | None = None,
) -> AsyncIterator[HttpPeerGateway]:
    """A gateway that knows one peer, patient enough for any machine unless told otherwise."""
    noted = changes if changes is not None else []
    gateway = HttpPeerGateway(
        keys={"b": "the-key"},
        addresses={"b": (*allowed, "http://127.0.0.1:1")},
        changed=lambda *change: noted.append(change),
        seconds=seconds,
        urgent_seconds=urgent_seconds,
        clock=clock or Clock(),
    )
    try:
        yield gateway
    finally:
        await gateway.close()


async def reason(
    gateway: HttpPeerGateway, url: str, *, peer: str = "b", urgent: bool = False
) -> str:
    with pytest.raises(PeerUnavailable) as caught:
        await gateway.post(peer=peer, url=url, content=b"{}", urgent=urgent)
    return caught.value.reason


async def test_a_message_goes_out_with_the_key_and_its_answer_comes_back() -> None:
    async with listening(answering(http(200, b"yes"))) as server, opened(server.url) as gateway:
        assert await gateway.post(peer="b", url=server.url + "/x", content=b"no") == (200, b"yes")
        await gateway.post(peer="b", url=server.url + "/x", content=b"no")
        request, _ = server.requests
        assert server.connections == 1
    assert request.startswith(b"POST /x HTTP/1.1\r\n")
    assert b"authorization: Bearer the-key\r\n" in request
    assert request.endswith(b"\r\n\r\nno")


@pytest.mark.parametrize("status", [200, 307, 401, 404])
async def test_what_the_peer_answers_is_for_the_caller_to_judge(status: int) -> None:
    elsewhere = "location: http://127.0.0.1:9/elsewhere"
    content = http(status, b"?", elsewhere)
    async with listening(answering(content)) as server, opened(server.url) as gateway:
        for _ in range(FAILURES + 1):
            assert await gateway.post(peer="b", url=server.url, content=b"{}") == (status, b"?")


async def test_answers_that_the_caller_cannot_use_open_the_circuit() -> None:
    async with (
        listening(answering(http(200, b"nonsense"))) as server,
        opened(server.url) as gateway,
    ):
        for _ in range(FAILURES):
            assert gateway.reachable("b")
            await gateway.post(peer="b", url=server.url, content=b"{}")
            gateway.distrust(peer="b")
        assert not gateway.reachable("b")
        gateway.distrust(peer="nobody")


ANSWERS = {
    "an error": (http(500, b"{}"), "refused"),
    "a body without end": (http(200, b"x" * (MOST_URGENT_BYTES + 1)), "malformed"),
    "not http": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "dead"),
    "half an answer": (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nx", "slow"),
    "a headers bomb": (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 50_000 + b"\r\n", "dead"),
}


@pytest.mark.parametrize(("content", "why"), ANSWERS.values(), ids=ANSWERS)
async def test_whatever_goes_wrong_has_one_word_and_opens_the_circuit(
    content: bytes, why: str
) -> None:
    changes: list[tuple[str, str, bool]] = []
    seconds = 1.0 if why == "slow" else PATIENCE
    async with (
        listening(answering(content)) as server,
        opened(server.url, urgent_seconds=seconds, changes=changes) as gateway,
    ):
        for _ in range(FAILURES):
            assert gateway.reachable("b", urgent=True)
            assert await reason(gateway, server.url, urgent=True) == why
        assert not gateway.reachable("b", urgent=True)
        assert await reason(gateway, server.url, urgent=True) == "closed"
        assert changes == [("b", "questions", True)]
        assert len(server.requests) == FAILURES


async def test_only_urgent_answers_have_to_be_short() -> None:
    body = b"x" * (MOST_URGENT_BYTES + 1)
    async with listening(answering(http(200, body))) as server, opened(server.url) as gateway:
        assert await gateway.post(peer="b", url=server.url, content=b"{}") == (200, body)


async def test_compressed_answers_are_not_expanded() -> None:
    bomb = http(200, b"\x1f\x8b\x08\x00", "content-encoding: gzip")
    async with listening(answering(bomb)) as server, opened(server.url) as gateway:
        answer = await gateway.post(peer="b", url=server.url, content=b"{}")
        assert answer == (200, b"\x1f\x8b\x08\x00")


async def test_an_answer_that_drips_is_given_up_at_the_deadline() -> None:
    async def drip(writer: asyncio.StreamWriter, request: bytes) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with (
        listening(drip) as server,
        opened(server.url, seconds=2 * PATIENCE, urgent_seconds=1.0) as gateway,
    ):
        async with asyncio.timeout(PATIENCE):
            assert await reason(gateway, server.url, urgent=True) == "slow"


async def test_what_was_sent_is_not_sent_again() -> None:
    async def hang_up(writer: asyncio.StreamWriter, request: bytes) -> None:
        writer.close()

    async with listening(hang_up) as server, opened(server.url) as gateway:
        assert await reason(gateway, server.url) == "dead"
        assert len(server.requests) == 1


async def test_a_peer_that_comes_back_is_spoken_to_again() -> None:
    clock, changes = Clock(), list[tuple[str, str, bool]]()
    async with (
        listening(answering(http(200, b""))) as server,
        opened(server.url, clock=clock, changes=changes) as gateway,
    ):
        for _ in range(FAILURES):
            assert await reason(gateway, "http://127.0.0.1:1/") == "dead"
        clock.now += 60
        assert await gateway.post(peer="b", url=server.url, content=b"{}") == (200, b"")
        assert changes == [("b", "deliveries", True), ("b", "deliveries", False)]


async def test_unknown_peers_are_not_spoken_to() -> None:
    async with listening(answering(http(200, b""))) as server, opened(server.url) as gateway:
        assert not gateway.reachable("c")
        assert await reason(gateway, server.url, peer="c") == "closed"
        assert server.connections == 0


async def test_a_slow_peer_cannot_take_all_our_attention() -> None:
    release = asyncio.Event()

    async def wait(writer: asyncio.StreamWriter, request: bytes) -> None:
        await release.wait()
        writer.write(http(200, b""))

    async with listening(wait) as server, opened(server.url, seconds=60) as gateway:
        crowd = [
            asyncio.create_task(gateway.post(peer="b", url=server.url, content=b"{}"))
            for _ in range(MOST_AT_ONCE)
        ]
        await server.wait_for_requests(MOST_AT_ONCE)
        assert not gateway.reachable("b")
        assert await reason(gateway, server.url) == "busy"
        release.set()
        assert await asyncio.gather(*crowd) == [(200, b"")] * MOST_AT_ONCE
        assert gateway.reachable("b")


@pytest.mark.parametrize("urgent", [True, False], ids=["questions", "deliveries"])
async def test_what_a_peer_does_not_take_does_not_stop_the_rest(urgent: bool) -> None:
    """Slow first, so that all places are taken; then failing, so that the circuit opens."""
    release = asyncio.Event()

    async def one_of_two(writer: asyncio.StreamWriter, request: bytes) -> None:
        if request.startswith(b"POST /bad"):
            await release.wait()
            writer.write(http(500, b""))
        else:
            writer.write(http(200, b"yes"))

    async def good(gateway: HttpPeerGateway, url: str) -> tuple[int, bytes]:
        return await gateway.post(peer="b", url=f"{url}/good", content=b"{}", urgent=not urgent)

    async with (
        listening(one_of_two) as server,
        opened(server.url, seconds=60, urgent_seconds=60) as gateway,
    ):
        crowd = [
            asyncio.create_task(reason(gateway, f"{server.url}/bad", urgent=urgent))
            for _ in range(MOST_AT_ONCE)
        ]
        await server.wait_for_requests(MOST_AT_ONCE)
        assert not gateway.reachable("b", urgent=urgent)
        assert gateway.reachable("b", urgent=not urgent)
        assert await good(gateway, server.url) == (200, b"yes")
        release.set()
        assert set(await asyncio.gather(*crowd)) == {"refused"}
        assert not gateway.reachable("b", urgent=urgent)
        for _ in range(FAILURES + 1):
            assert gateway.reachable("b", urgent=not urgent)
            assert await good(gateway, server.url) == (200, b"yes")
        # What it answered well does not speak for what it does not take.
        assert await reason(gateway, f"{server.url}/bad", urgent=urgent) == "closed"


async def test_who_gives_up_blames_nobody() -> None:
    async def never(writer: asyncio.StreamWriter, request: bytes) -> None:
        await asyncio.sleep(600)

    async with listening(never) as server, opened(server.url, seconds=60) as gateway:
        for number in range(FAILURES + 1):
            task = asyncio.create_task(gateway.post(peer="b", url=server.url, content=b"{}"))
            await server.wait_for_requests(number + 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert gateway.reachable("b")


async def test_a_key_is_sent_to_addresses_that_the_operator_named_and_nowhere_else() -> None:
    """Somebody with an administrator's key puts a document that names another address."""
    async with listening(answering(http(200, b"thanks"))) as evil:
        port = evil.url.rsplit(":", 1)[1]
        async with opened("http://127.0.0.1:2", f"https://127.0.0.1:{port}") as gateway:
            for url in (
                evil.url,
                evil.url + "/peers",
                f"http://localhost:{port}",
                f"http://127.0.0.1:2@127.0.0.1:{port}",
                f"http://127.0.0.1:{port}#127.0.0.1:2",
                "no address",
                "http://[",
            ):
                assert await reason(gateway, url) == "closed"
        assert evil.requests == []
