"""Rounds and votes over HTTP: what works, and what is refused with nothing stored."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from discreet.state.memory import MemoryStore
from tests.api.conftest import Caller, calling

pytestmark = pytest.mark.anyio

NEWS: dict[str, Any] = {
    "algorithm": "p-rec",
    "objects": 2,
    "horizon": 60,
    "peers": 150,
    "voters": 1000,
    "privacy": {"budget": {"epsilon": 20.0, "delta": 1e-6}},
}


@pytest.fixture(scope="module")
async def news(anyio_backend: str) -> AsyncIterator[Caller]:
    async with calling() as caller:
        made = await caller.put("/recommenders/news", json=NEWS)
        assert made.status_code == 201, made.text
        yield caller


async def make(news: Caller, name: str, **changes: Any) -> Any:
    body = {"id": name, "objects": ["a", "b"], **changes}
    return await news.post("/recommenders/news/rounds", json=body)


async def vote(news: Caller, **body: Any) -> Any:
    return await news.post("/recommenders/news/votes", json=body)


async def ask(news: Caller, client: str, **changes: Any) -> Any:
    body = {"recommender": "news", "client": client, **changes}
    return await news.post("/recommend", json=body)


def stored(news: Caller) -> Any:
    """Everything of rounds and votes that the store holds."""
    assert isinstance(news.store, MemoryStore)
    pages = {key: bytes(page) for key, page in news.store._pages.items()}
    rosters = {key: dict(names) for key, names in news.store._rosters.items()}
    return pages, rosters, dict(news.store._blobs)


async def test_a_round_from_beginning_to_end(news: Caller) -> None:
    made = await make(news, "monday")
    assert made.status_code == 201
    assert made.json() == {"id": "monday", "objects": ["a", "b"], "state": "open"}
    assert (await make(news, "monday")).status_code == 200
    everybody = {f"v{at}": "b" for at in range(300)}
    counted = await vote(news, round="monday", votes=everybody)
    assert (counted.status_code, counted.json()) == (200, {"counted": 300})
    assert (await vote(news, round="monday", voter="v0", object="a")).json() == {"counted": 1}
    answer = await ask(news, "ann", round="monday")
    assert answer.status_code == 200, answer.text
    shown = answer.json()
    assert shown["round"] == "monday"
    assert shown["personalised"] is True
    assert [item["id"] for item in shown["items"]] in (["a"], ["b"])
    assert shown["privacy"]["epsilon"] > 0
    assert (await ask(news, "ann")).json()["items"] == shown["items"]
    feedback = {"recommendation_id": shown["recommendation_id"], "reward": 1}
    assert (await news.post("/feedback", json=feedback)).json()["duplicate"] is False
    assert (await news.post("/feedback", json=feedback)).json()["duplicate"] is True
    state = await news.get("/recommenders/news/rounds/monday")
    assert state.json()["state"] == "closed"
    budget = await news.get("/clients/anybody/budget", params={"recommender": "news"})
    spent = budget.json()["answers"]["spent"]["epsilon"]
    assert spent == shown["privacy"]["spent"]["epsilon"]
    assert budget.json()["feedback"]["spent"]["epsilon"] is None
    card = (await news.get("/recommenders/news/guarantee")).json()
    assert card["answers"]["epsilon"] == pytest.approx(shown["privacy"]["epsilon"])
    assert card["feedback"]["epsilon"] is None


async def test_votes_as_a_list_for_several_rounds(news: Caller) -> None:
    for name in ("list-1", "list/2"):
        await make(news, name)
    votes = [
        {"round": "list-1", "voter": "x", "object": "a"},
        {"voter": "y", "object": "b"},
    ]
    counted = await vote(news, round="list/2", votes=votes)
    assert (counted.status_code, counted.json()) == (200, {"counted": 2})


async def test_closing_by_hand(news: Caller) -> None:
    await make(news, "by/hand")
    closed = await news.patch("/recommenders/news/rounds/by%2Fhand", json={"state": "closed"})
    assert (closed.status_code, closed.json()["state"]) == (200, "closed")
    late = await vote(news, round="by/hand", voter="x", object="a")
    assert late.status_code == 422
    again = await news.patch("/recommenders/news/rounds/by%2Fhand", json={"state": "open"})
    assert again.status_code == 422
    listed = (await news.get("/recommenders/news/rounds")).json()["rounds"]
    assert {one["id"]: one["state"] for one in listed}["by/hand"] == "closed"


async def test_a_round_that_is_not_there(news: Caller) -> None:
    for name in ("nowhere", "no/where"):
        assert (await news.get(f"/recommenders/news/rounds/{name}")).status_code == 404
        closing = await news.patch(f"/recommenders/news/rounds/{name}", json={"state": "closed"})
        assert closing.status_code == 404


async def test_an_event_id_makes_a_retry_safe(news: Caller) -> None:
    await make(news, "event")
    first = await ask(news, "eve", round="event", event_id="e-1")
    again = await ask(news, "eve", round="event", event_id="e-1")
    assert first.json() == again.json()
    received = await news.post("/feedback", json={"event_id": "e-1", "reward": 0})
    assert received.status_code == 200


async def test_several_clients_in_a_batch(news: Caller) -> None:
    await make(news, "batch")
    body = {
        "requests": [
            {"recommender": "news", "client": f"b{at}", "round": name}
            for at, name in enumerate(("batch", "batch", "nowhere"))
        ]
    }
    results = (await news.post("/recommend/batch", json=body)).json()["results"]
    assert [one.get("status", 200) for one in results][2] == 422
    assert all(one["round"] == "batch" for one in results[:2])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"id": "bad", "objects": ["a"]}, "objects"),
        ({"id": "bad", "objects": ["a", "b", "c"]}, "objects"),
        ({"id": "bad", "objects": ["a", "a"]}, "objects"),
        ({"id": "bad", "objects": []}, "objects"),
        ({"id": "bad", "objects": ["a", ""]}, "objects[1]"),
        ({"id": "bad", "objects": ["a", 2]}, "objects[1]"),
        ({"id": "", "objects": ["a", "b"]}, "id"),
        ({"id": "bad"}, "objects"),
        ({"id": "bad", "objects": ["a", "b"], "votes": []}, "votes"),
        ({"id": "standing", "objects": ["x", "y"]}, "id"),
    ],
)
async def test_unusable_rounds_are_refused_and_nothing_is_stored(
    news: Caller, body: dict[str, Any], field: str
) -> None:
    await make(news, "standing")
    before = stored(news)
    refused = await news.post("/recommenders/news/rounds", json=body)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == field
    assert stored(news) == before


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"round": "nowhere", "voter": "x", "object": "a"}, "round"),
        ({"round": "ended", "voter": "x", "object": "a"}, "round"),
        ({"round": "going", "voter": "x", "object": "z"}, "object"),
        ({"round": "going", "voter": "x"}, "body"),
        ({"voter": "x", "object": "a"}, "body"),
        ({"round": "going"}, "body"),
        ({"round": "going", "voter": "x", "object": "a", "votes": {"y": "a"}}, "body"),
        ({"round": "going", "votes": {}}, "votes"),
        ({"round": "going", "votes": {"x": "a", "y": "z"}}, "votes[1].object"),
        ({"round": "going", "votes": {"x": 3}}, "votes[0].object"),
        ({"round": "going", "votes": [{"voter": "", "object": "a"}]}, "votes[0].voter"),
        ({"votes": [{"voter": "x", "object": "a"}]}, "body"),
        ({"round": "going", "votes": [{"voter": "x", "object": "a"},
                                      {"voter": "x", "object": "b"}]}, "votes[1].voter"),
        ({"round": "going", "votes": {f"v{at}": "a" for at in range(1001)}}, "voter"),
    ],
)  # fmt: skip
async def test_unusable_votes_are_refused_and_nothing_is_stored(
    news: Caller, body: dict[str, Any], field: str
) -> None:
    for name in ("ended", "going"):
        await make(news, name)
    await news.patch("/recommenders/news/rounds/ended", json={"state": "closed"})
    before = stored(news)
    refused = await vote(news, **body)
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["field"] == field
    assert stored(news) == before


async def test_a_refusal_does_not_repeat_who_votes(news: Caller) -> None:
    await make(news, "discreet")
    for votes in ({"Mata Hari": 7}, {"Mata Hari": "z"}, [{"voter": "Mata Hari", "object": []}]):
        refused = await vote(news, round="discreet", votes=votes)
        assert refused.status_code == 422
        assert "Mata" not in refused.text


@pytest.mark.parametrize("reward", [0.5, 2, -1, "like", True, None])
async def test_feedback_is_like_or_dislike(news: Caller, reward: Any) -> None:
    await make(news, "words")
    shown = (await ask(news, "word", round="words")).json()
    before = stored(news)
    feedback = {"recommendation_id": shown["recommendation_id"], "reward": reward}
    refused = await news.post("/feedback", json=feedback)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "reward"
    assert stored(news) == before


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"round": "nowhere"}, "round"),
        ({"limit": 3}, "limit"),
        ({"exclude": ["a"]}, "exclude"),
        ({"candidates": ["a"]}, "candidates"),
        ({"context": [0.5]}, "context"),
    ],
)
async def test_unusable_questions_are_refused(
    news: Caller, changes: dict[str, Any], field: str
) -> None:
    refused = await ask(news, "odd", **changes)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == field


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"peers": 11}, "peers"),
        ({"horizon": 1}, "horizon"),
        ({"horizon": 60, "radius": 30}, "horizon"),
        ({"objects": 1}, "objects"),
        ({"items": [{"id": "a", "hidden": True}]}, "items[0].hidden"),
        ({"privacy": {"budget": {"epsilon": 20, "delta": 1e-9}}}, "privacy"),
        ({"privacy": {"budget": {"epsilon": 0.01, "delta": 1e-6}}}, "privacy.budget"),
        ({"voters": 100}, "peers"),
        ({"context": {"dimensions": 2}}, "context"),
    ],
)
async def test_conditions_of_the_theorems_are_checked(
    news: Caller, changes: dict[str, Any], field: str
) -> None:
    refused = await news.put("/recommenders/other", json={**NEWS, **changes})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == field
    assert (await news.get("/recommenders/other")).status_code == 404


async def test_nothing_left_to_answer_is_a_conflict(news: Caller) -> None:
    made = await news.put("/recommenders/empty", json=NEWS)
    assert made.status_code == 201
    refused = await news.post("/recommend", json={"recommender": "empty", "client": "c"})
    assert refused.status_code == 409
    await news.delete("/recommenders/empty")


async def test_other_recommenders_take_no_votes(news: Caller) -> None:
    body = {"id": "r", "objects": ["a", "b"]}
    assert (await news.post("/recommenders/films/rounds", json=body)).status_code == 404
    assert (await news.post("/recommenders/none/rounds", json=body)).status_code == 404


async def test_erasing_a_client_erases_history_and_votes(news: Caller) -> None:
    await make(news, "erased")
    await vote(news, round="erased", voter="both", object="a")
    await ask(news, "both", round="erased")
    erased = await news.delete("/clients/both")
    assert erased.status_code == 200, erased.text
    assert (await ask(news, "both", round="erased")).status_code == 200


async def test_runs_and_votes_are_counted(news: Caller) -> None:
    shown = (await news.get("/metrics")).text
    assert "discreet_vote" not in shown, "whether somebody votes is private"
    assert 'discreet_client_runs_total{outcome="begun",recommender="news"}' in shown
