"""Recommenders and items over HTTP: every change is seen by the very next request."""

import json
from typing import Any

import pytest

from discreet.decisions.registry import RECOMMENDER
from discreet.families.cards import GuaranteeCard, PriceCard
from discreet.families.stored import RECORD_SCHEMA
from tests.api.conftest import FILMS, Caller

pytestmark = pytest.mark.anyio


async def put(caller: Caller, name: str, **changes: Any) -> Any:
    return await caller.put(f"/recommenders/{name}", json={**FILMS, **changes})


async def offered(caller: Caller, name: str, draws: int = 40) -> set[str]:
    """Return the items that are recommended to many clients."""
    body = {"requests": [
        {"recommender": name, "client": f"c{draw}", "context": [0.5, 0.5]}
        for draw in range(draws)
    ]}  # fmt: skip
    results = (await caller.post("/recommend/batch", json=body)).json()["results"]
    return {item["id"] for one in results for item in one["items"]}


async def test_the_life_of_a_recommender(caller: Caller) -> None:
    created = await put(caller, "books")
    assert created.status_code == 201
    assert created.json()["items"][0] == {"id": "a", "hidden": False}
    assert created.json()["privacy"]["answers"]["on_exhausted"] == "degrade"
    again = await put(caller, "books", exploration={"rate": 0.5})
    assert again.status_code == 200
    shown = await caller.get("/recommenders/books")
    assert shown.json() == again.json()
    assert shown.json()["exploration"] == {"rate": 0.5}
    assert "books" in (await caller.get("/recommenders")).json()["recommenders"]
    gone = await caller.delete("/recommenders/books")
    assert (gone.status_code, gone.content) == (204, b"")
    for method in ("GET", "DELETE"):
        assert (await caller.request(method, "/recommenders/books")).status_code == 404


async def test_what_is_shown_can_be_put_back(caller: Caller) -> None:
    shown = (await caller.get("/recommenders/films")).json()
    answer = await caller.put("/recommenders/films", json=shown)
    assert (answer.status_code, answer.json()) == (200, shown)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"algorithm": "magic"}, "algorithm"),
        ({"context": {}}, "context.dimensions"),
        ({"context": {"dimensions": 0}}, "context.dimensions"),
        ({"context": {"dimensions": "2"}}, "context.dimensions"),
        ({"privacy": {"answers": {"epsilon": 0}}}, "privacy.answers.epsilon"),
        ({"privacy": {"answers": {"epsilno": 1}}}, "privacy.answers.epsilno"),
        ({"privacy": {"feedback": {"epsilon": 0}}}, "privacy.feedback.epsilon"),
        ({"privacy": {"feedback": "none"}}, "privacy.feedback"),
        ({"privacy": {"epsilon": 1}}, "privacy.epsilon"),
        ({"items": [{"id": ""}]}, "items[0].id"),
        ({"items": ["a", {"id": "b", "title": "B"}]}, "items[1].title"),
        ({"items": [3]}, "items[0]"),
        ({"item": []}, "item"),
    ],
)
async def test_a_wrong_document_is_422_and_names_the_field(
    caller: Caller, changes: dict[str, Any], field: str
) -> None:
    answer = await put(caller, "wrong", **changes)
    assert answer.status_code == 422
    assert field in [error["field"] for error in answer.json()["errors"]]
    assert (await caller.get("/recommenders/wrong")).status_code == 404


@pytest.mark.parametrize("name", ["-", "a b", "x" * 65, "%01", "a%2Fb", "ä"])
async def test_a_wrong_name_is_422(caller: Caller, name: str) -> None:
    answer = await put(caller, name)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "name"


async def test_a_shape_that_would_lose_what_was_learned_is_refused(caller: Caller) -> None:
    answer = await put(caller, "films", context={"dimensions": 3})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "context.dimensions"


@pytest.mark.parametrize("body", [b"", b"{", b'{"algorithm":"p-dap","algorithm":"p-dap"}'])
async def test_a_body_that_cannot_be_read_is_400(caller: Caller, body: bytes) -> None:
    answer = await caller.put("/recommenders/wrong", content=body)
    assert answer.status_code == 400
    assert answer.json()["type"] == "urn:discreet:problem:malformed-body"


async def test_items_take_effect_at_once(caller: Caller) -> None:
    await put(caller, "songs", items=["one"])
    added = await caller.post(
        "/recommenders/songs/items", json={"items": ["two", {"id": "three/four", "hidden": True}]}
    )
    assert added.status_code == 200
    assert await offered(caller, "songs") == {"one", "two"}
    shown = await caller.patch("/recommenders/songs/items/three%2Ffour", json={"hidden": False})
    assert shown.json() == {"id": "three/four", "hidden": False}
    assert await offered(caller, "songs") == {"one", "two", "three/four"}
    await caller.patch("/recommenders/songs/items/one", json={"hidden": True})
    removed = await caller.delete("/recommenders/songs/items/three%2Ffour")
    assert removed.status_code == 204
    assert await offered(caller, "songs") == {"two"}
    items = (await caller.get("/recommenders/songs/items")).json()["items"]
    assert items == [{"id": "one", "hidden": True}, {"id": "two", "hidden": False}]


async def test_wrong_items_are_refused(caller: Caller) -> None:
    path = "/recommenders/films/items"
    for body in ({}, {"items": []}, {"items": [""]}, {"items": [{"id": "x", "color": 1}]}):
        assert (await caller.post(path, json=body)).status_code == 422
    too_many = {"items": [f"item-{number}" for number in range(10_000)]}
    assert (await caller.post(path, json=too_many)).status_code == 422
    assert (await caller.patch(f"{path}/a", json={"hidden": "yes"})).status_code == 422
    assert (await caller.patch(f"{path}/zz", json={"hidden": True})).status_code == 404
    assert (await caller.delete(f"{path}/zz")).status_code == 404
    for method in ("GET", "POST"):
        answer = await caller.request(method, "/recommenders/no/items", json={"items": ["x"]})
        assert answer.status_code == 404


