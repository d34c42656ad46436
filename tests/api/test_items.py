"""Items over HTTP: every change is seen by the very next request, and every wrong line is named."""

import json
from typing import Any

import pytest

from discreet.families.documents import MOST_ITEMS
from tests.api.conftest import FILMS, Caller, calling

pytestmark = pytest.mark.anyio

PATH = "/recommenders/songs/items"


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


async def test_items_take_effect_at_once(caller: Caller) -> None:
    await put(caller, "songs", items=["one"])
    added = await caller.post(
        "/recommenders/songs/items", json={"items": ["two", {"id": "three/four", "hidden": True}]}
    )
    assert (added.status_code, added.json()) == (
        200,
        {"added": 2, "changed": 0, "unchanged": 0, "total": 3},
    )
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
        await put(caller, "titled", items=[{"id": "a", "categories": ["A"]}]),
        await caller.post(
            "/recommenders/films/items", json={"items": [{"id": "b", "categories": ["B"]}]}
        ),
    ):
        assert answer.status_code == 422
        assert answer.json()["title"] == "Validation failed"
        assert answer.json()["detail"] == "items[0].categories: not supported by p-dap"


def lines(*items: Any) -> bytes:
    return b"\n".join(one if isinstance(one, bytes) else json.dumps(one).encode() for one in items)


async def imported(caller: Caller, *items: Any) -> Any:
    return await caller.post(f"{PATH}/import", content=lines(*items))


async def test_lines_that_can_be_used_are_taken_and_the_others_named(caller: Caller) -> None:
    await put(caller, "songs", items=["old"])
    answer = await imported(
        caller,
        "one",
        {"id": "two", "title": "Two", "attributes": {"year": 1969, "tags": ["x"]}},
        b"",
        b'{"id": "three", "id": "drei"}',
        b"{",
        {"id": ""},
        {"id": "four", "categories": ["c"]},
        {"id": "old", "hidden": True},
        b"",
    )
    assert answer.status_code == 200
    shown = answer.json()
    errors = shown.pop("errors")
    assert shown == {"added": 2, "changed": 1, "unchanged": 0, "total": 3, "refused": 4}
    assert [(one["line"], one["field"]) for one in errors] == [
        (4, "(line)"),
        (5, "(line)"),
        (6, "id"),
        (7, "categories"),
    ]
    assert errors[3]["message"] == "not supported by p-dap"
    again = await imported(caller, "one", {"id": "old", "hidden": True})
    assert again.json() == {
        "added": 0, "changed": 0, "unchanged": 2, "total": 3, "refused": 0, "errors": []
    }  # fmt: skip


async def test_an_import_that_cannot_be_read_at_all_is_refused(caller: Caller) -> None:
    await put(caller, "songs", items=[])
    assert (await caller.post(f"{PATH}/import", content=b" \n")).status_code == 422
    too_many = b"\n".join([b'"x"'] * 100_002)
    assert (await caller.post(f"{PATH}/import", content=too_many)).status_code == 422
    elsewhere = await caller.post("/recommenders/none/items/import", content=b'"x"')
    assert elsewhere.status_code == 404
    async with calling(most_body_bytes=1_024) as small:
        answer = await small.post("/recommenders/films/items/import", content=b" " * 17_000)
        assert answer.status_code == 413


async def test_items_are_listed_page_by_page_whatever_is_removed_meanwhile(caller: Caller) -> None:
    await put(caller, "songs", items=[f"item {number}" for number in range(7)])
    first = (await caller.get(f"{PATH}?limit=3")).json()
    assert [item["id"] for item in first["items"]] == ["item 0", "item 1", "item 2"]
    assert (first["total"], "next" in first) == (7, True)
    await caller.delete(f"{PATH}/item%202")
    second = (await caller.get(f"{PATH}?limit=3&after={first['next']}")).json()
    assert [item["id"] for item in second["items"]] == ["item 3", "item 4", "item 5"]
    last = (await caller.get(f"{PATH}?after={second['next']}")).json()
    assert ([item["id"] for item in last["items"]], "next" in last) == (["item 6"], False)
    assert (await caller.get(f"{PATH}?limit=0")).status_code == 422


