"""Titles from elsewhere: a key of their own, bounds, and an answer that tells nothing."""

import stat
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import InvalidArgument
from discreet.hub import push, views
from discreet.hub.app import create_app
from discreet.hub.guard import SECRET_HEADER
from discreet.hub.hub import Hub
from discreet.hub.services import HubServices
from tests.hub.visiting import Visitor

KEY = {"Authorization": "Bearer hp_k"}
HOME = "http://127.0.0.1:8765"


@pytest.fixture
def device(hub: Hub, tmp_path: Path) -> Visitor:
    app = create_app(HubServices.of([hub]), folder=tmp_path, port=8765, secret="s", push_key="hp_k")
    return Visitor(app, home=HOME)


def test_titles_are_noted_and_the_answer_does_not_tell_what_was_known(
    device: Visitor, hub: Hub
) -> None:
    body = {"titles": ["Film Number 3", "FILM NUMBER 4 (1974)", "Nobody's"]}
    answers = [device.post("/push", json=body, headers=KEY) for _ in range(2)]
    assert [answer.json() for answer in answers] == [{"received": 3}] * 2
    assert views.state(hub)["history"] == 2
    assert views.state(hub)["unmatched"] == 0, "what names no item is not kept"


@pytest.mark.parametrize("origin", ["", "chrome-extension://abc", "moz-extension://abc"])
def test_extensions_may(device: Visitor, origin: str) -> None:
    headers = {**KEY, **({"Origin": origin} if origin else {})}
    assert device.post("/push", json={"titles": ["x"]}, headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer s"}, 401),
        ({SECRET_HEADER: "s"}, 401),
        ({**KEY, "Origin": "https://evil.example"}, 403),
        ({**KEY, "Host": "evil.example"}, 403),
    ],
)
def test_others_may_not(device: Visitor, hub: Hub, headers: dict[str, str], status: int) -> None:
    body = {"titles": ["Film Number 3"]}
    assert device.post("/push", json=body, headers=headers).status_code == status
    assert views.state(hub)["history"] == 0


def test_the_key_opens_nothing_else(device: Visitor) -> None:
    for path in ("/api/services", "/api/services/films/history"):
        assert device.get(path, headers={**KEY, SECRET_HEADER: "hp_k"}).status_code == 403
    assert device.get("/push", headers=KEY).status_code == 405


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"{", 422),
        (b"\xff", 422),
        (b"[]", 422),
        (b'{"titles": []}', 422),
        (b'{"titles": [""]}', 422),
        (b'{"titles": [1]}', 422),
        (b'{"titles": ["x"], "client": "me"}', 422),
        (b'{"titles": [' + b'"x",' * 1000 + b'"x"]}', 422),
        (b'{"titles": ["' + b"x" * (1 << 20) + b'"]}', 413),
    ],
)
def test_bodies_that_are_refused(device: Visitor, content: bytes, status: int) -> None:
    answer: Any = device.post("/push", content=content, headers=KEY)
    assert answer.status_code == status
    assert answer.json()["detail"]


def test_the_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    made = push.push_key(tmp_path)
    assert made == push.push_key(tmp_path)
    path = tmp_path / push.KEY_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    with pytest.raises(InvalidArgument, match="can be read by others"):
        push.push_key(tmp_path)
