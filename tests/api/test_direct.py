"""Recommend and feedback over HTTP: what is answered, what is refused, and who is named."""

import asyncio
import json
from typing import Any

import pytest

from discreet.api.schemas import (
    FeedbackAnswer,
    FeedbackBatchAnswer,
    RecommendAnswer,
    RecommendBatchAnswer,
)
from tests.api.conftest import FILMS, Caller

pytestmark = pytest.mark.anyio


def question(client: str = "somebody", **changes: Any) -> dict[str, Any]:
    return {"recommender": "films", "client": client, "context": [0.25, 0.75], **changes}


async def test_an_answer_has_exactly_the_documented_fields(caller: Caller) -> None:
    answer = await caller.ask("first")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    RecommendAnswer.model_validate(body, extra="forbid")
    assert list(body) == ["recommendation_id", "items", "personalised", "privacy", "expires_at"]
    assert body["items"][0]["id"] in FILMS["items"]
    assert body["personalised"] is True
    assert body["privacy"]["epsilon"] == 1.0
    assert body["privacy"]["spent"] == {"epsilon": 1.0, "delta": 0.0}
    assert body["privacy"]["remaining"]["epsilon"] == 2.0
    assert body["expires_at"].endswith("Z")


async def test_a_spent_budget_degrades_without_an_error(caller: Caller) -> None:
    answers = [(await caller.ask("spender")).json() for _ in range(5)]
    assert [one["personalised"] for one in answers] == [True] * 3 + [False] * 2
    assert ["reason" in one for one in answers] == [False] * 3 + [True] * 2
    assert "budget" in answers[-1]["reason"]
    assert answers[-1]["privacy"] == {
        "epsilon": 0.0,
        "spent": {"epsilon": 3.0, "delta": 0.0},
        "remaining": {"epsilon": 0.0, "delta": 1e-6},
    }


async def test_a_list_is_without_repetition_and_charged_for_its_personal_item(
    caller: Caller,
) -> None:
    body = (await caller.ask("lister", limit=3)).json()
    items = [item["id"] for item in body["items"]]
    assert len(set(items)) == 3
    assert body["privacy"]["spent"]["epsilon"] == 1.0


async def test_candidates_and_exclusions_are_kept(caller: Caller) -> None:
    for number in range(10):
        body = (
            await caller.ask(f"picky-{number}", candidates=["a", "b", "gone"], exclude=["b"])
        ).json()
        assert body["items"] == [{"id": "a"}]


async def test_nothing_left_is_an_empty_answer_that_costs_nothing(caller: Caller) -> None:
    body = (await caller.ask("nobody", exclude=FILMS["items"])).json()
    assert (body["items"], body["personalised"]) == ([], False)
    assert body["reason"]
    assert body["privacy"]["spent"]["epsilon"] == 0.0


async def test_a_retry_gets_the_same_answer_and_pays_once(caller: Caller) -> None:
    first, second = [await caller.ask("retrier", event_id="event-1") for _ in range(2)]
    assert first.content == second.content
    budget = (await caller.get("/clients/retrier/budget?recommender=films")).json()
    assert budget["answers"]["spent"]["epsilon"] == 1.0
    other = await caller.ask("retrier", event_id="event-1", limit=2)
    assert other.status_code == 409
    assert other.json()["type"] == "urn:discreet:problem:event-reused"


async def test_feedback_counts_once(caller: Caller) -> None:
    token = (await caller.ask("clicker")).json()["recommendation_id"]
    told = {"recommendation_id": token, "reward": 1}
    first = await caller.post("/feedback", json=told)
    FeedbackAnswer.model_validate(first.json(), extra="forbid")
    assert first.json() == {"accepted": True, "duplicate": False, "learned": True}
    assert (await caller.post("/feedback", json=told)).json()["duplicate"] is True
    conflict = await caller.post("/feedback", json={**told, "reward": 0.5})
    assert conflict.status_code == 409
    assert conflict.json()["type"] == "urn:discreet:problem:reward-conflict"


async def test_feedback_by_event_id_finds_its_decision(caller: Caller) -> None:
    await caller.ask("eventful", event_id="event-2")
    told = {"event_id": "event-2", "reward": 0.5}
    assert (await caller.post("/feedback", json=told)).json()["duplicate"] is False
    absent = await caller.post("/feedback", json={"event_id": "event-none", "reward": 0.5})
    assert absent.status_code == 404


async def test_feedback_about_a_list_names_the_item_once_for_each(caller: Caller) -> None:
    body = (await caller.ask("lists", limit=2)).json()
    told = {"recommendation_id": body["recommendation_id"], "reward": 1.0}
    unnamed = await caller.post("/feedback", json=told)
    assert unnamed.status_code == 422
    assert unnamed.json()["errors"][0]["field"] == "item"
    for item in body["items"]:
        answer = await caller.post("/feedback", json={**told, "item": item["id"]})
        assert answer.json()["duplicate"] is False
    stranger = await caller.post("/feedback", json={**told, "item": "not-in-it"})
    assert stranger.status_code == 422


