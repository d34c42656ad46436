"""What arrives on a real socket: bodies that are too large, and what is not HTTP at all."""

import re
import socket
from collections.abc import Iterator

import pytest

from tests.end_to_end.servers import CALL_SECONDS, Server

MOST = 2 * 2**20


def talk(server: Server, request: bytes, *, hang_up: bool = True) -> bytes:
    """Send bytes over a connection of its own and return what comes back until it closes."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=CALL_SECONDS) as connection:
        connection.sendall(request)
        if hang_up:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while chunk := connection.recv(4_096):
            answer += chunk
    return answer


@pytest.mark.parametrize("path", ["/recommend", "/recommenders/films"])
def test_a_large_body_gets_its_answer_before_the_connection_closes(
    server: Server, path: str
) -> None:
    method = "POST" if path == "/recommend" else "PUT"

    def pieces() -> Iterator[bytes]:
        for _ in range(3 * MOST // 65_536):
            yield b" " * 65_536

    for content in (b" " * (MOST + 1), b" " * (3 * MOST), pieces()):
        answer = server.client.request(method, path, content=content)
        assert answer.status_code == 413
        assert answer.json()["type"] == "urn:discreet:problem:body-too-large"
        assert answer.headers["connection"] == "close"
    fits = server.client.request(method, path, content=b" " * MOST)
    assert fits.status_code == 400


def test_a_caller_who_waits_for_permission_is_refused_before_sending(server: Server) -> None:
    head = (
        f"POST /recommend HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n"
        f"Content-Length: {MOST + 1}\r\nExpect: 100-continue\r\n\r\n"
    )
    answer = talk(server, head.encode())
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"100 Continue" not in answer


@pytest.mark.parametrize(
    "request_",
    [
        b"canary\r\n\r\n",
        b"GET /canary HTTP/9.9\r\n\r\n",
        b"GET /clients/canary/budget HTTP/1.1\r\nHost: x\r\ncanary\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03canary",
        b"POST /recommend HTTP/1.1\r\nHost: x\r\nContent-Length: canary\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused_and_not_repeated(server: Server, request_: bytes) -> None:
    answer = talk(server, request_)
    assert answer.startswith(b"HTTP/1.1 4") or answer == b""
    assert b"canary" not in answer
    assert "canary" not in server.output


def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    one = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    last = b"GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer = talk(server, one + one + last, hang_up=False)
    assert re.findall(rb"HTTP/1\.1 (\d+)", answer) == [b"200", b"200", b"404"]


CLOSING = "Connection: close\r\n"


def posts(server: Server, path: str, bodies: list[str], last: str = "") -> bytes:
    """Return requests as they would be written to one connection; `last` has more headers."""
    return b"".join(
        f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n"
        f"Content-Length: {len(body)}\r\n{last if i == len(bodies) else ''}\r\n{body}".encode()
        for i, body in enumerate(bodies, 1)
    )


def test_the_short_way_and_the_long_way_answer_alike(server: Server) -> None:
    """A declared length takes the short way; chunks, `Expect`, a query and HTTP/1.0 do not."""
    server.put("ways")
    body = '{"recommender":"ways","client":"x","context":[0.5,0.5],"event_id":"both ways"}'
    key = f"Authorization: Bearer {server.key}\r\n"
    length = f"Content-Length: {len(body)}\r\n"
    chunked = f"{len(body):x}\r\n{body}\r\n0\r\n\r\n"
    ways = [
        f"POST /recommend HTTP/1.1\r\nHost: x\r\n{key}{length}\r\n{body}",
        f"POST /recommend HTTP/1.1\r\nHost: x\r\n{key}Transfer-Encoding: chunked\r\n\r\n{chunked}",
        f"POST /recommend HTTP/1.1\r\nHost: x\r\n{key}{length}Connection: close\r\n\r\n{body}",
        f"POST /recommend HTTP/1.1\r\nHost: x\r\n{key}{length}Expect: 100-continue\r\n\r\n{body}",
        f"POST /recommend? HTTP/1.1\r\nHost: x\r\n{key}{length}\r\n{body}",
        f"POST /recommend HTTP/1.0\r\n{key}{length}\r\n{body}",
    ]
    contents = set()
    for way in ways:
        closing = talk(server, way.encode() + posts(server, "/recommend", ["{"], CLOSING),
                       hang_up=False)  # fmt: skip
        head, _, rest = closing.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").partition(
            b"\r\n\r\n"
        )
        assert head.startswith(b"HTTP/1.1 200 OK"), closing
        assert b"content-type: application/json" in head.lower()
        assert b"x-request-id: " in head.lower()
        size = int(re.search(rb"content-length: (\d+)", head.lower())[1])  # type: ignore[index]
        contents.add(rest[:size])
    assert len(contents) == 1, "and pay once"
    assert server.budget("ways", "x") == 1.0


def test_direct_requests_may_be_pipelined(server: Server) -> None:
    server.put("piped")
    good = '{"recommender":"piped","client":"x","context":[0.5,0.5]}'
    bodies = [good, "{", good, good.replace("0.5]", "7]"), good]
    answer = talk(server, posts(server, "/recommend", bodies, CLOSING), hang_up=False)
    assert re.findall(rb"HTTP/1\.1 (\d+)", answer) == [b"200", b"400", b"200", b"422", b"200"]
    assert server.budget("piped", "x") == 3.0


def test_a_body_may_arrive_byte_by_byte(server: Server) -> None:
    server.put("slow")
    good = '{"recommender":"slow","client":"x","context":[0.5,0.5]}'
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=CALL_SECONDS) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in posts(server, "/recommend", [good]):
            connection.sendall(bytes([byte]))
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 OK")


def test_a_caller_who_leaves_early_disturbs_nobody(server: Server) -> None:
    server.put("leaving")
    good = '{"recommender":"leaving","client":"x","context":[0.5,0.5]}'
    whole = posts(server, "/recommend", [good])
    host, port = server.url.removeprefix("http://").split(":")
    for cut in (len(whole), len(whole) - 1, len(whole) // 2):
        with socket.create_connection((host, int(port)), timeout=CALL_SECONDS) as connection:
            connection.sendall(whole[:cut])
    assert server.client.post("/recommend", content=good).status_code == 200
    assert not [line for line in server.lines if line["level"] == "error"]


def test_head_is_get_without_its_body(server: Server) -> None:
    """Load balancers and link checkers ask so."""
    head = f"Host: x\r\nAuthorization: Bearer {server.key}\r\n"
    two = f"HEAD /health/live HTTP/1.1\r\n{head}\r\nHEAD /recommend HTTP/1.1\r\n{head}"
    live, refused, rest = talk(server, f"{two}\r\n".encode()).split(b"\r\n\r\n")
    assert live.startswith(b"HTTP/1.1 200 ")
    assert refused.startswith(b"HTTP/1.1 405 ")
    assert rest == b""
    assert server.client.head("/recommenders").status_code == 200
