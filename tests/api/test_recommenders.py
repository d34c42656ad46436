"""Recommenders over HTTP: every change is seen by the very next request."""

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
        ({"items": ["a", {"id": "b", "features": [1.0]}]}, "items[1].features"),
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


async def test_a_document_without_items_keeps_them_and_what_was_learned(caller: Caller) -> None:
    shown = (await caller.get("/recommenders/films")).json()
    items = shown.pop("items")
    answer = await caller.put("/recommenders/films", json={**shown, "exploration": {"rate": 0.3}})
    assert (answer.status_code, answer.json()["items"]) == (200, items)
    assert answer.json()["exploration"] == {"rate": 0.3}
    slots = caller.live["services"].registry.loaded()[0].slot_of
    emptied = await caller.put("/recommenders/films", json={**shown, "items": []})
    assert emptied.json()["items"] == []
    back = await caller.put("/recommenders/films", json={**shown, "items": items})
    assert back.json()["items"] == items
    # Whoever says [] means it: the same ids begin anew.
    again = caller.live["services"].registry.loaded()[0].slot_of
    assert not set(slots.values()) & set(again.values())


async def test_a_merge_patch_changes_what_it_names(caller: Caller) -> None:
    before = (await caller.get("/recommenders/films")).json()
    patch = {"privacy": {"answers": {"budget": {"epsilon": 5.0}}}, "exploration": {"rate": 0.5}}
    patched = await caller.patch(
        "/recommenders/films", json=patch, headers={"Content-Type": "application/merge-patch+json"}
    )
    assert patched.status_code == 200
    before["privacy"]["answers"]["budget"]["epsilon"] = 5.0
    before["exploration"]["rate"] = 0.5
    assert patched.json() == before
    assert (await caller.get("/recommenders/films")).json() == before
    # Null goes back to the default; a part that nobody wrote begins as it is shown.
    back = await caller.patch(
        "/recommenders/films", json={"exploration": None, "releases": {"seconds": 2.0}}
    )
    assert back.json()["exploration"] == {"rate": 0.02}
    assert back.json()["releases"] == {**before["releases"], "seconds": 2.0}


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"context": {"dimensions": 3}}, "context.dimensions"),
        ({"algorithm": "contextual"}, "algorithm"),
        ({"ledger": "another"}, "ledger"),
        ({"privacy": {"answers": {"epsilon": 0}}}, "privacy.answers.epsilon"),
        ({"privacy": {"answers": {"budget": {"epsilon": 0.5}}}}, "privacy.answers"),
        ({"exploratoin": {}}, "exploratoin"),
        ({"items": None}, "items"),
        ({"items": ["x", "x"]}, "body"),
    ],
)
async def test_a_patch_that_makes_no_document_changes_nothing(
    caller: Caller, patch: dict[str, Any], field: str
) -> None:
    before = await caller.get("/recommenders/films")
    refused = await caller.patch("/recommenders/films", json=patch)
    assert refused.status_code == 422
    assert field in [error["field"] for error in refused.json()["errors"]]
    after = await caller.get("/recommenders/films")
    assert (after.json(), after.headers["etag"]) == (before.json(), before.headers["etag"])


async def test_a_patch_needs_an_object_and_a_recommender(caller: Caller) -> None:
    assert (await caller.patch("/recommenders/films", json=[1])).status_code == 422
    assert (await caller.patch("/recommenders/none", json={})).status_code == 404


async def test_items_are_left_out_on_demand(caller: Caller) -> None:
    for method, body in (("GET", None), ("PATCH", {}), ("PUT", FILMS)):
        answer = await caller.request(method, "/recommenders/films?items=false", json=body)
        assert answer.status_code == 200
        assert "items" not in answer.json()
