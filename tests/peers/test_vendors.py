"""The way to vendors, against real sockets that misbehave in every way we could think of."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from discreet.families.p_dap.forwarding import Forward
from discreet.errors import PeerUnavailable
from discreet.peers.circuit import FAILURES
from discreet.peers.vendors import MOST_AT_ONCE, HttpVendors
from discreet.peers.wire import MOST_BYTES

pytestmark = pytest.mark.anyio

FORWARD = Forward("films/2", level=1, centre=(0.25, 0.75), epsilon=0.5, training=True, stream="s1")
GOOD = json.dumps({"handle": "h", "expires_at": 1_900_000_000, "sums": None}).encode()

Answer = Callable[[asyncio.StreamWriter, bytes], Awaitable[None]]


def http(status: int, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def saying(content: bytes) -> Answer:
    async def answer(writer: asyncio.StreamWriter, request: bytes) -> None:
        writer.write(content)

    return answer


class Socket:
    """A server that reads one request a time and answers with whatever bytes it is told to."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[bytes] = []
        self.heard = asyncio.Condition()
        self.connections = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                request = head + await reader.readexactly(length)
                async with self.heard:
                    self.requests.append(request)
                    self.heard.notify_all()
                await self.answer(writer, request)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def listening(answer: Answer) -> AsyncIterator[Socket]:
    held = Socket(answer)
    server = await asyncio.start_server(held.serve, "127.0.0.1", 0)
    held.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield held
    finally:
        server.close()


async def heard(server: Socket, requests: int) -> None:
    async with server.heard:
        await server.heard.wait_for(lambda: len(server.requests) >= requests)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def asking(
    url: str, *, seconds: float = 5.0, clock: Clock | None = None
) -> AsyncIterator[HttpVendors]:
    """A gateway that knows one vendor, patient enough for any machine unless told otherwise."""
    vendors = HttpVendors(
        keys={"b": "the-key"},
        address_of=lambda recommender, vendor: url if vendor == "b" else None,
        timeout=seconds,
        clock=clock or Clock(),
    )
    try:
        yield vendors
    finally:
        await vendors.close()


async def reason(vendors: HttpVendors) -> str:
    with pytest.raises(PeerUnavailable) as caught:
        await vendors.forward(vendor="b", forward=FORWARD)
    return caught.value.reason


async def test_a_question_says_what_it_should_and_nothing_else() -> None:
    async with listening(saying(http(200, GOOD))) as server, asking(server.url) as vendors:
        answer = await vendors.forward(vendor="b", forward=FORWARD)
        assert (answer.handle, answer.sums) == ("h", None)
        await vendors.feedback(vendor="b", recommender="films", handle="h", reward=0.5)
        first, second = server.requests
    head, _, body = first.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /peers/recommenders/films%2F2/forwards HTTP/1.1\r\n")
    assert b"authorization: Bearer the-key" in head
    assert json.loads(body) == {
        "level": 1,
        "centre": [0.25, 0.75],
        "epsilon": 0.5,
        "training": True,
        "stream": "s1",
    }
    assert second.startswith(b"POST /peers/recommenders/films/feedback HTTP/1.1\r\n")
    assert json.loads(second.partition(b"\r\n\r\n")[2]) == {"handle": "h", "reward": 0.5}
    assert server.connections == 1


ANSWERS = {
    "no json": (http(200, b"nonsense"), "malformed"),
    "a number that is none": (http(200, GOOD.replace(b"null", b"NaN")), "malformed"),
    "a body without end": (http(200, b"x" * (MOST_BYTES + 1)), "malformed"),
    "not http": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "dead"),
    "half an answer": (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nx", "slow"),
    "a redirect": (http(307, b"", "location: http://127.0.0.1:9/elsewhere"), "refused"),
    "unauthorised": (http(401, b"{}"), "refused"),
    "an error": (http(500, b"{}"), "refused"),
    "a headers bomb": (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 50_000 + b"\r\n", "dead"),
    "compressed": (http(200, b"\x1f\x8b\x08\x00", "content-encoding: gzip"), "malformed"),
}


@pytest.mark.parametrize(("content", "why"), ANSWERS.values(), ids=ANSWERS)
async def test_whatever_is_wrong_with_an_answer_has_one_word(content: bytes, why: str) -> None:
    seconds = 0.3 if why == "slow" else 5.0
    async with (
        listening(saying(content)) as server,
        asking(server.url, seconds=seconds) as vendors,
    ):
        assert await reason(vendors) == why
        assert len(server.requests) == 1