@pytest.mark.parametrize("token", ["nonsense", "A" * 200, "ab=="])
async def test_a_forged_token_is_400(caller: Caller, token: str) -> None:
    answer = await caller.post("/feedback", json={"recommendation_id": token, "reward": 1})
    assert answer.status_code == 400
    assert answer.json()["type"] == "urn:discreet:problem:invalid-recommendation-id"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"context": [0.25]}, "context"),
        ({"context": [0.25, 0.5, 0.75]}, "context"),
        ({"context": []}, "context"),
        ({"context": [0.25, 1.01]}, "context[1]"),
        ({"context": [-1e-9, 0.5]}, "context[0]"),
        ({"context": ["0.25", 0.5]}, "context[0]"),
        ({"context": [True, 0.5]}, "context[0]"),
        ({"context": [None, 0.5]}, "context[0]"),
        ({"context": {"0": 0.5}}, "context"),
        ({"context": [0.5] * 100_001}, "context"),
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"limit": 1.5}, "limit"),
        ({"limit": "1"}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": 10**400}, "limit"),
        ({"client": ""}, "client"),
        ({"client": "x" * 201}, "client"),
        ({"client": "x\x00"}, "client"),
        ({"client": 7}, "client"),
        ({"recommender": ""}, "recommender"),
        ({"exclude": ["x\n"]}, "exclude[0]"),
        ({"exclude": ["x"] * 10_001}, "exclude"),
        ({"candidates": ["gone"]}, "candidates"),
        ({"event_id": ""}, "event_id"),
        ({"epsilon": 3}, "epsilon"),
    ],
)
async def test_a_wrong_field_is_422_and_named(
    caller: Caller, changes: dict[str, Any], field: str
) -> None:
    answer = await caller.post("/recommend", json={**question("wrong"), **changes})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert field in [error["field"] for error in answer.json()["errors"]]
    budget = (await caller.get("/clients/wrong/budget?recommender=films")).json()
    assert budget["answers"]["spent"]["epsilon"] == 0.0


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
async def test_what_is_not_a_number_is_422_and_named(caller: Caller, number: str) -> None:
    body = f'{{"recommender":"films","client":"wrong","context":[0.5,{number}]}}'
    answer = await caller.post("/recommend", content=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "context[1]"
    told = f'{{"recommendation_id":"x","reward":{number}}}'
    answer = await caller.post("/feedback", content=told)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "reward"


@pytest.mark.parametrize(
    "told",
    [
        {"reward": 1.0},
        {"reward": 1.0, "recommendation_id": "x", "event_id": "y"},
        {"reward": "1", "recommendation_id": "x"},
        {"reward": True, "recommendation_id": "x"},
        {"recommendation_id": "x"},
        {"reward": 1.0, "recommendation_id": "x" * 16_385},
        {"reward": 1.0, "recommendation_id": "x", "client": "y"},
    ],
)
async def test_wrong_feedback_is_422(caller: Caller, told: dict[str, Any]) -> None:
    assert (await caller.post("/feedback", json=told)).status_code == 422


@pytest.mark.parametrize("path", ["/recommend", "/feedback", "/recommend/batch", "/feedback/batch"])
@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 5_000, b'{"client":1,"client":2}'])
async def test_what_is_not_json_is_400_and_says_what_to_send(
    caller: Caller, path: str, body: bytes
) -> None:
    answer = await caller.post(path, content=body)
    if b"client" in body:
        assert answer.status_code in (400, 422)
    else:
        assert answer.status_code == 400
        assert "application/json" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/recommend", "/feedback", "/recommend/batch", "/feedback/batch"])
@pytest.mark.parametrize("body", [b"[]", b"3", b'"x"', b"null"])
async def test_json_that_is_no_object_is_422(caller: Caller, path: str, body: bytes) -> None:
    assert (await caller.post(path, content=body)).status_code == 422


async def test_json_is_read_whatever_it_is_called(caller: Caller) -> None:
    for content_type in ("application/x-www-form-urlencoded", "text/plain", ""):
        answer = await caller.post(
            "/recommend",
            content=json.dumps(question("curl")),
            headers={"Content-Type": content_type},
        )
        assert answer.status_code == 200


async def test_an_unknown_recommender_is_404(caller: Caller) -> None:
    answer = await caller.post("/recommend", json=question(recommender="nothing"))
    assert answer.status_code == 404
    assert answer.json()["type"] == "urn:discreet:problem:unknown-recommender"


async def test_a_batch_answers_in_order_and_each_for_itself(caller: Caller) -> None:
    requests = [
        question("batch-1"),
        question("batch-2", context=[2, 0]),
        question("batch-3", recommender="nothing"),
        question("batch-4", limit=2),
        7,
        question("batch-5", context=[0.5]),
        question("batch-6", event_id="batched"),
    ]
    answer = await caller.post("/recommend/batch", json={"requests": requests})
    assert answer.status_code == 200
    RecommendBatchAnswer.model_validate(answer.json(), extra="forbid")
    results = answer.json()["results"]
    assert [one["status"] for one in results] == [200, 422, 404, 200, 422, 422, 200]
    assert len(results[3]["items"]) == 2
    assert results[1]["problem"]["errors"][0]["field"] == "context[0]"
    assert results[5]["problem"]["errors"][0]["field"] == "context"


