"""Nodes over HTTP: each bad input is named and leaves nothing behind; who may ask for models."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import numpy as np
import pytest

from discreet.families.mirror_descent.sync import read_message
from tests.api.conftest import Caller, calling

pytestmark = pytest.mark.anyio

NODE = {
    "algorithm": "mirror-descent",
    "features": {"dimension": 10_000, "most_nonzeros": 4},
    "releases": {"seconds": 3_600},
    "privacy": {"feedback": {"epsilon": 20.0, "budget": {"epsilon": 50.0, "delta": 1e-6}}},
}


@pytest.fixture(scope="module")
async def node(anyio_backend: str) -> AsyncIterator[Caller]:
    """An instance with one node called feed, and a key for neighbours."""
    async with calling() as caller:
        answer = await caller.put("/recommenders/feed", json=NODE)
        assert answer.status_code == 201, answer.text
        yield caller


def features(*pairs: tuple[Any, Any]) -> dict[str, Any]:
    return {"indices": [index for index, _ in pairs], "values": [value for _, value in pairs]}


async def ask(caller: Caller, *candidates: dict[str, Any], **changes: Any) -> httpx.Response:
    body = {
        "recommender": "feed",
        "client": "ada",
        "candidates": [
            {"id": f"item {number}", "features": one} for number, one in enumerate(candidates)
        ],
        **changes,
    }
    return await caller.post("/recommend", json=body)


FINE = features((3, 1.0), (9_999, 0.5))


async def test_candidates_are_ranked_and_feedback_is_counted(node: Caller) -> None:
    answer = await ask(node, FINE, features((4, -1.0)), limit=2)
    assert answer.status_code == 200, answer.text
    shown = answer.json()
    assert {item["id"] for item in shown["items"]} == {"item 0", "item 1"}
    assert shown["privacy"]["epsilon"] == 0
    assert shown["personalised"] is False
    assert shown["reason"] == "no released model tells items apart yet"
    body = {"recommendation_id": shown["recommendation_id"], "item": "item 0", "reward": 1}
    first = await node.post("/feedback", json=body)
    again = await node.post("/feedback", json=body)
    assert (first.json()["duplicate"], again.json()["duplicate"]) == (False, True)
    assert first.json()["learned"] is True
    other = await node.post("/feedback", json={**body, "reward": 0})
    assert other.status_code == 409
    budget = await node.get("/clients/ada/budget", params={"recommender": "feed"})
    assert 15 < budget.json()["feedback"]["spent"]["epsilon"] <= 20.01
    assert budget.json()["answers"]["spent"]["epsilon"] == 0


async def test_the_guarantee_says_what_both_dials_cost(node: Caller) -> None:
    answer = await node.get("/recommenders/feed/guarantee")
    assert answer.status_code == 200, answer.text
    card = answer.json()
    assert (card["closed_loop"], card["algorithm"]) == (True, "mirror-descent")
    assert (card["answers"]["epsilon"], card["feedback"]["epsilon"]) == (0.25, 20.0)


@pytest.mark.parametrize(
    ("wrong", "field", "reason"),
    [
        (features((5, 1.0), (3, 1.0)), "candidates", "ascend"),
        (features((5, 1.0), (5, 1.0)), "candidates", "ascend"),
        (features((10_000, 1.0)), "candidates.1.features.indices", "from 0 to 9999"),
        (features((-1, 1.0)), "candidates", "from 0 to"),
        (features((1.5, 1.0)), "candidates", "whole number"),
        (features((2**70, 1.0)), "candidates", ""),
        (features((1, 2e6)), "candidates.1.features.values", "finite"),
        (features((1, "1")), "candidates", "number"),
        ({"indices": [1, 2], "values": [1.0]}, "candidates", "equally many"),
        (features(*((n, 1.0) for n in range(5))), "candidates.1.features.indices", "at most 4"),
        (features(*((n, 1.0) for n in range(1_001))), "candidates", ""),
        ([1.0, 2.0], "candidates.1.features", "indices and values"),
    ],
)
async def test_bad_features_are_named_and_leave_nothing_behind(
    node: Caller, wrong: Any, field: str, reason: str
) -> None:
    event = f"event {hash(str(wrong))}"
    answer = await ask(node, FINE, wrong, event_id=event)
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert problem["type"] == "urn:discreet:problem:invalid-request"
    error = problem["errors"][0]
    assert error["field"].startswith(field)
    assert reason in error["message"]
    # The event id is free still, and the next question under it is answered.
    assert (await ask(node, FINE, event_id=event)).status_code == 200


@pytest.mark.parametrize(
    "candidate",
    [
        '{"id":"x","id":"y","features":{"indices":[1],"values":[1]}}',
        '{"id":"x","features":{"indices":[1],"values":[1]},"features":{"indices":[],"values":[]}}',
        '{"id":"x","features":{"indices":[1],"indices":[2],"values":[1]}}',
    ],
)
async def test_a_name_given_twice_is_refused_in_candidates_too(
    node: Caller, candidate: str
) -> None:
    other = '{"id":"z","features":{"indices":[3],"values":[1]}}'
    for many in (candidate, f"{candidate},{other}"):
        body = f'{{"recommender":"feed","client":"indices","candidates":[{many}]}}'
        answer = await node.post("/recommend", content=body)
        assert answer.status_code == 400, answer.text
    body = f'{{"recommender":"feed","client":"features","exclude":["id"],"candidates":[{other}]}}'
    assert (await node.post("/recommend", content=body)).status_code == 200


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
async def test_numbers_that_are_none_are_refused(node: Caller, number: str) -> None:
    body = (
        '{"recommender":"feed","client":"ada","candidates":'
        f'[{{"id":"x","features":{{"indices":[1],"values":[{number}]}}}}]}}'
    )
    answer = await node.post("/recommend", content=body)
    assert answer.status_code in (400, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"features": {}}, "dimension"),
        ({"features": {"dimension": 1_000_001}}, "1000000"),
        ({"features": {"clients": 2_000, "items": 2_000}}, "1,000,000"),
        ({"privacy": {"feedback": {"budget": {"epsilon": 1.0, "delta": 0.0}}}}, "delta"),
        ({"privacy": {"mode": "none"}}, "mode"),
        ({"broadcasts": {"records": 3}}, "broadcasts"),
        ({"items": [{"id": "a", "features": {"indices": [10_000], "values": [1]}}]}, "9999"),
        ({"items": [{"id": "a", "features": {"indices": [1, 1], "values": [1, 1]}}]}, "ascend"),
        ({"neighbours": [{"name": "b", "url": "ftp://b"}]}, "http"),
        ({"nodes": []}, ""),
    ],
)
async def test_documents_that_cannot_be_served_are_not_stored(
    node: Caller, change: dict[str, Any], reason: str
) -> None:
    answer = await node.put("/recommenders/other", json={**NODE, **change})
    assert answer.status_code == 422, answer.text
    assert reason in answer.text
    assert (await node.get("/recommenders/other")).status_code == 404


async def test_a_neighbour_is_given_sums_and_nobody_else_is(node: Caller) -> None:
    path = "/peers/recommenders/feed/models"
    assert (await node.post(path, json={})).status_code == 403
    keys = node.live["services"].keys
    key = await keys.create(scopes=frozenset({"peer"}), label="b")
    neighbour = {"Authorization": f"Bearer {key}"}
    answer = await node.post(path, json={}, headers=neighbour)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/octet-stream"
    message = read_message(answer.content, dimension=10_000)
    assert message.gradients is not None
    assert np.isfinite(message.gradients).all()
    seen = {"seen": message.revision.hex()}
    again = await node.post(path, json=seen, headers=neighbour)
    assert read_message(again.content, dimension=10_000).gradients is None
    assert len(again.content) < 64
    for wrong in ({"seen": "x"}, {"seen": 1}, {"known": ""}):
        assert (await node.post(path, json=wrong, headers=neighbour)).status_code == 422
    films = "/peers/recommenders/films/models"
    refused = await node.post(films, json={}, headers=neighbour)
    assert refused.status_code == 404
    assert "models for neighbours" in refused.text
