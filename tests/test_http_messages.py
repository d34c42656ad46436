"""A head without the wish for another protocol; an answer that ends a connection."""

import json

from discreet.api.problems import BAD_REQUEST, TOO_MANY_CONNECTIONS
from discreet.http_messages import RequestRefused, head_without_upgrade, last_answer


def test_only_the_wish_is_left_out() -> None:
    headers = [
        (b"host", b"x"),
        (b"upgrade", b"h2c"),
        (b"connection", b"Upgrade, close , HTTP2-Settings"),
        (b"http2-settings", b"AAMA"),
        (b"content-length", b"2"),
    ]
    head = head_without_upgrade(b"POST / HTTP/1.1", headers)
    assert head == (b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n")


def test_the_last_answer_is_whole_and_says_that_it_is_the_last() -> None:
    for kind, retry in ((BAD_REQUEST, False), (TOO_MANY_CONNECTIONS, True)):
        answer = last_answer(RequestRefused(kind, "because"), [(b"server", b"x")])
        head, _, content = answer.partition(b"\r\n\r\n")
        assert head.startswith(f"HTTP/1.1 {kind.status} ".encode())
        assert json.loads(content)["detail"] == "because"
        lines = head.lower().split(b"\r\n")
        assert b"content-length: %d" % len(content) in lines
        assert b"connection: close" in lines
        assert b"server: x" in lines
        assert (b"retry-after: 1" in lines) == retry
