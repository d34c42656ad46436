"""The hub answers its own page and nobody else, whatever they pretend."""

from pathlib import Path

import pytest

from discreet.hub.app import create_app
from discreet.hub.guard import SECRET_HEADER
from discreet.hub.hub import Hub
from discreet.hub.services import HubServices
from tests.hub.visiting import Visitor

PORT = 8765
SECRET = "s3cret-of-this-start"
HOME = f"http://127.0.0.1:{PORT}"


@pytest.fixture
def visitor(hub: Hub, tmp_path: Path) -> Visitor:
    return Visitor(
        create_app(HubServices.of([hub]), folder=tmp_path, port=PORT, secret=SECRET, push_key="k"),
        home=HOME,
    )


def with_secret(**more: str) -> dict[str, str]:
    return {SECRET_HEADER: SECRET, **{name.replace("_", "-"): v for name, v in more.items()}}


def test_the_page_itself_shows_nothing_private(visitor: Visitor) -> None:
    answer = visitor.get("/")
    assert answer.status_code == 200
    assert SECRET not in answer.text
    for name in ("hub.js", "calls.js", "hub.css", "icon.svg"):
        assert visitor.get(f"/{name}").status_code == 200
    # Browsers run no script of another type, whatever the platform has registered.
    assert visitor.get("/hub.js").headers["content-type"].startswith("text/javascript")


@pytest.mark.parametrize("path", ["/", "/hub.js", "/api/services/films/state", "/nowhere"])
def test_every_answer_carries_the_policy(visitor: Visitor, path: str) -> None:
    headers = visitor.get(path, headers=with_secret()).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers


def test_without_the_secret_there_is_nothing(visitor: Visitor) -> None:
    assert visitor.get("/api/services/films/state", headers=with_secret()).status_code == 200
    for wrong in ({}, {SECRET_HEADER: ""}, {SECRET_HEADER: SECRET[:-1]}, {"Cookie": SECRET}):
        for method, path in (
            ("GET", "/api/services/films/state"),
            ("DELETE", "/api/services/films/history"),
            ("GET", "/api/x"),
        ):
            answer = visitor.request(method, path, headers=wrong)
            assert answer.status_code == 403
            assert "address that the hub printed" in answer.json()["detail"]


@pytest.mark.parametrize(
    "host",
    ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"[::1]:{PORT}", ""],
)
def test_a_name_that_was_bent_to_loopback_is_refused(visitor: Visitor, host: str) -> None:
    for path in ("/", "/api/services/films/state"):
        assert visitor.get(path, headers=with_secret(Host=host)).status_code == 403


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}"])
def test_its_own_names_are_answered(visitor: Visitor, host: str) -> None:
    assert (
        visitor.get("/api/services/films/state", headers=with_secret(Host=host)).status_code == 200
    )


@pytest.mark.parametrize(
    "foreign",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://127.0.0.1:{PORT + 1}"},
        {"Origin": f"https://127.0.0.1:{PORT}"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"},
    ],
)
def test_other_pages_are_refused_even_with_the_secret(
    visitor: Visitor, foreign: dict[str, str]
) -> None:
    body = {"item": "f1", "seen": True}
    assert (
        visitor.post(
            "/api/services/films/history", json=body, headers=with_secret(**foreign)
        ).status_code
        == 403
    )
    own = with_secret(Origin=HOME, Sec_Fetch_Site="same-origin")
    assert visitor.post("/api/services/films/history", json=body, headers=own).status_code == 200


def test_following_a_link_to_the_page_is_allowed(visitor: Visitor) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert visitor.get("/", headers=headers).status_code == 200
    headers["Sec-Fetch-Mode"] = "no-cors"
    assert visitor.get("/hub.js", headers=headers).status_code == 403
