"""Personalizer's calls as its applications make them: answers, errors, and who pays."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from discreet.api.personalizer import CLIENT_HEADER, KEY_HEADER, ROOT
from discreet.errors import InvalidArgument
from discreet.families.mirror_descent.document import MirrorDescentDocument
from tests.api.conftest import KEY, Caller, calling

pytestmark = pytest.mark.anyio

MENU: dict[str, Any] = {
    "algorithm": "mirror-descent",
    "personalizer": {},
    "features": {"dimension": 4096, "most_nonzeros": 200},
    "releases": {"seconds": 0.05, "growth": 0},
    "reward": {"wait": "10m", "default": 0, "range": [0, 1]},
    "privacy": {
        "answers": {"epsilon": 2.0, "draw": "best", "budget": {"epsilon": 4.0, "delta": 0.0}},
        "feedback": {"epsilon": 8.0, "budget": {"epsilon": 50.0}},
    },
}
DISHES = ("pasta", "cake", "soup")
ACTIONS = [{"id": dish, "features": [{"kind": dish, "nested": {"size": 3}}]} for dish in DISHES]


class Shop(Caller):
    """An application that was written for Personalizer."""

    async def rank(self, user: str | None = "ada", **changes: Any) -> httpx.Response:
        context: list[Any] = [{"timeOfDay": "morning"}]
        if user is not None:
            context.append({"user": {"id": user}})
        body = {"contextFeatures": context, "actions": ACTIONS, **changes}
        return await self.post(f"{ROOT}/rank", json=body)

    async def reward(self, event: str, value: Any = 1.0) -> httpx.Response:
        return await self.post(f"{ROOT}/events/{event}/reward", json={"value": value})

    async def activate(self, event: str) -> httpx.Response:
        return await self.post(f"{ROOT}/events/{event}/activate")


@pytest.fixture(scope="module")
async def shop(anyio_backend: str) -> AsyncIterator[Shop]:
    async with calling(key=None) as caller:
        registry = caller.live["services"].registry
        await registry.put("menu", MirrorDescentDocument.model_validate(MENU))
        caller.__class__ = Shop
        caller.headers[KEY_HEADER] = KEY
        yield caller  # type: ignore[misc]


def error(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Return the error of an answer, having looked at its shape."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    found: dict[str, Any] = answer.json()["error"]
    assert set(answer.json()) == {"error"}
    assert found["code"] == code
    assert found["message"]
    return found


async def test_an_event_is_ranked_activated_and_rewarded(shop: Shop) -> None:
    answer = await shop.rank()
    assert answer.status_code == 201
    found = answer.json()
    assert set(found) == {"ranking", "eventId", "rewardActionId"}
    assert {one["id"] for one in found["ranking"]} == set(DISHES)
    assert found["ranking"][0]["id"] == found["rewardActionId"]
    assert len(found["eventId"]) == 36
    for _ in range(2):
        for answer in (await shop.activate(found["eventId"]), await shop.reward(found["eventId"])):
            assert (answer.status_code, answer.content) == (204, b"")
    again = error(await shop.reward(found["eventId"], 0.0), 409, "Conflict")
    assert again["innerError"] == {"code": "reward-conflict"}


async def test_the_others_keep_their_order_and_the_excluded_their_places(shop: Shop) -> None:
    """40 answers without one of the two have probability 2**-39."""
    chosen = set()
    for number in range(40):
        found = (await shop.rank(f"user {number}", excludedActions=["cake", "no dish"])).json()
        ranking = [one["id"] for one in found["ranking"]]
        first = found["rewardActionId"]
        assert ranking in (["pasta", "cake", "soup"], ["soup", "cake", "pasta"])
        assert ranking[0] == first
        assert found["ranking"][1]["probability"] == 0
        chosen.add(first)
    assert chosen == {"pasta", "soup"}
    found = (await shop.rank("late", excludedActions=["pasta"])).json()
    assert found["ranking"][0] == {"id": "pasta", "probability": 0}
    assert found["rewardActionId"] == found["ranking"][1]["id"] != "pasta"


async def test_a_retry_gets_the_same_answer_and_pays_once(shop: Shop) -> None:
    before = await spent(shop, "retrying")
    answers = [await shop.rank("retrying", eventId="event 1/2") for _ in range(5)]
    assert len({answer.content for answer in answers}) == 1
    assert answers[0].json()["eventId"] == "event 1/2"
    assert await spent(shop, "retrying") - before <= 2.0
    assert (await shop.reward("event%201%2F2")).status_code == 204
    other = [{"id": "bread", "features": []}]
    assert error(await shop.rank("retrying", eventId="event 1/2", actions=other), 409, "Conflict")
    assert error(await shop.rank("another", eventId="event 1/2"), 409, "Conflict")


async def spent(shop: Shop, client: str) -> float:
    answer = await shop.get(
        f"/clients/{client}/budget",
        params={"recommender": "menu"},
        headers={"Authorization": f"Bearer {KEY}"},
    )
    return float(answer.json()["answers"]["spent"]["epsilon"])


async def test_probabilities_are_told_only_where_nobody_was_looked_at(shop: Shop) -> None:
    """A budget for two answers: the third looks at nobody, and all have the same probability."""
    await learned(shop)
    told = []
    for _ in range(3):
        ranking = (await shop.rank("curious")).json()["ranking"]
        told.append({one["probability"] for one in ranking})
    assert told == [{None}, {None}, {1 / 3}]
    assert await spent(shop, "curious") == 4.0


async def learned(shop: Shop) -> None:
    """Have models released until one tells actions apart: noise does, every other time."""
    services = shop.live["services"]
    recommender = await services.registry.find("menu")
    for _ in range(60):
        if recommender.current.model.nonzeros:
            return
        await services.releaser.release(recommender)
    pytest.fail("no model tells actions apart")


@pytest.mark.parametrize("name", [CLIENT_HEADER, KEY_HEADER])
async def test_a_header_that_says_who_it_is_stands_once(shop: Shop, name: str) -> None:
    """Which of two counts, our neighbours might see differently: whose budget would pay?"""
    twice = [(name, "somebody"), (name.lower(), "somebody else")]
    if name == CLIENT_HEADER:
        twice.append(("Authorization", f"Bearer {KEY}"))
    answer = await shop.request(
        "POST", f"{ROOT}/rank", json={"actions": ACTIONS}, headers=httpx.Headers(twice)
    )
    assert answer.status_code == 400
    assert name in answer.json()["error"]["message"]


async def test_a_user_is_named_by_header_or_feature_or_not_at_all(shop: Shop) -> None:
    await learned(shop)
    before = await spent(shop, "grace")
    shown = await shop.post(
        f"{ROOT}/rank", json={"actions": ACTIONS}, headers={CLIENT_HEADER: "grace"}
    )
    assert shown.status_code == 201
    assert (await shop.rank("grace")).status_code == 201
    assert await spent(shop, "grace") - before == 4.0
    nobody = error(await shop.rank(None), 400, "BadRequest")
    assert CLIENT_HEADER in nobody["message"]
    assert "user.id" in nobody["message"]
    assert nobody["target"] == "contextFeatures"
    for name in ("", "x" * 201, "a\tb"):
        error(
            await shop.post(
                f"{ROOT}/rank", json={"actions": ACTIONS}, headers={CLIENT_HEADER: name}
            ),
            400,
            "BadRequest",
        )
    umlaut = {CLIENT_HEADER.encode(): "zoë".encode()}
    assert (
        await shop.post(f"{ROOT}/rank", json={"actions": ACTIONS}, headers=umlaut)
    ).status_code == 201


@pytest.mark.parametrize(
    ("changes", "target"),
    [
        ({"actions": []}, "actions"),
        ({"actions": [{"id": "a", "features": []}] * 2}, "actions"),
        ({"actions": [{"id": "", "features": []}]}, "actions[0].id"),
        ({"actions": [{"id": "a"}]}, "actions[0].features"),
        ({"actions": [{"id": "a", "features": ["sweet"]}]}, "actions[0].features[0]"),
        ({"actions": "none"}, "actions"),
        ({"excludedActions": list(DISHES)}, "excludedActions"),
        ({"eventId": "x" * 257}, "eventId"),
        ({"deferActivation": "yes"}, "deferActivation"),
        ({"contextfeatures": []}, "contextfeatures"),
        (
            {"contextFeatures": [{"userId": "ada"}, {"f": [*map(str, range(300))]}]},
            "contextFeatures",
        ),
    ],
)
async def test_what_cannot_be_read_is_a_bad_request(
    shop: Shop, changes: dict[str, Any], target: str
) -> None:
    found = error(await shop.rank("careless", **changes), 400, "BadRequest")
    assert found["target"] == target
    assert found["details"][0]["target"] == target
    assert await spent(shop, "careless") == 0


async def test_rewards_are_looked_at(shop: Shop) -> None:
    event = (await shop.rank("giver")).json()["eventId"]
    for value in (None, "1", 1.5, -2.0, True):
        assert error(await shop.reward(event, value), 400, "BadRequest")
    assert (await shop.reward(event, -1)).status_code == 204
    assert (await shop.reward(event, 0)).status_code == 204, "the range begins at 0"
    body = error(await shop.post(f"{ROOT}/events/{event}/reward", content=b"{"), 400, "BadRequest")
    assert "JSON" in body["message"]
    for call in (shop.reward("no event"), shop.activate("no event")):
        error(await call, 404, "ResourceNotFound")


@pytest.mark.parametrize("given", [{}, {KEY_HEADER: "wrong"}, {"Authorization": "Bearer wrong"}])
async def test_without_a_key_nothing_is_answered(shop: Shop, given: dict[str, str]) -> None:
    for path in ("rank", "events/x/reward", "events/x/activate", "multislot/rank"):
        plain = {name: value for name, value in shop.headers.items() if name != KEY_HEADER.lower()}
        request = httpx.Request("POST", f"http://test{ROOT}/{path}", headers={**plain, **given})
        error(await shop.send(request), 401, "Unauthorized")


async def test_a_key_needs_the_scope_and_reaches_as_far_as_it_is_bound(shop: Shop) -> None:
    ring = shop.live["services"].keys
    event = (await shop.rank("bound")).json()["eventId"]
    admin = await ring.create(label="admin", scopes=frozenset({"admin"}))
    films = await ring.create(
        label="films", scopes=frozenset({"serve"}), recommenders=frozenset({"films"})
    )
    for key in (admin, films):
        shop.headers[KEY_HEADER] = key
        for answer in (await shop.rank(), await shop.reward(event), await shop.activate(event)):
            error(answer, 403, "Forbidden")
    shop.headers[KEY_HEADER] = KEY
    del shop.headers[KEY_HEADER]
    shop.headers["Authorization"] = f"Bearer {KEY}"
    assert (await shop.rank()).status_code == 201
    shop.headers[KEY_HEADER] = KEY
    del shop.headers["Authorization"]


async def test_an_event_of_another_recommender_is_not_rewarded_here(shop: Shop) -> None:
    body = {"recommender": "films", "client": "ada", "context": [0.5, 0.5], "event_id": "a film"}
    key = {"Authorization": f"Bearer {KEY}"}
    assert (await shop.post("/recommend", json=body, headers=key)).status_code == 200
    for call in (shop.reward("a film"), shop.activate("a film")):
        error(await call, 404, "ResourceNotFound")


@pytest.mark.parametrize(
    ("method", "path", "status", "says"),
    [
        ("GET", "configurations/service", 501, "PUT /recommenders"),
        ("PUT", "configurations/policy", 501, "PUT /recommenders"),
        ("GET", "model/properties", 501, "released"),
        ("POST", "evaluations", 501, "evaluate"),
        ("GET", "status", 501, "/health/ready"),
        ("GET", "rank", 404, "/rank"),
        ("POST", "nonsense", 404, "/rank"),
    ],
)
async def test_other_calls_say_what_does_it_here(
    shop: Shop, method: str, path: str, status: int, says: str
) -> None:
    code = "NotImplemented" if status == 501 else "ResourceNotFound"
    assert says in error(await shop.request(method, f"{ROOT}/{path}"), status, code)["message"]


async def test_several_slots_are_several_calls(shop: Shop) -> None:
    path = "/personalizer/v1.1-preview.1/multislot/rank"
    assert "each slot" in error(await shop.post(path, json={}), 501, "NotImplemented")["message"]


async def test_one_recommender_answers_and_without_one_nobody_does(shop: Shop) -> None:
    registry = shop.live["services"].registry
    with pytest.raises(InvalidArgument, match="only one can have it: menu does"):
        await registry.put("second", MirrorDescentDocument.model_validate(MENU))
    await registry.put("menu", MirrorDescentDocument.model_validate(MENU))
    async with calling(key=None) as other:
        answer = await other.post(
            f"{ROOT}/rank", json={"actions": ACTIONS}, headers={KEY_HEADER: KEY}
        )
        assert "personalizer" in error(answer, 404, "ResourceNotFound")["message"]


async def test_a_failure_shows_nothing_of_itself(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(ask: Any) -> Any:
        raise RuntimeError("canary")

    monkeypatch.setattr(shop.live["services"].recommend, "recommend", fail)
    answer = await shop.rank()
    error(answer, 500, "InternalServerError")
    assert "canary" not in answer.text


async def test_a_deferred_event_awaits_its_reward_once_it_is_activated(shop: Shop) -> None:
    services = shop.live["services"]
    recommender = await services.registry.find("menu")

    async def awaiting() -> int:
        return (await shop.store.due(generation=recommender.generation, most=1)).open

    before = await awaiting()
    await shop.rank("at once")
    assert await awaiting() == before + 1
    event = (await shop.rank("deferred", deferActivation=True)).json()["eventId"]
    assert await awaiting() == before + 1
    for _ in range(2):
        assert (await shop.activate(event)).status_code == 204
        assert await awaiting() == before + 2
