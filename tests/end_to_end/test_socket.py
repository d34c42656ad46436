"""What arrives on a real socket: bodies that are too large, and what is not HTTP at all."""

import re
import socket
from collections.abc import Iterator

import pytest

from tests.end_to_end.servers import Server

MOST = 2 * 2**20


def talk(server: Server, request: bytes, *, hang_up: bool = True) -> bytes:
    """Send bytes over a connection of its own and return what comes back until it closes."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
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
