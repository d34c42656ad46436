"""Recommendations that were shown after all, over HTTP."""

import pytest

from discreet.api.schemas import ActivationAnswer, RecommendAnswer
from tests.api.conftest import FILMS, Caller

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
async def waiting(caller: Caller) -> None:
    document = {**FILMS, "reward": {"wait": "30m"}}
    assert (await caller.put("/recommenders/films", json=document)).status_code == 200


async def test_answers_say_whether_they_are_awaited(caller: Caller) -> None:
    awaited = (await caller.ask()).json()
    RecommendAnswer.model_validate(awaited, extra="forbid")
    deferred = (await caller.ask(activate=False)).json()
    assert (awaited["awaiting"], deferred["awaiting"]) == (True, False)
    await caller.put("/recommenders/films", json=FILMS)
    assert "awaiting" not in (await caller.ask()).json()
    refused = await caller.ask(activate=False)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "activate"


async def test_a_recommendation_is_activated_by_either_id(caller: Caller) -> None:
    deferred = (await caller.ask(activate=False, event_id="maybe")).json()
    for body in ({"event_id": "maybe"}, {"recommendation_id": deferred["recommendation_id"]}):
        for _ in range(2):
            answer = await caller.post("/activate", json=body)
            assert answer.json() == {"awaiting": True}
            ActivationAnswer.model_validate(answer.json(), extra="forbid")


async def test_wrong_activations_say_what_to_change(caller: Caller) -> None:
    for body, status in (
        ({}, 422),
        ({"recommendation_id": "forged"}, 400),
        ({"event_id": "unknown"}, 404),
        ({"event_id": "x", "reward": 1}, 422),
    ):
        assert (await caller.post("/activate", json=body)).status_code == status


async def test_a_reward_beyond_the_range_is_refused_and_nothing_is_lost(caller: Caller) -> None:
    token = (await caller.ask("ranger")).json()["recommendation_id"]
    for reward in (1.01, -0.01, 1e300):
        refused = await caller.post(
            "/feedback", json={"recommendation_id": token, "reward": reward}
        )
        assert refused.status_code == 422
        assert refused.json()["errors"] == [{"field": "reward", "message": "must lie in [0, 1]"}]
    taken = await caller.post("/feedback", json={"recommendation_id": token, "reward": 1})
    assert taken.json() == {"accepted": True, "duplicate": False, "learned": None}
