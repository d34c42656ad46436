"""Experiments over HTTP."""

import pytest

from discreet.api.experiments_schemas import ExperimentResults
from tests.api.conftest import FILMS, Caller

pytestmark = pytest.mark.anyio

HOME = {"traffic": {"champion": 0.5, "popular": 0.5}, "holdout": ["popular"]}


@pytest.fixture(autouse=True)
async def arms(caller: Caller) -> None:
    for name in HOME["traffic"]:
        put = await caller.put(f"/recommenders/{name}", json={**FILMS, "ledger": "shop"})
        assert put.is_success


async def test_an_experiment_is_put_shown_asked_and_removed(caller: Caller) -> None:
    assert (await caller.put("/experiments/home", json=HOME)).status_code == 201
    assert (await caller.put("/experiments/home", json=HOME)).status_code == 200
    assert (await caller.get("/experiments")).json() == {"experiments": ["home"]}
    assert (await caller.get("/experiments/home")).json() == {**HOME, "shadow": []}
    kinds = set()
    for number in range(40):
        answer = (await caller.ask(f"client-{number}", recommender="home")).json()
        kinds.add((answer["personalised"], answer["privacy"]["epsilon"]))
        told = {"recommendation_id": answer["recommendation_id"], "reward": 1}
        assert (await caller.post("/feedback", json=told)).status_code == 200
    assert kinds == {(True, 1.0), (False, 0.0)}
    results = (await caller.get("/experiments/home/results")).json()
    ExperimentResults.model_validate(results, extra="forbid")
    assert [arm["recommender"] for arm in results["arms"]] == ["champion", "popular"]
    assert (await caller.delete("/experiments/home")).status_code == 204
    assert (await caller.get("/experiments/home")).status_code == 404
    assert (await caller.ask("client-1", recommender="home")).status_code == 404


async def test_wrong_experiments_say_what_to_change(caller: Caller) -> None:
    wrong = await caller.put("/experiments/home", json={"traffic": {"champion": 0.5, "films": 0.5}})
    assert wrong.status_code == 422
    assert wrong.json()["errors"][0]["field"] == "traffic.films"
    assert "ledger" in wrong.json()["errors"][0]["message"]
    assert (await caller.put("/experiments/home", json={"traffic": {"a": 2}})).status_code == 422
    assert (await caller.get("/experiments/none/results")).status_code == 404
    assert (await caller.delete("/experiments/none")).status_code == 404


async def test_an_arm_cannot_be_removed_alone(caller: Caller) -> None:
    await caller.put("/experiments/stays", json=HOME)
    refused = await caller.delete("/recommenders/champion")
    assert refused.status_code == 422
    assert "experiment stays" in refused.text
