"""The one place from which bytes leave: TLS or loopback, no redirection, bounded answers."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from discreet.errors import InvalidArgument
from discreet.hub import outgoing
from discreet.hub.errors import ServerError
from discreet.hub.outgoing import call, refusal, require_safe
from tests.waiting import join


@pytest.mark.parametrize(
    "url", ["https://x.example", "http://127.0.0.1:1", "http://localhost/x", "http://[::1]:80"]
)
def test_safe_addresses(url: str) -> None:
    require_safe(url, "--server")


@pytest.mark.parametrize(
    "url", ["x.example", "ftp://x.example", "http://x.example", "https://a:b@x.example", "https://"]
)
def test_unsafe_addresses(url: str) -> None:
    with pytest.raises(InvalidArgument, match="--server"):
        require_safe(url, "--server")


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Answer one connection with these bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/x"
        join(thread)


def test_nothing_to_read_is_nothing() -> None:
    with answering(b"HTTP/1.1 204 No Content\r\n\r\n") as url:
        assert call("GET", url, None, headers={}, seconds=30) == (204, None)


def test_a_redirection_comes_back_as_one() -> None:
    head = b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
    with answering(head) as url:
        status, detail = call("GET", url, None, headers={}, seconds=30)
    assert status == 302
    assert "does not follow" in str(refusal(status, detail, missing=""))


def test_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "MOST_BYTES", 8)
    body = b'"' + b"x" * 20 + b'"'
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body)
    with answering(head + body) as url, pytest.raises(ServerError, match="larger than"):
        call("GET", url, None, headers={}, seconds=30)


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "the key"), (403, "scope"), (404, "Nobody home."), (429, "busy"), (500, "status 500")],
)
def test_refusals_are_explained(status: int, words: str) -> None:
    assert words in str(refusal(status, None, missing="Nobody home."))
