"""The map of first choices over HTTP: who may see it, and where there is none."""

import pytest

from discreet.api.maps import ModelMapAnswer
from tests.api.conftest import FILMS, Caller

pytestmark = pytest.mark.anyio


async def test_a_map_before_and_after_a_release(caller: Caller) -> None:
    assert (await caller.put("/recommenders/drawn", json=FILMS)).status_code == 201
    before = await caller.get("/recommenders/drawn/model/map")
    assert before.status_code == 200
    assert before.json() == {"release": 0, "items": [], "first": []}
    services = caller.live["services"]
    for number in range(30):
        answer = await caller.ask(f"watcher-{number}", recommender="drawn")
        body = {"recommendation_id": answer.json()["recommendation_id"], "reward": 1}
        await caller.post("/feedback", json=body)
    recommender = await services.registry.find("drawn")
    while recommender.current.number == 0:  # the application's own releaser may be faster
        await services.releaser.release(recommender)
    body = (await caller.get("/recommenders/drawn/model/map")).json()
    ModelMapAnswer.model_validate(body, extra="forbid")
    assert body["release"] >= 1
    assert set(body["items"]) <= set(FILMS["items"])
    assert {len(row) for row in body["first"]} == {32} == {len(body["first"])}
    assert {place for row in body["first"] for place in row} == set(range(len(body["items"])))


async def test_who_may_see_a_map(caller: Caller) -> None:
    keys = caller.live["services"].keys
    for scope, status in (("serve", 200), ("admin", 200), ("metrics", 403), ("peer", 403)):
        key = await keys.create(label=scope, scopes=frozenset({scope}))
        answer = await caller.get(
            "/recommenders/films/model/map", headers={"Authorization": f"Bearer {key}"}
        )
        assert answer.status_code == status
    answer = await caller.get(
        "/recommenders/films/model/map", headers={"Authorization": "Bearer x"}
    )
    assert answer.status_code == 401


async def test_where_there_is_no_map(caller: Caller) -> None:
    await caller.put("/recommenders/line", json={**FILMS, "context": {"dimensions": 1}})
    await caller.put("/recommenders/others", json={"algorithm": "collaborative", "items": ["a"]})
    for name in ("line", "others", "nothing"):
        answer = await caller.get(f"/recommenders/{name}/model/map")
        assert answer.status_code == 404
        assert answer.json()["type"] == "urn:discreet:problem:unknown-recommender"
