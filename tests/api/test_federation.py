"""Federated clusters over HTTP: documents, questions, and what servers send to each other."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.api.conftest import Caller, calling

pytestmark = pytest.mark.anyio

LOCAL: dict[str, Any] = {
    "algorithm": "fclub",
    "role": "local",
    "dimensions": 2,
    "items": [{"id": "a", "features": [0.6, 0.0]}, {"id": "b", "features": [0.0, 0.6]}],
    "global_server": {"name": "hub", "url": "http://127.0.0.1:9"},
}
GLOBAL: dict[str, Any] = {"algorithm": "fclub", "role": "global", "dimensions": 2}
LETTER = {"sequence": 0, "members": [0], "steps": [40, 2**20, 0, 0, 2**19, 0]}
LETTERS: dict[str, Any] = {
    "source": "0123456789abcdef",
    "dimensions": 2,
    "baseline": 0.5,
    "epsilon": 1.0,
    "delta": 1e-6,
    "letters": [LETTER],
}

Hub = tuple[Caller, dict[str, str]]


@pytest.fixture(scope="module")
async def hub(anyio_backend: str) -> AsyncIterator[Hub]:
    """An application with a recommender in each role, and a peer's headers."""
    async with calling() as caller:
        for name, document in (("local", LOCAL), ("global", GLOBAL)):
            made = await caller.put(f"/recommenders/{name}", json=document)
            assert made.status_code == 201, made.text
        key = await caller.live["runtime"].keys.create(label="shop-a", scopes=frozenset({"peer"}))
        yield caller, {"Authorization": f"Bearer {key}"}


async def letters(hub: Hub, name: str = "global", **changes: Any) -> httpx.Response:
    caller, headers = hub
    path = f"/peers/recommenders/{name}/letters"
    return await caller.post(path, json={**LETTERS, **changes}, headers=headers)


async def view(hub: Hub, name: str = "global", **changes: Any) -> httpx.Response:
    caller, headers = hub
    body = {"source": LETTERS["source"], "seen": -1, **changes}
    return await caller.post(f"/peers/recommenders/{name}/views", json=body, headers=headers)


async def test_a_document_is_shown_as_it_was_written(hub: Hub) -> None:
    shown = (await hub[0].get("/recommenders/local")).json()
    assert shown["global_server"] == LOCAL["global_server"]
    assert shown["items"][0] == {"id": "a", "hidden": False, "features": [0.6, 0.0]}
    assert (shown["role"], shown["norms"]) == ("local", "refuse")


