"""Keys over HTTP: what a device's key and a bound key open, and that they open nothing else."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from discreet.families.collaborative.document import CollaborativeDocument
from tests.api.conftest import Caller, calling

pytestmark = pytest.mark.anyio

SHELF = {
    "algorithm": "collaborative",
    "items": [
        {"id": "heist", "categories": ["Crime"]},
        {"id": "orbit", "categories": ["Space"]},
        {"id": "probe", "categories": ["Space"]},
    ],
}


@pytest.fixture(scope="module")
async def shop(anyio_backend: str) -> AsyncIterator[Caller]:
    async with calling() as one:
        registry = one.live["services"].registry
        for name in ("shelf", "attic"):
            await registry.put(name, CollaborativeDocument.model_validate(SHELF))
        yield one


async def enrolled(shop: Caller, client: str = "ada") -> dict[str, str]:
    """Return the headers of a device that traded a code of the shop's for its key."""
    asked = {"client": client, "recommenders": ["shelf"]}
    offered = await shop.post("/enrolments", json=asked)
    assert offered.status_code == 201
    bare = {"Authorization": ""}
    traded = await shop.post(
        "/enrolments/redeem", json={"code": offered.json()["code"]}, headers=bare
    )
    assert traded.status_code == 201
    assert traded.headers["cache-control"] == "no-store"
    body = traded.json()
    assert (body["client"], body["recommenders"]) == (client, ["shelf"])
    assert body["scopes"] == ["profile"]
    again = await shop.post(
        "/enrolments/redeem", json={"code": offered.json()["code"]}, headers=bare
    )
    assert again.status_code == 404
    assert again.json()["type"] == "urn:discreet:problem:unknown-code"
    return {"Authorization": f"Bearer {body['key']}"}


def profile(client: str, *items: str) -> dict[str, Any]:
    return {"client": client, "items": list(items), "replace": True}


async def test_a_device_does_what_a_hub_needs(shop: Caller) -> None:
    device = await enrolled(shop)
    sent = await shop.post(
        "/recommenders/shelf/profiles", json=profile("ada", "orbit"), headers=device
    )
    assert sent.json() == {"client": "ada", "items": 1}
    ask = {"recommender": "shelf", "client": "ada", "limit": 2}
    assert (await shop.post("/recommend", json=ask, headers=device)).status_code == 200
    batch = {"requests": [ask, {**ask, "category": "Space"}]}
    results = (await shop.post("/recommend/batch", json=batch, headers=device)).json()["results"]
    assert [one["status"] for one in results] == [200, 200]
    for path in ("catalogue", "guarantee", "popular"):
        found = await shop.get(f"/recommenders/shelf/{path}", headers=device)
        assert found.status_code == 200
    withdrawn = await shop.post("/recommenders/shelf/profiles", json=profile("ada"), headers=device)
    assert withdrawn.json()["items"] == 0


async def test_a_stolen_device_key_reaches_nobody_else(shop: Caller) -> None:
    """The attack that a `serve` key on a device allowed, call by call."""
    await shop.post("/recommenders/shelf/profiles", json=profile("bob", "heist"))
    device = await enrolled(shop)
    calls: list[tuple[str, str, Any]] = [
        ("POST", "/recommenders/shelf/profiles", profile("bob")),
        ("POST", "/recommenders/attic/profiles", profile("ada", "heist")),
        ("POST", "/recommend", {"recommender": "shelf", "client": "bob"}),
        ("POST", "/recommend", {"recommender": "attic", "client": "ada"}),
        ("POST", "/recommend", {"recommender": "films", "client": "ada", "context": [0, 0]}),
        ("POST", "/feedback", {"event_id": "e", "reward": 1}),
        ("POST", "/feedback/batch", {"feedback": []}),
        ("GET", "/clients/bob/budget?recommender=shelf", None),
        ("GET", "/clients/ada/budget?recommender=shelf", None),
        ("DELETE", "/clients/bob", None),
        ("POST", "/enrolments", {"client": "bob", "recommenders": ["shelf"]}),
        ("GET", "/devices?client=bob", None),
        ("GET", "/keys", None),
        ("GET", "/recommenders", None),
        ("GET", "/recommenders/attic/catalogue", None),
        ("GET", "/metrics", None),
    ]
    for method, path, body in calls:
        answer = await shop.request(method, path, json=body, headers=device)
        assert answer.status_code == 403, (method, path)
        assert "bob" not in answer.text
    batch = {"requests": [{"recommender": "shelf", "client": who} for who in ("ada", "bob")]}
    results = (await shop.post("/recommend/batch", json=batch, headers=device)).json()["results"]
    assert [one["status"] for one in results] == [200, 403]
    kept = await shop.post(
        "/recommenders/shelf/profiles", json={"client": "bob", "items": [], "replace": False}
    )
    assert kept.json()["items"] == 1


