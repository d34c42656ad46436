"""The application: its page, and every failure explained without details."""

from pathlib import Path
from typing import Any

import pytest

from discreet.errors import StateOverflow
from discreet.hub.app import create_app
from discreet.hub.guard import SECRET_HEADER
from discreet.hub.hub import Hub
from discreet.hub.services import HubServices
from tests.hub.recommending import Recommending
from tests.hub.visiting import Visitor


@pytest.fixture
def page(hub: Hub, tmp_path: Path) -> Visitor:
    app = create_app(HubServices.of([hub]), folder=tmp_path, port=8765, secret="s", push_key="k")
    return Visitor(app, home="http://127.0.0.1:8765", headers={SECRET_HEADER: "s"})


@pytest.mark.parametrize(
    ("path", "type_"),
    [
        ("/", "text/html"),
        ("/hub.js", "text/javascript"),
        ("/hub.css", "text/css"),
        ("/icon.svg", "image/svg+xml"),
    ],
)
def test_the_page_has_its_types_whatever_the_platform_says(
    page: Visitor, path: str, type_: str
) -> None:
    answer = page.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].split(";")[0] == type_


def test_a_server_that_fails(page: Visitor, served: Recommending) -> None:
    served.fault = (500, b"")
    answer = page.post("/api/services/films/recommendations")
    assert answer.status_code == 502
    assert "kept on this device" in answer.json()["detail"]


def test_a_fault_of_our_own_is_admitted_without_details(
    page: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Hub, item: str) -> bool:
        raise RuntimeError("Film Number 1")

    monkeypatch.setattr(Hub, "see", fail)
    answer = page.post("/api/services/films/history", json={"item": "f1", "seen": True})
    assert answer.status_code == 500
    assert "Your history is kept" in answer.json()["detail"]
    assert "Film Number" not in answer.text


def test_other_errors_of_ours_are_named(page: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Hub, item: str) -> Any:
        raise StateOverflow("a sum is too large")

    monkeypatch.setattr(Hub, "see", fail)
    answer = page.post("/api/services/films/history", json={"item": "f1", "seen": True})
    assert (answer.status_code, answer.json()["detail"]) == (
        500,
        "That did not work: a sum is too large.",
    )