async def test_a_field_that_the_algorithm_does_not_use_is_named_by_its_place(
    caller: Caller,
) -> None:
    for answer in (
        await put(caller, "titled", items=[{"id": "a", "title": "A"}]),
        await caller.post("/recommenders/films/items", json={"items": [{"id": "b", "title": "B"}]}),
    ):
        assert answer.status_code == 422
        assert answer.json()["title"] == "Validation failed"
        assert answer.json()["detail"] == "items[0].title: not supported by p-dap"


async def test_a_guarantee_is_shown_as_data(caller: Caller) -> None:
    card = (await caller.get("/recommenders/films/guarantee")).json()
    GuaranteeCard(
        **{
            **card,
            "answers": PriceCard(**card["answers"]),
            "feedback": PriceCard(**card["feedback"]),
        }
    )
    assert card["algorithm"] == "p-dap"
    assert card["closed_loop"] is True
    assert (card["answers"]["epsilon"], card["answers"]["budget_epsilon"]) == (1.0, 3.0)
    assert (await caller.get("/recommenders/none/guarantee")).status_code == 404
    await put(caller, "exact", privacy={"answers": "exact"})
    card = (await caller.get("/recommenders/exact/guarantee")).json()
    assert (card["answers"]["epsilon"], card["closed_loop"]) == (None, False)


async def test_an_unprotected_recommender_reports_nulls(caller: Caller) -> None:
    await put(caller, "bare", privacy={"answers": "exact", "feedback": "exact"})
    answer = (await caller.ask("x", recommender="bare")).json()
    assert "exact" in answer["reason"]
    nothing = {"epsilon": None, "delta": None}
    assert answer["privacy"] == {"epsilon": None, "spent": nothing, "remaining": nothing}
    budget = (await caller.get("/clients/x/budget?recommender=bare")).json()
    account = {"spent": nothing, "remaining": nothing}
    assert budget == {"answers": account, "feedback": account}


async def test_a_recommender_may_refuse_when_the_budget_is_spent(caller: Caller) -> None:
    answers = {"epsilon": 1.0, "budget": {"epsilon": 1.0}, "on_exhausted": "refuse"}
    await put(caller, "strict", privacy={"answers": answers})
    assert (await caller.ask("x", recommender="strict")).status_code == 200
    refused = await caller.ask("x", recommender="strict")
    assert refused.status_code == 403
    assert refused.json()["type"] == "urn:discreet:problem:budget-exhausted"


@pytest.mark.parametrize("algorithm", [None, "p-dab", 3, ""])
async def test_an_unknown_algorithm_is_named_with_those_there_are(
    caller: Caller, algorithm: object
) -> None:
    document = {} if algorithm is None else {"algorithm": algorithm}
    answer = await caller.put("/recommenders/new", json=document)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["field"] == "algorithm"
    assert "p-dap" in error["message"]


async def test_places_in_a_document_do_not_name_the_algorithm(caller: Caller) -> None:
    document = {"algorithm": "p-dap", "context": {"dimensions": "2"}, "colour": 1}
    answer = await caller.put("/recommenders/new", json=document)
    fields = {error["field"] for error in answer.json()["errors"]}
    assert fields == {"context.dimensions", "colour"}


async def test_fields_of_other_families_are_refused(caller: Caller) -> None:
    ask = {"recommender": "films", "client": "ada", "context": [0.5, 0.5]}
    for field, value in (
        ("round", "first"),
        ("category", "drama"),
        ("features", [0.5]),
        ("features", {"indices": [1], "values": [1.0]}),
    ):
        answer = await caller.post("/recommend", json={**ask, field: value})
        assert answer.status_code == 422
        assert field in answer.json()["detail"]
    answer = await caller.post(
        "/recommend", json={**ask, "candidates": ["a", {"id": "b", "features": [1.0, "x"]}]}
    )
    (error,) = answer.json()["errors"]
    assert error["field"] == "candidates[1].features[1]"


async def test_one_that_cannot_be_read_is_listed_refused_and_repaired(caller: Caller) -> None:
    await put(caller, "torn")
    name = RECOMMENDER + "torn"
    content = (await caller.store.registry()).documents[name]
    newer = json.dumps({**json.loads(content), "schema": RECORD_SCHEMA + 1}).encode()
    for repair in ("PUT", "DELETE"):
        content = (await caller.store.registry()).documents[name]
        assert await caller.store.put_document(name=name, document=newer, expected=content)
        await caller.live["services"].registry.settle()
        listed = (await caller.get("/recommenders")).json()
        assert "torn" not in listed["recommenders"]
        assert [one["name"] for one in listed["unreadable"]] == ["torn"]
        assert "newer version" in listed["unreadable"][0]["reason"]
        refused = await caller.ask(recommender="torn")
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
        assert refused.json()["type"] == "urn:discreet:problem:unreadable-recommender"
        assert (await caller.get("/recommenders/torn")).status_code == 503
        assert (await caller.get("/health/ready")).status_code == 200
        assert (await caller.ask()).status_code == 200
        if repair == "PUT":
            assert (await put(caller, "torn")).status_code == 201
            assert (await caller.ask(recommender="torn")).status_code == 200
        else:
            assert (await caller.delete("/recommenders/torn")).status_code == 204
    assert (await caller.get("/recommenders")).json()["unreadable"] == []