async def test_devices_are_listed_and_revoked(shop: Caller) -> None:
    device = await enrolled(shop, "cy")
    [listed] = (await shop.get("/devices?client=cy")).json()["devices"]
    assert (listed["label"], listed["recommenders"]) == ("device", ["shelf"])
    assert (await shop.delete(f"/devices/{listed['id']}?client=ada")).status_code == 404
    assert (await shop.delete(f"/devices/{listed['id']}?client=cy")).status_code == 204
    ask = {"recommender": "shelf", "client": "cy"}
    assert (await shop.post("/recommend", json=ask, headers=device)).status_code == 401
    assert (await shop.delete(f"/devices/{listed['id']}?client=cy")).status_code == 404


async def key(shop: Caller, *scopes: str, recommender: str) -> dict[str, str]:
    made = await shop.live["services"].keys.create(
        label=f"bound-{recommender}",
        scopes=frozenset(scopes),
        recommenders=frozenset({recommender}),
    )
    return {"Authorization": f"Bearer {made}"}


async def test_a_bound_serving_key_reaches_its_recommenders_alone(shop: Caller) -> None:
    films, shelf = [
        await key(shop, "serve", "admin", recommender=name) for name in ("films", "shelf")
    ]
    asked = {"recommender": "films", "client": "dora", "context": [0.5, 0.5]}

    async def ask(headers: dict[str, str]) -> httpx.Response:
        return await shop.post("/recommend", json=asked, headers=headers)

    assert (await ask(shelf)).status_code == 403
    token = (await ask(films)).json()["recommendation_id"]
    told = {"recommendation_id": token, "reward": 1}
    assert (await shop.post("/feedback", json=told, headers=shelf)).status_code == 403
    batch = await shop.post("/feedback/batch", json={"feedback": [told]}, headers=shelf)
    assert batch.json()["results"][0]["status"] == 403
    counted = await shop.post("/feedback", json=told, headers=films)
    assert counted.json() == {"accepted": True, "duplicate": False, "learned": True}
    budget = "/clients/dora/budget?recommender=films"
    assert (await shop.get(budget, headers=films)).status_code == 200
    assert (await shop.get(budget, headers=shelf)).status_code == 403
    assert (await shop.get("/clients/dora/budget", headers=films)).status_code == 403
    assert (await shop.get("/recommenders/films", headers=films)).status_code == 200
    for method, path in (
        ("GET", "/recommenders/shelf"),
        ("DELETE", "/recommenders/shelf"),
        ("GET", "/recommenders"),
        ("DELETE", "/clients/dora"),
        ("GET", "/metrics"),
        ("GET", "/keys"),
    ):
        assert (await shop.request(method, path, headers=films)).status_code == 403, path
    code = {"client": "eve", "recommenders": ["shelf"]}
    assert (await shop.post("/enrolments", json=code, headers=films)).status_code == 403
    assert (await shop.post("/enrolments", json=code, headers=shelf)).status_code == 201
    await enrolled(shop, "fay")
    listed = await shop.get("/devices?client=fay", headers=films)
    assert listed.json() == {"devices": []}


async def test_keys_are_listed_and_revoked(shop: Caller) -> None:
    headers = await key(shop, "serve", recommender="attic")
    listed = (await shop.get("/keys")).json()["keys"]
    [bound] = [one for one in listed if one["label"] == "bound-attic"]
    assert (bound["scopes"], bound["recommenders"]) == (["serve"], ["attic"])
    assert (await shop.delete(f"/keys/{bound['id']}")).status_code == 204
    assert (await shop.delete(f"/keys/{bound['id']}")).status_code == 404
    assert (await shop.get("/recommenders/attic/guarantee", headers=headers)).status_code == 401


async def test_a_code_needs_a_recommender_and_a_body(shop: Caller) -> None:
    unknown = {"client": "ada", "recommenders": ["none"]}
    assert (await shop.post("/enrolments", json=unknown)).status_code == 404
    assert (await shop.post("/enrolments", json={"client": "ada"})).status_code == 422
    assert (await shop.post("/enrolments/redeem", json={})).status_code == 422


async def test_a_device_may_ask_so_often_and_no_oftener(shop: Caller) -> None:
    """Whatever it asks; other devices, and the shop itself, go on."""
    busy, other = await enrolled(shop, "busy"), await enrolled(shop, "other")
    ask = {"recommender": "shelf", "client": "busy"}
    answers = [await shop.post("/recommend", json=ask, headers=busy)]
    while answers[-1].status_code == 200 and len(answers) < 100_000:
        answers.append(await shop.post("/recommend", json=ask, headers=busy))
    refused = answers[-1]
    assert refused.status_code == 429
    assert refused.json()["type"] == "urn:discreet:problem:rate-exceeded"
    assert int(refused.headers["retry-after"]) == refused.json()["retry_after"] >= 1
    assert len(answers) > 50, "ten seconds' worth may come at once"
    mine = {"recommender": "shelf", "client": "other"}
    assert (await shop.post("/recommend", json=mine, headers=other)).status_code == 200
    assert (await shop.post("/recommend", json=ask)).status_code == 200


async def test_calls_beside_the_request_path_have_room_for_some(shop: Caller) -> None:
    admission = shop.live["admission"]
    held = 0
    while admission.enter_beside():
        held += 1
    refused = await shop.get("/keys")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert (await shop.get("/health/ready")).status_code == 200
    for _ in range(held):
        admission.leave_beside()
    assert (await shop.get("/keys")).status_code == 200