async def test_a_question_and_its_feedback(hub: Hub) -> None:
    caller, _ = hub
    body = {
        "recommender": "local",
        "client": "ada",
        "candidates": ["a", {"id": "new", "features": [0.5, 0.5]}],
        "limit": 2,
    }
    answer = await caller.post("/recommend", json=body)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert {item["id"] for item in found["items"]} == {"a", "new"}
    assert found["privacy"] == {
        "epsilon": 1.0,
        "spent": {"epsilon": 1.0, "delta": 1e-6},
        "remaining": {"epsilon": 0.0, "delta": 0.0},
    }
    told = {"recommendation_id": found["recommendation_id"], "reward": 0.25, "item": "new"}
    for duplicate in (False, True):
        given = await caller.post("/feedback", json=told)
        assert given.json() == {"accepted": True, "duplicate": duplicate}
    assert (await caller.post("/feedback", json=told | {"reward": 1})).status_code == 409
    assert (await caller.post("/feedback", json=told | {"reward": 1.5})).status_code == 422
    budget = await caller.get("/clients/ada/budget", params={"recommender": "local"})
    assert budget.json()["spent"] == {"epsilon": 1.0, "delta": 1e-6}
    assert (await caller.delete("/clients/ada")).json()["records"] == 1


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"context": [0.5]}, "context"),
        ({"candidates": [{"id": "x", "features": [0.8, 0.8]}]}, "candidates.0.features"),
        ({"candidates": [{"id": "x", "features": [0.8]}]}, "candidates.0.features"),
        ({"candidates": [{"id": "x", "features": ["1", 0]}]}, "candidates.0.features"),
        ({"candidates": ["nowhere"]}, "candidates"),
        ({"recommender": "global"}, "recommender"),
    ],
)
async def test_questions_that_cannot_be_asked(
    hub: Hub, changes: dict[str, Any], field: str
) -> None:
    body = {"recommender": "local", "client": "ada", **changes}
    answer = await hub[0].post("/recommend", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["field"].startswith(field)


@pytest.mark.parametrize(
    "changes",
    [
        {"role": "both"},
        {"dimensions": 0},
        {"dimensions": 65},
        {"items": ["no-features"]},
        {"items": [{"id": "a", "features": [3.0, 4.0]}]},
        {"norms": "ignore"},
        {"members": ["x"]},
        {"global_server": {"name": "hub", "url": "ftp://x"}},
        {"sharing": {"epsilon": 0}},
        {"sharing": {"delta": 0}},
        {"learning": {"baseline": 2}},
    ],
)
async def test_documents_that_cannot_be_served(hub: Hub, changes: dict[str, Any]) -> None:
    answer = await hub[0].put("/recommenders/bad", json={**LOCAL, **changes})
    assert answer.status_code == 422, answer.text
    assert "bad" not in (await hub[0].get("/recommenders")).json()["recommenders"]


async def test_items_can_be_added_and_are_checked(hub: Hub) -> None:
    caller, _ = hub
    good = {"items": [{"id": "c", "features": [0.1, 0.1]}]}
    path = "/recommenders/local/items"
    assert (await caller.post(path, json=good)).is_success
    for bad in ({"id": "d", "features": [2, 2]}, {"id": "d"}, {"id": "d", "title": "D"}):
        assert (await caller.post(path, json={"items": [bad]})).status_code == 422
    assert {item["id"] for item in (await caller.get(path)).json()["items"]} == {"a", "b", "c"}


async def test_letters_and_views(hub: Hub) -> None:
    caller, _ = hub
    assert (await view(hub)).json() is None
    for _ in range(2):
        answer = await letters(hub)
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"next": 1}
    recommender = await caller.live["runtime"].registry.find("global")
    await (
        caller.live["runtime"]
        .families["fclub"]
        .cycle(  # type: ignore[attr-defined]
            caller.live["runtime"], recommender
        )
    )
    told = (await view(hub)).json()
    assert set(told) == {"version", "matrices", "vectors", "users", "labels"}
    assert (told["users"], told["labels"]) == ([0], [0])
    assert (await view(hub, seen=told["version"])).json() is None
    series = await caller.get("/metrics")
    assert 'discreet_peer_messages_total{direction="received"' in series.text


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"source": "x"}, "source"),
        ({"dimensions": 3}, "dimensions"),
        ({"baseline": 0.1}, "baseline"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"delta": 0.5}, "delta"),
        ({"letters": []}, "letters"),
        ({"letters": [LETTER | {"sequence": -1}]}, "letters.0.sequence"),
        ({"letters": [LETTER | {"members": []}]}, "letters.0.members"),
        ({"letters": [LETTER | {"members": [1.5]}]}, "letters.0.members.0"),
        ({"letters": [LETTER | {"steps": [40, 0.5, 0, 0, 0, 0]}]}, "letters.0.steps.1"),
        ({"letters": [LETTER | {"steps": [40, 2**70, 0, 0, 0, 0]}]}, "letters.0.steps.1"),
        ({"letters": [LETTER | {"steps": [40, 2**50, 0, 0, 0, 0]}]}, "steps"),
        ({"letters": [LETTER | {"client": "ada"}]}, "letters.0.client"),
    ],
)
async def test_letters_that_cannot_be_read_are_refused(
    hub: Hub, changes: dict[str, Any], field: str
) -> None:
    answer = await letters(hub, **{"source": "f" * 16, **changes})
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["field"] == field


async def test_only_peers_with_a_key_of_their_own_may_send(hub: Hub) -> None:
    caller, _ = hub
    for path, body in (
        ("letters", LETTERS),
        ("views", {"source": LETTERS["source"], "seen": -1}),
    ):
        url = f"/peers/recommenders/global/{path}"
        nobody = await caller.post(url, json=body, headers={"Authorization": "Bearer wrong"})
        assert nobody.status_code == 401
        serving = await caller.live["runtime"].keys.create(
            label="s", scopes=frozenset({"serve", "admin"})
        )
        headers = {"Authorization": f"Bearer {serving}"}
        assert (await caller.post(url, json=body, headers=headers)).status_code == 403


@pytest.mark.parametrize(("name", "status"), [("nowhere", 404), ("films", 404), ("local", 422)])
async def test_only_a_global_recommender_takes_letters(hub: Hub, name: str, status: int) -> None:
    assert (await letters(hub, name)).status_code == status
    assert (await view(hub, name)).status_code == status
