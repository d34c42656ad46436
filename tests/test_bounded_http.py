"""What a stranger can send, and how much of it: over real connections, in this process."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from discreet.bounded_http import BoundedProtocol
from discreet.connections import HttpLimits
from tests.front import AUTHORISED, QUESTION, Front, fronting, post, statuses
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio

CLOSE = "connection: close"
CHUNKED = b"%x\r\n%b\r\n0\r\n" % (len(QUESTION), QUESTION)


@pytest.fixture(scope="module", params=["direct", "uvicorn"])
async def front(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncIterator[Front]:
    async with fronting(direct=request.param == "direct") as one:
        yield one


# Headers.


@pytest.mark.parametrize("piece", [500, 60_000])
async def test_headers_end_at_their_greatest_size(front: Front, piece: int) -> None:
    """One endless header, and an endless number of headers; in small pieces and in large ones."""
    for line in (b"a" * piece, b"x: %b\r\n" % (b"a" * (piece - 5))):
        head = b"GET /health/live HTTP/1.1\r\nhost: x\r\nx: "
        answer = await front.talk(head, *[line] * (400_000 // piece))
        assert statuses(answer) == [431]
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["type"].endswith(":headers-too-large")


async def test_the_number_of_headers_is_bounded(front: Front) -> None:
    few = post(QUESTION, *(f"x{i}: y" for i in range(90)), CLOSE)
    assert statuses(await front.talk(few)) == [200]
    many = post(QUESTION, *(f"x{i}: y" for i in range(120)))
    assert statuses(await front.talk(many)) == [431]


async def test_an_endless_address_or_chunk_extension_is_refused(front: Front) -> None:
    chunked = b"host: x\r\ntransfer-encoding: chunked\r\n\r\n1;"
    for start, expected in (
        (b"GET /", [431]),
        (b"POST /recommend HTTP/1.1\r\n" + AUTHORISED + chunked, [431]),
        # Refused before its body was read: a second answer would be taken for the next request's.
        (b"POST /recommend HTTP/1.1\r\n" + chunked, [401]),
    ):
        answer = await front.talk(start, *[b"a" * 5_000] * 20)
        assert statuses(answer) == expected


@pytest.mark.parametrize("host", ["", "host: a\r\nhost: a", "host: a\r\nHOST: b"])
async def test_http_1_1_needs_exactly_one_host(front: Front, host: str) -> None:
    before = await front.spent()
    assert statuses(await front.talk(post(host=host))) == [400]
    assert await front.spent() == before


async def test_http_1_0_needs_no_host(front: Front) -> None:
    assert statuses(await front.talk(post(version="1.0", host=""))) == [200]


async def test_two_keys_are_refused(front: Front) -> None:
    answer = await front.talk(post(QUESTION, "authorization: Bearer other"))
    assert statuses(answer) == [400]


@pytest.mark.parametrize(
    ("coding", "version"),
    [("gzip, chunked", "1.1"), ("identity, chunked", "1.1"), ("chunked", "1.0")],
)
async def test_the_one_transfer_coding_is_chunked(front: Front, coding: str, version: str) -> None:
    before = await front.spent()
    head = f"POST /recommend HTTP/{version}\r\nhost: x\r\ntransfer-encoding: {coding}\r\n".encode()
    answer = await front.talk(head + AUTHORISED + b"\r\n" + CHUNKED + b"\r\n", finished=True)
    assert statuses(answer) == [400]
    assert await front.spent() == before


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("content-length: 3", "Content-Length"),
        ("transfer-encoding: chunked", "Transfer-Encoding"),
        ("no colon", "header"),
    ],
)
async def test_what_cannot_be_parsed_is_named(front: Front, line: str, words: str) -> None:
    before = await front.spent()
    answer = await front.talk(post(QUESTION, line))
    assert statuses(answer) == [400]
    assert words in answer.decode().rpartition('"detail":"this is not HTTP/1.1: ')[2]
    assert await front.spent() == before


@pytest.mark.parametrize("address", ["http://x", "http://x?y", "http://x:y/recommend", "http://[/"])
async def test_an_address_that_cannot_be_read_is_answered(front: Front, address: str) -> None:
    request = post(path=address)
    answer = await front.talk(post() + request)
    assert statuses(answer) == [200, 400]
    assert statuses(await front.talk(post(path="http://x/recommend") + request)) == [200, 400]


# Trailers.


async def test_a_trailer_is_never_a_header(front: Front) -> None:
    before = await front.spent()
    head = b"POST /recommend HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n"
    closing = b"connection: close\r\n"
    assert statuses(
        await front.talk(head + closing + b"\r\n" + CHUNKED + AUTHORISED + b"\r\n")
    ) == [401]
    assert await front.spent() == before
    harmless = head + AUTHORISED + closing + b"\r\n" + CHUNKED + b"x-checksum: 1\r\n\r\n"
    assert statuses(await front.talk(harmless)) == [200]


async def test_trailers_end_at_their_greatest_size(front: Front) -> None:
    head = b"POST /recommend HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n"
    for line in (b"a" * 1_000, b"x: %b\r\n" % (b"a" * 995)):
        pieces = [head + AUTHORISED + b"\r\n" + CHUNKED + b"x: ", *[line] * 60]
        before = await front.spent()
        assert statuses(await front.talk(*pieces)) == [431]
        assert await front.spent() == before, "an incomplete request pays nothing"


# Other protocols, and callers who have finished.


async def test_a_wish_for_another_protocol_is_ignored(front: Front) -> None:
    wish = ("connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAMAAABk")
    request = post(QUESTION, *wish)
    assert statuses(await front.talk(request + post(QUESTION, CLOSE))) == [200, 200]
    assert statuses(await front.talk(request * 3 + post(QUESTION, CLOSE))) == [200] * 4
    pieces = [request[at : at + 7] for at in range(0, len(request), 7)]
    assert statuses(await front.talk(*pieces, finished=True)) == [200]
    chunked = (
        b"POST /recommend HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    )
    chunked += AUTHORISED + b"transfer-encoding: chunked\r\n\r\n" + CHUNKED + b"\r\n"
    assert statuses(await front.talk(chunked, finished=True)) == [200]


async def test_this_is_no_proxy(front: Front) -> None:
    answer = await front.talk(b"CONNECT example.org:443 HTTP/1.1\r\nhost: example.org\r\n\r\n")
    assert statuses(answer) == [400]


async def test_whoever_has_finished_sending_is_answered(front: Front) -> None:
    before = await front.spent()
    assert statuses(await front.talk(post(), finished=True)) == [200]
    assert statuses(await front.talk(post() * 3, finished=True)) == [200] * 3
    assert await front.spent() == before + 4


@pytest.mark.parametrize("size", [26, 200])
async def test_requests_that_wait_are_not_parsed(
    front: Front, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """A thousand of them in one piece, of a caller who reads, and of one who does not."""
    waiting: list[int] = []
    begin = BoundedProtocol.on_message_begin

    def watched(self: BoundedProtocol) -> None:
        waiting.append(len(self.pipeline))
        begin(self)

    monkeypatch.setattr(BoundedProtocol, "on_message_begin", watched)
    request = b"GET /x HTTP/1.1\r\nhost:\r\n\r\n".replace(b":", b":" + b" " * (size - 26))
    last = b"GET /x HTTP/1.1\r\nhost:\r\nconnection: close\r\n\r\n"
    answer = await front.talk(request * 1_000 + last)
    assert statuses(answer) == [404] * 1_001
    assert max(waiting) < 100
    # Whoever has finished sending is answered as well, to the last of what waited.
    answer = await front.talk(request * 1_000 + b"GET", finished=True)
    assert statuses(answer) == [404] * 1_000 + [400]
    with suppress(TimeoutError, OSError):
        await front.flood(request, request * 5_000, seconds=1)
    assert max(waiting) < 100


async def test_an_incomplete_request_is_refused_behind_complete_ones(front: Front) -> None:
    before = await front.spent()
    assert statuses(await front.talk(post() + post()[:-1], finished=True)) == [200, 400]
    assert statuses(await front.talk(post() + post()[:30], finished=True)) == [200, 400]
    assert statuses(await front.talk(post()[:-1], finished=True)) == [400]
    assert await front.spent() == before + 2
    assert statuses(await front.talk(post() + b"nonsense\r\n\r\n")) == [200, 400]


async def test_a_refused_caller_can_read_the_answer_while_sending(front: Front) -> None:
    """A connection that closes with unread bytes would be reset, and the answer lost."""
    answer = await front.talk(b"nonsense\r\n\r\n", *[b"a" * 10_000] * 20)
    assert statuses(answer) == [400]


@pytest.mark.parametrize("path", ["/recommend", "/recommenders/films/items", "/enrolments/redeem"])
@pytest.mark.parametrize("headers", [(), ("expect: 100-continue",)])
async def test_a_body_declared_too_large_is_refused_before_it_is_sent(
    front: Front, path: str, headers: tuple[str, ...]
) -> None:
    """And the connection closes, so that nothing else is taken for that body."""
    head = post(b"", *headers, path=path).replace(b"content-length: 0", b"content-length: 9999999")
    answer = await front.talk(head)
    assert statuses(answer) == [413]
    assert b"connection: close" in answer.lower()
    # Whoever sends it all the same, and only then reads, is answered too.
    body = [b" " * 65_536] * 40
    assert statuses(await front.talk(head, *body)) == [413]


async def test_a_body_that_turns_out_too_large_is_refused_while_it_is_sent(front: Front) -> None:
    chunked = b"POST /recommend HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n"
    pieces = [b"%x\r\n%b\r\n" % (65_536, b" " * 65_536)] * 40
    assert statuses(await front.talk(chunked + AUTHORISED + b"\r\n", *pieces)) == [413]


async def test_whoever_waits_to_send_a_body_and_is_refused_is_asked_for_none() -> None:
    """What came next might be the body, or another request: the connection ends at once."""
    head = post(QUESTION, "expect: 100-continue").removesuffix(QUESTION)
    async with fronting(HttpLimits(body_seconds=10 * PATIENCE)) as front:
        assert statuses(await front.talk(head.replace(b"Bearer", b"Basic"))) == [401]
        assert statuses(await front.talk(post(QUESTION, "expect: 100-continue", CLOSE))) == [
            100,
            200,
        ]


async def test_whoever_sends_without_end_is_cut_off(front: Front) -> None:
    endless = post().replace(b"content-length: ", b"content-length: 99999999")
    with pytest.raises(ConnectionError):
        await front.flood(endless.replace(b"Bearer", b"Basic"), b"a" * 65_536)


# Time.


async def test_slow_callers_are_told_so_and_silent_ones_dropped() -> None:
    limits = HttpLimits(header_seconds=2, body_seconds=2, idle_seconds=2)
    async with fronting(limits) as front:
        assert await front.talk(b"") == b"", "never a byte"
        assert statuses(await front.talk(b"\r\n\r\n")) == [], "nor a request"
        assert statuses(await front.talk(b"GET / HTTP/1.1\r\nho")) == [408]
        assert statuses(await front.talk(post()[:-1])) == [408], "the short way"
        assert statuses(await front.talk(post(QUESTION, "expect: 100-continue")[:-1])) == [100, 408]
        assert statuses(await front.talk(post())) == [200], "and then it is idle for too long"
        assert await front.spent() == 1.0
        assert len(front.table) == 0


async def test_a_trickle_does_not_buy_time() -> None:
    async with fronting(HttpLimits(header_seconds=1.0)) as front:
        reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
        async with asyncio.timeout(PATIENCE):
            answer = b""
            for byte in b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 10_000:
                writer.write(bytes([byte]))
                if reader.at_eof():
                    break
                try:
                    async with asyncio.timeout(0.05):
                        answer += await reader.read(65_536)
                except TimeoutError:
                    continue
                if answer:
                    break
        writer.close()
        assert statuses(answer) == [408]


async def test_whoever_does_not_read_is_dropped() -> None:
    async with fronting(HttpLimits(body_seconds=0.5)) as front:
        page = b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n"
        with pytest.raises(ConnectionError):
            await front.flood(b"", page * 20)
        await front.connected(0)


# Numbers.


async def test_connections_are_bounded_by_address_and_in_all() -> None:
    for limits in (HttpLimits(connections=3), HttpLimits(connections_by_address=3)):
        async with fronting(limits) as front:
            held = [await asyncio.open_connection("127.0.0.1", front.port) for _ in range(3)]
            await front.connected(3)
            refused = await front.talk(post())
            assert statuses(refused) == [429]
            assert b"retry-after: 1" in refused.lower()
            assert await front.spent() == 0.0
            held.pop()[1].close()
            await front.connected(2)
            assert statuses(await front.talk(post(QUESTION, CLOSE))) == [200]
            for _, writer in held:
                writer.close()
