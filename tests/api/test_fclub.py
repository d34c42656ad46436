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
    "releases": {"seconds": 3_600},
}
GLOBAL: dict[str, Any] = {
    "algorithm": "fclub",
    "role": "global",
    "dimensions": 2,
    "releases": {"seconds": 3_600},
}
UPDATE = {"number": 0, "members": [0], "steps": [40, 2**20, 0, 0, 2**19, 0], "deviation": 3.5}
UPDATES: dict[str, Any] = {
    "source": "0123456789abcdef",
    "dimensions": 2,
    "baseline": 0.5,
    "updates": [UPDATE],
}

Hub = tuple[Caller, dict[str, str]]


@pytest.fixture(scope="module")
async def hub(anyio_backend: str) -> AsyncIterator[Hub]:
    """An application with a recommender in each role, and a peer's headers."""
    async with calling() as caller:
        for name, document in (("local", LOCAL), ("global", GLOBAL)):
            made = await caller.put(f"/recommenders/{name}", json=document)
            assert made.status_code == 201, made.text
        keys = caller.live["services"].keys
        key = await keys.create(label="shop-a", scopes=frozenset({"peer"}))
        yield caller, {"Authorization": f"Bearer {key}"}


async def send(hub: Hub, name: str = "global", **changes: Any) -> httpx.Response:
    caller, headers = hub
    path = f"/peers/recommenders/{name}/noisy-updates"
    return await caller.post(path, json={**UPDATES, **changes}, headers=headers)


async def fetch(hub: Hub, name: str = "global", **changes: Any) -> httpx.Response:
    caller, headers = hub
    body = {"source": UPDATES["source"], "seen": -1, **changes}
    return await caller.post(f"/peers/recommenders/{name}/merged-model", json=body, headers=headers)


async def test_a_document_is_shown_as_it_was_written(hub: Hub) -> None:
    shown = (await hub[0].get("/recommenders/local")).json()
    assert shown["global_server"] == LOCAL["global_server"]
    assert shown["items"][0] == {"id": "a", "hidden": False, "features": [0.6, 0.0]}
    assert (shown["role"], shown["norms"]) == ("local", "refuse")
    assert shown["privacy"]["protects"] == "person"


async def test_the_guarantee_says_who_is_protected(hub: Hub) -> None:
    card = (await hub[0].get("/recommenders/local/guarantee")).json()
    assert (card["closed_loop"], card["feedback"]["epsilon"]) == (True, 1.0)
    merging = (await hub[0].get("/recommenders/global/guarantee")).json()
    assert merging["feedback"]["epsilon"] == 0.0


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
    assert found["personalised"] is False
    assert found["privacy"]["epsilon"] is None
    given = {"recommendation_id": found["recommendation_id"], "reward": 0.25, "item": "new"}
    for duplicate in (False, True):
        receipt = (await caller.post("/feedback", json=given)).json()
        assert (receipt["duplicate"], receipt["learned"]) == (duplicate, True)
    assert (await caller.post("/feedback", json=given | {"reward": 1})).status_code == 409
    assert (await caller.post("/feedback", json=given | {"reward": 1.5})).status_code == 422
    again = (await caller.post("/recommend", json=body)).json()
    assert (again["personalised"], again["reason"][:17]) == (True, "answers are exact")
    budget = (await caller.get("/clients/ada/budget", params={"recommender": "local"})).json()
    # Feedback is paid for when its person takes part in a release.
    assert budget["feedback"]["spent"]["epsilon"] == 0
    assert (await caller.delete("/clients/ada")).json()["records"] == 1


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"context": [0.5]}, "context"),
        ({"candidates": [{"id": "x", "features": [0.8, 0.8]}]}, "candidates[0].features"),
        ({"candidates": [{"id": "x", "features": [0.8]}]}, "candidates[0].features"),
        ({"candidates": [{"id": "x", "features": ["1", 0]}]}, "candidates"),
        ({"candidates": ["nowhere"]}, "candidates"),
        ({"recommender": "global"}, "recommender"),
    ],
)
async def test_questions_that_cannot_be_asked(
    hub: Hub, changes: dict[str, Any], field: str
) -> None:
    body = {"recommender": "local", "client": "bob", **changes}
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
        {"sharing": {"epsilon": 1}},
        {"privacy": {"feedback": {"epsilon": 0}}},
        {"privacy": {"feedback": {"delta": 0}}},
        {"privacy": {"protects": "nobody"}},
        {"learning": {"baseline": 2}},
    ],
)
async def test_documents_that_cannot_be_served(hub: Hub, changes: dict[str, Any]) -> None:
    answer = await hub[0].put("/recommenders/bad", json={**LOCAL, **changes})
    assert answer.status_code == 422, answer.text
    assert "bad" not in (await hub[0].get("/recommenders")).json()["recommenders"]