async def test_an_item_is_described_anew_by_a_merge_patch(caller: Caller) -> None:
    await put(caller, "songs", items=[{"id": "a", "attributes": {"price": 3, "colour": "red"}}])
    patched = await caller.patch(
        f"{PATH}/a", json={"title": "A", "attributes": {"price": 4, "colour": None}}
    )
    assert patched.json() == {"id": "a", "hidden": False, "title": "A", "attributes": {"price": 4}}
    assert (await caller.patch(f"{PATH}/a", json={"title": None})).json() == {
        "id": "a", "hidden": False, "attributes": {"price": 4}
    }  # fmt: skip
    assert (await caller.patch(f"{PATH}/a", json={"features": [1.0]})).status_code == 422
    huge = {"attributes": {"text": "x" * 5_000}}
    refused = await caller.patch(f"{PATH}/a", json=huge)
    assert (refused.status_code, "4096 bytes" in refused.json()["detail"]) == (422, True)


@pytest.mark.parametrize("attributes", [b'{"a": NaN}', b'{"a": 1e999}'])
async def test_attributes_are_json(caller: Caller, attributes: bytes) -> None:
    await put(caller, "songs", items=[])
    answer = await imported(caller, b'{"id": "a", "attributes": ' + attributes + b"}")
    assert answer.json()["errors"][0]["field"] == "attributes"


async def test_answers_describe_their_items_when_asked_to(caller: Caller) -> None:
    described = {"title": "Song", "attributes": {"price": 2.5, "tags": ["x", None]}}
    await put(caller, "songs", items=[{"id": "a", **described}, {"id": "b", **described}])
    question = {"recommender": "songs", "client": "x", "context": [0.5, 0.5], "limit": 2}
    plain = (await caller.post("/recommend", json=question)).json()
    assert sorted(item["id"] for item in plain["items"]) == ["a", "b"]
    assert all(set(item) == {"id"} for item in plain["items"])
    full = {**question, "items": "full", "event_id": "one"}
    for _ in range(2):  # fresh, and again from what is stored
        answer = (await caller.post("/recommend", json=full)).json()
        items = sorted(answer["items"], key=lambda item: item["id"])
        assert items == [{"id": "a", **described}, {"id": "b", **described}]
    batch = {"requests": [question, {**question, "items": "full"}]}
    results = (await caller.post("/recommend/batch", json=batch)).json()["results"]
    assert [set(one["items"][0]) for one in results] == [{"id"}, {"id", "title", "attributes"}]
    assert (await caller.post("/recommend", json={**question, "items": "all"})).status_code == 422


async def test_an_algorithm_that_cannot_hold_more_says_why(caller: Caller) -> None:
    await put(caller, "songs", items=[f"item {number}" for number in range(9_999)])
    answer = await imported(caller, "one", "two")
    assert answer.status_code == 422
    assert answer.json()["detail"] == (
        "items: p-dap holds at most 10,000 items: every cell keeps sums, with their noise, for "
        "each of them"
    )
    assert (await imported(caller, "one")).json()["total"] == 10_000


async def test_a_catalogue_of_many_items_is_filled_page_by_page(caller: Caller) -> None:
    path = "/recommenders/many/items"
    await caller.put("/recommenders/many", json={"algorithm": "collaborative"})
    for start in range(0, MOST_ITEMS, 50_000):
        page = lines(*[f"item {number}" for number in range(start, start + 50_000)])
        answer = await caller.post(f"{path}/import", content=page)
        assert (answer.status_code, answer.json()["added"]) == (200, 50_000)
    assert (await caller.post(f"{path}/import", content=b'"one more"')).status_code == 422
    assert (await caller.get(f"{path}?limit=1")).json()["total"] == MOST_ITEMS
    answer = await caller.post("/recommend", json={"recommender": "many", "client": "x"})
    assert answer.status_code == 200