async def test_feedback_in_a_batch_counts_each_for_itself(caller: Caller) -> None:
    token = (await caller.ask("many")).json()["recommendation_id"]
    feedback = [
        {"recommendation_id": token, "reward": 1},
        {"recommendation_id": "forged", "reward": 1},
        {"recommendation_id": token, "reward": 1},
        {"recommendation_id": token, "reward": 0},
        {"reward": 1},
    ]
    answer = await caller.post("/feedback/batch", json={"feedback": feedback})
    assert answer.status_code == 200
    FeedbackBatchAnswer.model_validate(answer.json(), extra="forbid")
    results = answer.json()["results"]
    assert [one["status"] for one in results] == [200, 400, 200, 409, 422]
    assert [results[0]["duplicate"], results[2]["duplicate"]] == [False, True]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"requests": {}},
        {"requests": [], "more": 1},
        {"requests": [{}] * 1_001},
        {"feedback": []},
    ],
)
async def test_a_wrong_envelope_is_refused_as_a_whole(caller: Caller, body: Any) -> None:
    assert (await caller.post("/recommend/batch", json=body)).status_code == 422


async def test_empty_batches_have_empty_results(caller: Caller) -> None:
    for path, name in (("/recommend/batch", "requests"), ("/feedback/batch", "feedback")):
        assert (await caller.post(path, json={name: []})).json() == {"results": []}


async def test_parallel_requests_personalise_exactly_as_often_as_the_budget_allows(
    caller: Caller,
) -> None:
    answers = await asyncio.gather(*(caller.ask("crowd") for _ in range(50)))
    assert sum(one.json()["personalised"] for one in answers) == 3


PEOPLE = {
    **FILMS,
    "context": {
        "fields": {
            "age": {"type": "number", "range": [0, 120]},
            "country": {"type": "category", "values": ["CH", "DE"], "required": True},
            "member": {"type": "boolean"},
        }
    },
}


async def test_contexts_may_be_named_and_errors_name_the_field(caller: Caller) -> None:
    assert (await caller.put("/recommenders/people", json=PEOPLE)).status_code == 201
    for number, context in enumerate(
        (
            {"age": 31, "country": "CH", "member": True},
            {"country": "Atlantis"},
            {"age": None, "country": "DE", "member": None},
            {"age": -1e300, "country": "DE"},
        )
    ):
        answer = await caller.ask(f"person-{number}", recommender="people", context=context)
        assert answer.status_code == 200, answer.text
        assert answer.json()["privacy"]["spent"]["epsilon"] == 1.0
    for context, field in (
        ({"age": "31", "country": "CH"}, "context.age"),
        ({"age": [31], "country": "CH"}, "context.age"),
        ({"age": 31}, "context.country"),
        ({"country": "CH", "agee": 3}, "context.agee"),
        ([0.5, 0.5], "context"),
        (None, "context"),
        (7, "context"),
    ):
        answer = await caller.ask("mistaken", recommender="people", context=context)
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["field"] == field
        assert "31" not in answer.json()["detail"]
    answer = await caller.ask("mistaken", context={"age": 31})
    assert answer.json()["errors"] == [
        {"field": "context", "message": "must be a list of 2 numbers from 0 to 1"}
    ]
    for name in ("people", "films"):
        budget = (await caller.get(f"/clients/mistaken/budget?recommender={name}")).json()
        assert budget["answers"]["spent"]["epsilon"] == 0.0


async def test_a_name_that_stands_twice_in_a_context_is_refused(caller: Caller) -> None:
    body = b'{"recommender":"people","client":"x","context":{"country":"CH","country":"DE"}}'
    answer = await caller.post("/recommend", content=body)
    assert answer.status_code == 400
    assert "same name twice" in answer.json()["detail"]


async def test_named_contexts_in_a_batch_fail_each_by_itself(caller: Caller) -> None:
    await caller.put("/recommenders/people", json=PEOPLE)
    contexts = ({"country": "CH"}, {"country": 41}, {"country": "DE", "age": 5})
    asked = [
        question(f"batched-{n}", recommender="people", context=context)
        for n, context in enumerate(contexts)
    ]
    results = (await caller.post("/recommend/batch", json={"requests": asked})).json()["results"]
    assert [one["status"] for one in results] == [200, 422, 200]
    assert results[1]["problem"]["errors"][0]["field"] == "context.country"


async def test_what_fields_mean_cannot_change_under_what_was_learned(caller: Caller) -> None:
    await caller.put("/recommenders/people", json=PEOPLE)
    shown = (await caller.get("/recommenders/people")).json()
    assert (await caller.put("/recommenders/people", json=shown)).status_code == 200
    fields = {**PEOPLE["context"]["fields"], "member": {"type": "category"}}
    answer = await caller.put(
        "/recommenders/people", json={**PEOPLE, "context": {"fields": fields}}
    )
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "context.fields.member"