async def test_an_answer_that_drips_is_given_up_at_the_deadline() -> None:
    async def drip(writer: asyncio.StreamWriter, request: bytes) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with listening(drip) as server, asking(server.url, seconds=0.3) as vendors:
        async with asyncio.timeout(30):
            assert await reason(vendors) == "slow"


async def test_what_was_sent_is_not_sent_again() -> None:
    async def hang_up(writer: asyncio.StreamWriter, request: bytes) -> None:
        writer.close()

    async with listening(hang_up) as server, asking(server.url) as vendors:
        assert await reason(vendors) == "dead"
        assert len(server.requests) == 1


async def test_nobody_there_is_dead_and_opens_the_circuit() -> None:
    clock = Clock()
    async with listening(saying(http(200, GOOD))) as server:
        url = server.url
    changes: list[tuple[str, bool]] = []
    vendors = HttpVendors(
        keys={"b": "k"},
        address_of=lambda *_: url,
        changed=lambda name, is_open: changes.append((name, is_open)),
        clock=clock,
        timeout=5.0,
    )
    for _ in range(FAILURES):
        assert vendors.reachable("b")
        assert await reason(vendors) == "dead"
    assert changes == [("b", True)]
    assert not vendors.reachable("b")
    assert await reason(vendors) == "closed"
    clock.now += 1.0
    assert vendors.reachable("b")
    assert await reason(vendors) == "dead"
    assert not vendors.reachable("b")
    await vendors.close()


async def test_a_vendor_that_is_back_is_asked_again() -> None:
    clock = Clock()
    async with (
        listening(saying(http(500, b""))) as server,
        asking(server.url, clock=clock) as vendors,
    ):
        for _ in range(FAILURES):
            await reason(vendors)
        server.answer = saying(http(200, GOOD))
        assert await reason(vendors) == "closed"
        clock.now += 1.0
        await vendors.forward(vendor="b", forward=FORWARD)
        assert vendors.reachable("b")
        await vendors.forward(vendor="b", forward=FORWARD)


async def test_distrust_counts_as_failure() -> None:
    async with listening(saying(http(200, GOOD))) as server, asking(server.url) as vendors:
        for _ in range(FAILURES):
            vendors.distrust(vendor="b")
        vendors.distrust(vendor="nobody")
        assert not vendors.reachable("b")


async def test_a_slow_vendor_cannot_take_all_our_attention() -> None:
    hold = asyncio.Event()

    async def wait(writer: asyncio.StreamWriter, request: bytes) -> None:
        await hold.wait()
        writer.write(http(200, GOOD))

    async with listening(wait) as server, asking(server.url, seconds=60) as vendors:
        tasks = [
            asyncio.create_task(vendors.forward(vendor="b", forward=FORWARD))
            for _ in range(MOST_AT_ONCE)
        ]
        await heard(server, MOST_AT_ONCE)
        assert not vendors.reachable("b")
        assert await reason(vendors) == "busy"
        hold.set()
        answers = await asyncio.gather(*tasks)
        assert len(answers) == MOST_AT_ONCE
        assert vendors.reachable("b")


async def test_a_caller_that_goes_away_blames_nobody() -> None:
    hold = asyncio.Event()

    async def wait(writer: asyncio.StreamWriter, request: bytes) -> None:
        await hold.wait()

    async with listening(wait) as server, asking(server.url, seconds=60) as vendors:
        for number in range(FAILURES + 1):
            task = asyncio.create_task(vendors.forward(vendor="b", forward=FORWARD))
            await heard(server, number + 1)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert vendors.reachable("b")
        hold.set()


async def test_a_vendor_without_a_key_or_an_address_is_not_asked() -> None:
    async with listening(saying(http(200, GOOD))) as server, asking(server.url) as vendors:
        assert not vendors.reachable("c")
        for name in ("c", "d"):
            with pytest.raises(PeerUnavailable) as caught:
                await vendors.forward(vendor=name, forward=FORWARD)
            assert caught.value.reason == "closed"
        assert server.connections == 0


@pytest.mark.parametrize("status", [200, 400, 404, 409, 410, 422])
async def test_feedback_that_will_never_be_taken_is_done_with(status: int) -> None:
    async with listening(saying(http(status, b"{}"))) as server, asking(server.url) as vendors:
        await vendors.feedback(vendor="b", recommender="films", handle="h", reward=1.0)
        assert server.connections == 1


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503, 302])
async def test_feedback_that_may_be_taken_later_is_tried_later(status: int) -> None:
    async with listening(saying(http(status, b"{}"))) as server, asking(server.url) as vendors:
        with pytest.raises(PeerUnavailable):
            await vendors.feedback(vendor="b", recommender="films", handle="h", reward=1.0)