async def test_what_was_promised_to_feedback_cannot_change(hub: Hub) -> None:
    changed = LOCAL | {"privacy": {"feedback": {"epsilon": 5.0}}}
    answer = await hub[0].put("/recommenders/local", json=changed)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["field"] == "privacy.feedback"


async def test_items_can_be_added_and_are_checked(hub: Hub) -> None:
    caller, _ = hub
    good = {"items": [{"id": "c", "features": [0.1, 0.1]}]}
    path = "/recommenders/local/items"
    assert (await caller.post(path, json=good)).is_success
    for bad in ({"id": "d", "features": [2, 2]}, {"id": "d"}, {"id": "d", "title": "D"}):
        assert (await caller.post(path, json={"items": [bad]})).status_code == 422
    assert {item["id"] for item in (await caller.get(path)).json()["items"]} == {"a", "b", "c"}


async def test_updates_and_the_merged_model(hub: Hub) -> None:
    caller, _ = hub
    assert (await fetch(hub)).json() is None
    assert (await send(hub, updates=[])).json() == {"next": 0}
    for _ in range(2):
        answer = await send(hub)
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"next": 1}
    services = caller.live["services"]
    assert await services.releaser.release(await services.registry.find("global"))
    told = (await fetch(hub)).json()
    assert set(told) == {"version", "matrices", "vectors", "counts", "members", "labels"}
    assert (told["version"], told["members"], told["labels"]) == (1, [0], [0])
    assert (await fetch(hub, seen=told["version"])).json() is None
    # Only others' updates are told: there are none.
    assert told["counts"] == [0.0]
    series = await caller.get("/metrics")
    assert 'discreet_peer_messages_total{direction="received"' in series.text


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"source": "x"}, "source"),
        ({"dimensions": 3}, "dimensions"),
        ({"baseline": 0.1}, "baseline"),
        ({"baseline": "0.5"}, "baseline"),
        ({"epsilon": 1.0}, "epsilon"),
        ({"updates": [UPDATE] * 65}, "updates"),
        ({"updates": [UPDATE | {"number": -1}]}, "updates[0].number"),
        ({"updates": [UPDATE | {"members": []}]}, "updates[0].members"),
        ({"updates": [UPDATE | {"members": [1.5]}]}, "updates[0].members[0]"),
        ({"updates": [UPDATE | {"steps": [40, 0.5, 0, 0, 0, 0]}]}, "updates[0].steps[1]"),
        ({"updates": [UPDATE | {"steps": [40, 2**70, 0, 0, 0, 0]}]}, "updates[0].steps[1]"),
        ({"updates": [UPDATE | {"steps": [40, 2**50, 0, 0, 0, 0]}]}, "steps"),
        ({"updates": [UPDATE | {"deviation": -1.0}]}, "updates[0].deviation"),
        ({"updates": [UPDATE | {"deviation": 1e300}]}, "updates[0].deviation"),
        ({"updates": [UPDATE | {"client": "ada"}]}, "updates[0].client"),
    ],
)
async def test_updates_that_cannot_be_read_are_refused(
    hub: Hub, changes: dict[str, Any], field: str
) -> None:
    answer = await send(hub, **{"source": "f" * 16, **changes})
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["field"] == field


async def test_only_peers_with_a_key_of_their_own_may_send(hub: Hub) -> None:
    caller, _ = hub
    keys = caller.live["services"].keys
    serving = await keys.create(label="s", scopes=frozenset({"serve", "admin"}))
    for path, body in (
        ("noisy-updates", UPDATES),
        ("merged-model", {"source": UPDATES["source"], "seen": -1}),
    ):
        url = f"/peers/recommenders/global/{path}"
        nobody = await caller.post(url, json=body, headers={"Authorization": "Bearer wrong"})
        assert nobody.status_code == 401
        headers = {"Authorization": f"Bearer {serving}"}
        assert (await caller.post(url, json=body, headers=headers)).status_code == 403


async def test_a_key_that_is_no_members_is_refused(hub: Hub) -> None:
    made = await hub[0].put("/recommenders/closed", json=GLOBAL | {"members": ["shop-b"]})
    assert made.status_code == 201, made.text
    assert (await send(hub, "closed")).status_code == 403
    assert (await fetch(hub, "closed")).status_code == 403


@pytest.mark.parametrize(("name", "status"), [("nowhere", 404), ("films", 404), ("local", 422)])
async def test_only_a_global_recommender_takes_updates(hub: Hub, name: str, status: int) -> None:
    assert (await send(hub, name)).status_code == status
    assert (await fetch(hub, name)).status_code == status
