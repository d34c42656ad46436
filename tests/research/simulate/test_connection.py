"""One connection, against servers that answer in every way HTTP/1.1 allows, and in a few more."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from discreet.research.simulate import connection as module
from discreet.research.simulate.connection import HttpAnswer, NoAnswer, ServerConnection
from tests.waiting import PATIENCE

Script = Sequence[Sequence[bytes]]
"""For each request the pieces to answer with; `HANG_UP` closes, `SILENCE` waits for ever."""

HANG_UP = b"<hang up>"
SILENCE = b"<silence>"
CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def with_length(body: bytes, status: str = "200 OK", extra: bytes = b"") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n".encode()
    return head + extra + b"\r\n" + body


class Server:
    """Answers request n with the n-th script, and remembers what it was asked."""

    def __init__(self, script: Script) -> None:
        self.script = list(script)
        self.requests: list[bytes] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.script:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(size))
                for piece in self.script.pop(0):
                    if piece == HANG_UP:
                        return
                    if piece == SILENCE:
                        await reader.read()
                        return
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
        except asyncio.IncompleteReadError:
            return
        finally:
            writer.close()


def converse(
    script: Script, talk: Callable[[ServerConnection], Awaitable[list[HttpAnswer]]]
) -> tuple[list[HttpAnswer], Server]:
    async def scene() -> tuple[list[HttpAnswer], Server]:
        server = Server(script)
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        connection = ServerConnection(url=f"http://127.0.0.1:{port}/base/", key="secret")
        try:
            return await asyncio.wait_for(talk(connection), PATIENCE), server
        finally:
            connection.close()
            listening.close()
            await asyncio.sleep(0)

    return asyncio.run(scene())


async def once(connection: ServerConnection) -> list[HttpAnswer]:
    return [await connection.call("POST", "/recommend", {"a": 1})]


async def twice(connection: ServerConnection) -> list[HttpAnswer]:
    return [await connection.call("POST", "/one", {"a": 1}), await connection.call("GET", "/two")]


def test_what_is_sent() -> None:
    answers, server = converse([[with_length(b'{"x": 1}')], [with_length(b"{}")]], twice)
    assert answers == [HttpAnswer(200, {"x": 1}, 0.0), HttpAnswer(200, {}, 0.0)]
    assert server.connections == 1
    first, second = server.requests
    assert first.startswith(b"POST /base/one HTTP/1.1\r\n")
    assert b"Authorization: Bearer secret\r\n" in first
    assert first.endswith(b'\r\n\r\n{"a": 1}')
    assert second.startswith(b"GET /base/two HTTP/1.1\r\n")


def test_names_are_quoted() -> None:
    async def talk(connection: ServerConnection) -> list[HttpAnswer]:
        return [await connection.call("GET", "/recommenders/a b\r\nX: y?")]

    _, server = converse([[with_length(b"{}")]], talk)
    assert server.requests[0].startswith(b"GET /base/recommenders/a%20b%0D%0AX%3A%20y%3F HTTP/1.1")


@pytest.mark.parametrize(
    "pieces",
    [
        [CHUNKED_HEAD, b'4\r\n{"x"\r\n4\r\n: 1}\r\n0\r\n\r\n'],
        [bytes([byte]) for byte in with_length(b'{"x": 1}')],
        [b'HTTP/1.0 200 OK\r\nServer: old\r\n\r\n{"x": 1}', HANG_UP],
    ],
)
def test_every_way_to_end_a_body(pieces: list[bytes]) -> None:
    answers, _ = converse([pieces], once)
    assert answers == [HttpAnswer(200, {"x": 1}, 0.0)]


@pytest.mark.parametrize("body", [b"", b"[1, 2]", b"not json", b"\xff\xfe"])
def test_what_is_not_an_object_is_nothing(body: bytes) -> None:
    answers, _ = converse([[with_length(body, "500 Oops")]], once)
    assert answers == [HttpAnswer(500, None, 0.0)]


def test_how_long_to_stay_away() -> None:
    answers, _ = converse([[with_length(b"{}", "503 Gone", b"Retry-After: 7\r\n")]], once)
    assert answers == [HttpAnswer(503, {}, 7.0)]


@pytest.mark.parametrize(
    "pieces",
    [
        [HANG_UP],
        [with_length(b'{"x": 1}')[:-2], HANG_UP],
        [b"HTTP/1.1 200", HANG_UP],
        [b"this is not HTTP\r\n\r\n"],
    ],
)
def test_no_answer_and_then_one_on_a_new_connection(pieces: list[bytes]) -> None:
    async def talk(connection: ServerConnection) -> list[HttpAnswer]:
        with pytest.raises(NoAnswer):
            await connection.call("POST", "/one", {})
        return [await connection.call("POST", "/two", {})]

    answers, server = converse([pieces, [with_length(b"{}")]], talk)
    assert answers == [HttpAnswer(200, {}, 0.0)]
    # Nothing was sent twice: a recommendation that was asked for again would be paid for again.
    assert [request.split()[1] for request in server.requests] == [b"/base/one", b"/base/two"]
    assert server.connections == 2


@pytest.mark.parametrize("goodbye", [True, False])
def test_a_server_may_hang_up_between_requests(goodbye: bool) -> None:
    extra = b"Connection: close\r\n" if goodbye else b""

    async def talk(connection: ServerConnection) -> list[HttpAnswer]:
        first = await connection.call("POST", "/one", {})
        # Nobody announces the end of a stream, so it is looked for.
        while connection._streams is not None and not connection._streams[0].at_eof():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        return [first, await connection.call("POST", "/two", {})]

    script = [[with_length(b"{}", extra=extra), HANG_UP], [with_length(b"{}")]]
    answers, server = converse(script, talk)
    assert len(answers) == 2
    assert server.connections == 2


def test_silence_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.05)

    async def talk(connection: ServerConnection) -> list[HttpAnswer]:
        with pytest.raises(NoAnswer, match="too long"):
            await connection.call("POST", "/one", {})
        return []

    converse([[SILENCE]], talk)
