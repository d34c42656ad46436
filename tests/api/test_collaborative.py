"""Catalogue, profiles and answers of a collaborative recommender over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.api.conftest import KEY, Caller, calling
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio

BOOKS = {
    "algorithm": "collaborative",
    "items": [
        {"id": "knife", "title": "The Knife", "categories": ["crime"]},
        {"id": "alibi", "title": "An Alibi", "categories": ["crime", "comedy"]},
        {"id": "comet", "categories": ["space"]},
        {"id": "draft", "title": "A Draft", "categories": ["essays"], "hidden": True},
        "plain",
    ],
    "releases": {"seconds": 0.1, "growth": 0.0},
}


@pytest.fixture(scope="module")
async def books(anyio_backend: str) -> AsyncIterator[Caller]:
    async with calling() as caller:
        created = await caller.put("/recommenders/books", json=BOOKS)
        assert created.status_code == 201, created.text
        yield caller


async def send(caller: Caller, client: str, *items: str, **more: Any) -> httpx.Response:
    body = {"client": client, "items": items, **more}
    return await caller.post("/recommenders/books/profiles", json=body)


async def ask(caller: Caller, client: str, **more: Any) -> httpx.Response:
    body = {"recommender": "books", "client": client, "limit": 10, **more}
    return await caller.post("/recommend", json=body)


def ids(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


async def test_the_document_says_how_little_is_protected(books: Caller) -> None:
    shown = (await books.get("/recommenders/books")).json()
    assert shown["privacy"]["answers"] == "exact"
    assert shown["privacy"]["feedback"]["epsilon"] == 1.0
    assert shown["training"] == {"neighbours": 100, "most_profiles": 100_000}
    assert shown["items"][1]["categories"] == ["crime", "comedy"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"privacy": {"answers": "private"}}, "privacy.answers"),
        ({"privacy": {"feedback": {"epsilon": 0}}}, "privacy.feedback.epsilon"),
        ({"privacy": {"feedback": "none"}}, "privacy.feedback"),
        ({"training": {"seconds": 1}}, "training.seconds"),
        ({"training": {"neighbours": 501}}, "training.neighbours"),
        ({"training": {"neighbours": 1.5}}, "training.neighbours"),
        ({"training": {"most_profiles": 0}}, "training.most_profiles"),
        ({"training": {"factors": 8}}, "training.factors"),
        ({"context": {"dimensions": 2}}, "context"),
        ({"items": [{"id": "a", "categories": [""]}]}, "items[0].categories[0]"),
    ],
)
async def test_a_document_that_cannot_be_used_names_the_field(
    books: Caller, changes: dict[str, Any], field: str
) -> None:
    answer = await books.put("/recommenders/other", json={**BOOKS, **changes})
    assert answer.status_code == 422
    assert field in {error["field"] for error in answer.json()["errors"]}


async def test_the_catalogue_shows_what_may_be_recommended(books: Caller) -> None:
    answer = await books.get("/recommenders/books/catalogue")
    assert answer.json() == {
        "items": [
            {"id": "knife", "title": "The Knife", "categories": ["crime"]},
            {"id": "alibi", "title": "An Alibi", "categories": ["crime", "comedy"]},
            {"id": "comet", "title": None, "categories": ["space"]},
            {"id": "plain", "title": None, "categories": []},
        ],
        "categories": ["crime", "comedy", "space"],
    }


async def test_a_profile_is_kept_and_left_out_of_the_answer(books: Caller) -> None:
    answer = await send(books, "reader/one", "knife", "comet", "knife")
    assert (answer.status_code, answer.json()) == (200, {"client": "reader/one", "items": 2})
    assert (await send(books, "reader/one", "comet", "knife")).json()["items"] == 2
    asked = await ask(books, "reader/one")
    assert set(ids(asked)) == {"alibi", "plain"}
    assert asked.json()["personalised"] is True
    assert asked.json()["reason"] == "the profile is used as it was sent"
    nothing = {"epsilon": None, "delta": None}
    assert asked.json()["privacy"] == {"epsilon": None, "spent": nothing, "remaining": nothing}
    more = await send(books, "reader/one", "plain", replace=False)
    assert more.json()["items"] == 3
    assert ids(await ask(books, "reader/one")) == ["alibi"]
    assert ids(await ask(books, "reader/one", category="space")) == []


async def test_the_card_says_who_protects_what(books: Caller) -> None:
    card = (await books.get("/recommenders/books/guarantee")).json()
    assert card["algorithm"] == "collaborative"
    assert card["answers"]["epsilon"] is None
    assert card["feedback"]["epsilon"] == 1.0
    assert any(text.startswith("profiles: ") for text in card["not_covered"])


async def test_clients_without_a_profile_get_popular_items(books: Caller) -> None:
    answer = await ask(books, "stranger")
    assert set(ids(answer)) == {"knife", "alibi", "comet", "plain"}
    assert answer.json()["personalised"] is False
    assert answer.json()["reason"] == "the client has no profile"
    assert set(ids(await ask(books, "stranger", category="crime"))) == {"knife", "alibi"}


async def test_many_categories_in_one_batch(books: Caller) -> None:
    await send(books, "batcher", "alibi")
    requests = [
        {"recommender": "books", "client": "batcher", "limit": 5, "category": category}
        for category in ("crime", "poetry", "space")
    ]
    results = (await books.post("/recommend/batch", json={"requests": requests})).json()["results"]
    assert [one["status"] for one in results] == [200, 422, 200]
    assert results[0]["items"] == [{"id": "knife"}]
    assert results[1]["problem"]["errors"][0]["field"] == "category"


async def test_erasing_a_client_erases_the_profile(books: Caller) -> None:
    await send(books, "leaver", "knife")
    erased = (await books.delete("/clients/leaver")).json()
    assert (erased["events"], erased["records"]) == (0, 1)
    assert erased["certificate"]["erased"]["records"] == {"books": 1}
    answer = await ask(books, "leaver")
    assert "knife" in ids(answer)
    assert answer.json()["personalised"] is False
    assert (await send(books, "leaver", "knife")).json()["items"] == 1
    assert (await send(books, "leaver")).json()["items"] == 0
    assert (await ask(books, "leaver")).json()["personalised"] is False


async def test_what_others_read_is_learned_with_the_next_release(books: Caller) -> None:
    for reader in range(5):
        await send(books, f"pair {reader}", "knife", "plain")
    await send(books, "half a pair", "plain")

    async def first() -> str:
        return ids(await ask(books, "half a pair", candidates=["alibi", "comet", "knife"]))[0]

    async with asyncio.timeout(PATIENCE):
        while await first() != "knife":  # noqa: ASYNC110  nobody tells us
            await asyncio.sleep(0.05)


async def test_feedback_counts_once(books: Caller) -> None:
    token = (await ask(books, "clicker", limit=1)).json()["recommendation_id"]
    feedback = {"recommendation_id": token, "reward": 1}
    assert (await books.post("/feedback", json=feedback)).json()["duplicate"] is False
    assert (await books.post("/feedback", json=feedback)).json()["duplicate"] is True
    again = await books.post("/feedback", json={**feedback, "reward": 0})
    assert again.status_code == 409


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"client": "c", "items": ["knife", "no such book"]}, "items[1]"),
        ({"client": "c", "items": ["knife", 7]}, "items[1]"),
        ({"client": "c", "items": "knife"}, "items"),
        ({"client": "c"}, "items"),
        ({"items": []}, "client"),
        ({"client": "", "items": []}, "client"),
        ({"client": "c", "items": ["knife"] * 10_001}, "items"),
        ({"client": "c", "items": [], "replace": 1}, "replace"),
        ({"client": "c", "items": [], "merge": True}, "merge"),
    ],
)
async def test_a_profile_that_cannot_be_used_names_the_field(
    books: Caller, body: dict[str, Any], field: str
) -> None:
    answer = await books.post("/recommenders/books/profiles", json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field
    assert "no such book" not in answer.text
    assert (await ask(books, "c")).json()["personalised"] is False, "nothing was kept"


async def test_other_recommenders_take_no_profiles(books: Caller) -> None:
    for name in ("films", "nobody"):
        path = f"/recommenders/{name}"
        assert (await books.get(f"{path}/catalogue")).status_code == 404
        body = {"client": "c", "items": []}
        assert (await books.post(f"{path}/profiles", json=body)).status_code == 404


async def test_a_key_needs_the_serve_scope(books: Caller) -> None:
    keys = books.live["services"].keys
    for scope, status in (("serve", 200), ("admin", 403), ("metrics", 403)):
        key = await keys.create(label=scope, scopes=frozenset({scope}))
        headers = {"Authorization": f"Bearer {key}"}
        got = await books.get("/recommenders/books/catalogue", headers=headers)
        body = {"client": "c", "items": []}
        sent = await books.post("/recommenders/books/profiles", json=body, headers=headers)
        assert (got.status_code, sent.status_code) == (status, status)
    assert KEY not in got.text


async def test_a_catalogue_can_grow(books: Caller) -> None:
    added = await books.post(
        "/recommenders/books/items", json={"items": [{"id": "late", "categories": ["poetry"]}]}
    )
    assert added.status_code == 200
    assert ids(await ask(books, "stranger", category="poetry")) == ["late"]
    await books.delete("/recommenders/books/items/late")
    assert (await ask(books, "stranger", category="poetry")).status_code == 422
