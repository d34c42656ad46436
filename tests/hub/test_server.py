"""The server, near or far, well or not: plain words each time, and no way around TLS."""

import socket
from typing import Any

import pytest

from discreet.errors import InvalidArgument
from discreet.hub.errors import ServerError
from discreet.hub.server import RecommendationServer
from tests.hub.recommending import KEY, NAME, Recommending


def server(url: str, **changes: str) -> RecommendationServer:
    return RecommendationServer(**{"url": url, "recommender": NAME, "key": KEY, **changes})


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, b"{}", "does not know the key"),
        (403, b"{}", "scope that this needs"),
        (404, b"{}", "no recommender “films”"),
        (422, b'{"detail": "items: x is unknown"}', "items: x is unknown. If its catalogue"),
        (422, b"<html>", "does not say why"),
        (307, b"", "does not follow"),
        (500, b"", "status 500"),
        (200, b"<html>hello</html>", "not a recommendation server"),
        (200, b"[]", "cannot be read"),
    ],
)
def test_problems_are_explained(served: Recommending, status: int, body: bytes, words: str) -> None:
    served.fault = (status, body)
    with pytest.raises(ServerError, match=words) as refused:
        server(served.url).send_profile("me", ["f1"])
    assert "kept on this device" in str(refused.value)
    assert len(served.asked) == 1, "neither repeated nor followed"


@pytest.mark.parametrize(
    "answer",
    [b"{}", b'{"results": []}', b'{"results": [1, 2]}', b'{"results": [{}, {"status": 200}]}'],
)
def test_rows_that_are_none(served: Recommending, answer: bytes) -> None:
    served.fault = (200, answer)
    with pytest.raises(ServerError, match="cannot be read"):
        server(served.url).recommend("me", ["Drama"])


def test_a_row_that_was_refused_is_empty(served: Recommending) -> None:
    served.fault = (
        200,
        b'{"results": [{"status": 200, "items": [{"id": "a"}], "personalised": true},'
        b' {"status": 409, "problem": {}}]}',
    )
    rows = server(served.url).recommend("me", ["Drama"])
    assert [(row.category, row.items) for row in rows] == [(None, ("a",)), ("Drama", ())]


def test_nobody_there() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(ServerError, match="does not answer"):
        server(f"http://127.0.0.1:{port}").catalogue()


def test_a_profile_has_no_order(served: Recommending) -> None:
    server(served.url).send_profile("me", ["f3", "f1", "f2"])
    assert served.profiles["me"] == ["f1", "f2", "f3"]
    (_, path, headers, _) = served.asked[0]
    assert path == "/recommenders/films/profiles"
    assert headers["User-Agent"] == "discreet-hub"


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"url": "recommend.example"}, "--server"),
        ({"url": "http://recommend.example"}, "--server"),
        ({"url": "http://127.0.0.1.evil.example"}, "--server"),
        ({"url": "https://user:word@recommend.example"}, "--server"),
        ({"url": "ftp://127.0.0.1"}, "--server"),
        ({"recommender": ""}, "--recommender"),
        ({"key": ""}, "--key-file"),
        ({"key": "two\nlines"}, "--key-file"),
    ],
)
def test_what_cannot_be_a_server(changes: dict[str, Any], argument: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        server(**{"url": "https://recommend.example", **changes})
    assert refused.value.argument == argument


def test_names_are_quoted(served: Recommending) -> None:
    with pytest.raises(ServerError):
        server(served.url, recommender="../x?y").catalogue()
    assert served.asked[0][1] == "/recommenders/..%2Fx%3Fy/catalogue"
