"""The page's own server: every route, and every refusal in plain words."""

from pathlib import Path
from typing import Any

import pytest

from discreet.hub import reading
from discreet.hub.app import create_app
from discreet.hub.guard import SECRET_HEADER
from discreet.hub.hub import Hub
from discreet.hub.services import HubServices
from tests.hub.recommending import Recommending
from tests.hub.visiting import Visitor


@pytest.fixture
def page(hub: Hub, tmp_path: Path) -> Visitor:
    (tmp_path / "uploads").mkdir()
    app = create_app(
        HubServices.of([hub]), folder=tmp_path / "uploads", port=8765, secret="s", push_key="k"
    )
    return Visitor(app, home="http://127.0.0.1:8765", headers={SECRET_HEADER: "s"})


def ok(answer: Any) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_from_a_history_to_recommendations(
    page: Visitor, served: Recommending, tmp_path: Path
) -> None:
    imported = ok(
        page.post("/api/services/films/import", content=b"title\nFilm Number 1\nNobody's\n")
    )
    assert (imported["added"], imported["unknown"], imported["state"]["history"]) == (1, 1, 1)
    assert list((tmp_path / "uploads").iterdir()) == []
    assert (
        ok(page.post("/api/services/films/history", json={"item": "f2", "seen": True}))["history"]
        == 2
    )
    assert [i["id"] for i in ok(page.get("/api/services/films/history"))["items"]] == ["f2", "f1"]
    controls = {"overall": "perturbed", "by_category": True, "levels": {"Crime": "all"}}
    quote = ok(page.put("/api/services/films/choices", json=controls))["quote"]
    assert quote["openly"] == ["Crime"]
    agreement = {"after": 0, "nano_epsilon": quote["nano_epsilon"]}
    release = ok(page.post("/api/services/films/releases", json=agreement))["release"]
    assert release["sent"] is None
    assert served.profiles == {}
    sent = ok(page.post(f"/api/services/films/releases/{release['number']}/send"))["release"]
    assert sent["sent"]
    assert list(served.profiles.values()) == [[item["id"] for item in release["items"]]]
    rows = ok(page.post("/api/services/films/recommendations"))["rows"]
    assert [row["category"] for row in rows][:2] == [None, "Comedy"]
    assert ok(page.post("/api/services/films/client"))["withdrawn"]
    assert ok(page.post("/api/services/films/catalogue"))["rematched"] == 0
    assert ok(page.delete("/api/services/films/history"))["history"] == 0


def test_the_catalogue_is_searched_on_the_device(page: Visitor, served: Recommending) -> None:
    found = ok(
        page.get("/api/services/films/items", params={"search": "NUMBER 4", "category": "Crime"})
    )
    assert [item["id"] for item in found["items"]] == ["f4", "f40", "f44", "f46"]
    assert ok(page.get("/api/services/films/items", params={"search": "zzz"})) == {
        "found": 0,
        "items": [],
    }
    assert served.asked == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("POST", "/api/services/films/history", {"item": "f99", "seen": True}, 409, "no such item"),
        ("POST", "/api/services/films/history", {"item": "f1"}, 422, "seen"),
        ("POST", "/api/services/films/history", {"item": "f1", "seen": True, "x": 1}, 422, "x"),
        (
            "PUT",
            "/api/services/films/choices",
            {"overall": "some", "by_category": False},
            422,
            "overall",
        ),
        (
            "PUT",
            "/api/services/films/choices",
            {"overall": "perturbed", "by_category": False, "epsilon": 99.0},
            422,
            "epsilon: Input should be less than or equal to 10.",
        ),
        (
            "PUT",
            "/api/services/films/limits",
            {"limit": -1.0, "threshold": 3},
            422,
            "limit must be above 0",
        ),
        (
            "POST",
            "/api/services/films/releases",
            {"after": 0, "nano_epsilon": 1},
            409,
            "price has changed",
        ),
        (
            "POST",
            "/api/services/films/releases",
            {"after": 7, "nano_epsilon": 1},
            409,
            "Another list was created meanwhile",
        ),
        ("POST", "/api/services/films/releases/1/send", None, 409, "Only the last list"),
        ("GET", "/api/nowhere", None, 404, "Not Found"),
    ],
)
def test_refusals(
    page: Visitor, method: str, path: str, body: Any, status: int, words: str
) -> None:
    answer = page.request(method, path, json=body)
    assert answer.status_code == status
    assert words in answer.json()["detail"]


def test_uploads_end_somewhere_and_leave_nothing(
    page: Visitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "empty" in page.post("/api/services/films/import", content=b"").json()["detail"]
    monkeypatch.setattr(reading, "MOST_BYTES", 10)
    answer = page.post("/api/services/films/import", content=b"x" * 11)
    assert answer.status_code == 409
    assert list((tmp_path / "uploads").iterdir()) == []
