"""A person's statement over HTTP: for their own key, an operator's, and nobody else's."""

import datetime
from collections.abc import AsyncIterator
from typing import Any

import pytest

from discreet.families.p_dap.document import AdaptivePartitionDocument
from tests.api.conftest import FILMS, Caller, calling

pytestmark = pytest.mark.anyio

MONTHLY = {
    **FILMS,
    "ledger": "shop",
    "privacy": {
        "answers": {"epsilon": 1.0, "budget": {"epsilon": 3.0, "per": "30d"}},
        "feedback": {"epsilon": 1.0, "budget": {"epsilon": 8.0, "per": "4w"}},
    },
}


@pytest.fixture(scope="module")
async def shop(anyio_backend: str) -> AsyncIterator[Caller]:
    async with calling() as one:
        registry = one.live["services"].registry
        for name in ("series", "shorts"):
            await registry.put(name, AdaptivePartitionDocument.model_validate(MONTHLY))
        yield one


async def personal_key(shop: Caller, client: str, *recommenders: str) -> dict[str, str]:
    """Return the headers of a person who traded a code for a key to their statement."""
    asked = {"client": client, "recommenders": list(recommenders), "scopes": ["statement"]}
    code = (await shop.post("/enrolments", json=asked)).json()["code"]
    traded = await shop.post("/enrolments/redeem", json={"code": code}, headers={})
    assert traded.json()["scopes"] == ["statement"]
    return {"Authorization": f"Bearer {traded.json()['key']}"}


async def spend(shop: Caller, client: str, recommender: str) -> None:
    answer = (await shop.ask(client, recommender=recommender)).json()
    body = {"recommendation_id": answer["recommendation_id"], "reward": 1}
    assert (await shop.post("/feedback", json=body)).json()["learned"]


async def statement(shop: Caller, client: str, **given: Any) -> dict[str, Any]:
    answer = await shop.get(f"/clients/{client}/statement", **given)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    found: dict[str, Any] = answer.json()
    return found


async def test_a_person_sees_what_was_spent_on_what_and_when(shop: Caller) -> None:
    for name in ("films", "series", "shorts"):
        await spend(shop, "ada", name)
    key = await personal_key(shop, "ada", "films", "series", "shorts")
    found = await statement(shop, "ada", headers=key)
    assert found["kept_days"] == 35
    films, series, shorts = found["recommenders"]
    assert (films["recommender"], films["ledger"]) == ("films", None)
    assert films["answers"]["spent"]["epsilon"] == 1.0
    assert films["answers"]["remaining"]["epsilon"] == 2.0
    assert films["answers"]["budget"] == {"epsilon": 3.0, "delta": 1e-6, "per_seconds": None}
    assert "resets_at" not in films["answers"]
    # The two of one group have spent together, and each tells its own days.
    for one in (series, shorts):
        assert one["ledger"] == "shop"
        assert one["answers"]["spent"]["epsilon"] == 2.0
        assert one["answers"]["ever"]["epsilon"] == 2.0
        assert one["answers"]["budget"]["per_seconds"] == 30 * 86_400
        assert one["answers"]["resets_at"].endswith("T00:00:00Z")
        assert [(day["account"], day["uses"]) for day in one["days"]] == [
            ("answers", 1),
            ("feedback", 1),
        ]
        assert one["days"][0]["epsilon"] == 1.0
        datetime.date.fromisoformat(one["days"][0]["day"])


async def test_a_personal_key_opens_one_statement_and_nothing_else(shop: Caller) -> None:
    key = await personal_key(shop, "ada", "films")
    assert [
        one["recommender"] for one in (await statement(shop, "ada", headers=key))["recommenders"]
    ] == ["films"]
    assert (await shop.get("/clients/bob/statement", headers=key)).status_code == 403
    assert (await shop.get("/clients/ada/budget?recommender=films", headers=key)).status_code == 403
    assert (await shop.delete("/clients/ada", headers=key)).status_code == 403
    body = {"recommender": "films", "client": "ada", "context": [0.1, 0.1]}
    assert (await shop.post("/recommend", json=body, headers=key)).status_code == 403
    assert (await shop.get("/metrics", headers=key)).status_code == 403


async def test_a_device_and_a_stranger_cannot_read_a_statement(shop: Caller) -> None:
    asked = {"client": "ada", "recommenders": ["films"]}
    code = (await shop.post("/enrolments", json=asked)).json()["code"]
    key = (await shop.post("/enrolments/redeem", json={"code": code})).json()["key"]
    device = {"Authorization": f"Bearer {key}"}
    assert (await shop.get("/clients/ada/statement", headers=device)).status_code == 403
    nobody = {"Authorization": "Bearer nothing"}
    assert (await shop.get("/clients/ada/statement", headers=nobody)).status_code == 401


async def test_reading_a_statement_spends_nothing_and_strangers_have_empty_ones(
    shop: Caller,
) -> None:
    first, second = await statement(shop, "new"), await statement(shop, "new")
    assert first == second
    assert all(one["days"] == [] for one in first["recommenders"])
    assert {one["answers"]["spent"]["epsilon"] for one in first["recommenders"]} == {0.0}


async def test_erasing_a_client_erases_the_days_and_not_the_sums(shop: Caller) -> None:
    await spend(shop, "gone", "films")
    await shop.delete("/clients/gone")
    films = (await statement(shop, "gone"))["recommenders"][0]
    assert films["days"] == []
    assert films["answers"]["ever"]["epsilon"] == 1.0


@pytest.mark.parametrize("scopes", [[], ["admin"], ["serve", "statement"], "statement"])
async def test_a_code_is_for_personal_scopes_alone(shop: Caller, scopes: Any) -> None:
    asked = {"client": "ada", "recommenders": ["films"], "scopes": scopes}
    assert (await shop.post("/enrolments", json=asked)).status_code == 422


async def test_windows_show_in_answers_and_budgets(shop: Caller) -> None:
    privacy = (await shop.ask("eve", recommender="series")).json()["privacy"]
    budget = (await shop.get("/clients/eve/budget?recommender=series")).json()
    assert privacy["resets_at"] == budget["answers"]["resets_at"]
    assert privacy["spent"] == budget["answers"]["spent"]
    other = (await shop.ask("new too", recommender="series")).json()["privacy"]
    assert other["resets_at"] == privacy["resets_at"], "the same for everybody"
    assert "resets_at" not in (await shop.ask("eve")).json()["privacy"]
    repeated = [
        (await shop.ask("eve", recommender="series", event_id="again")).json() for _ in range(2)
    ]
    assert repeated[0] == repeated[1]
    assert repeated[0]["privacy"]["resets_at"] == privacy["resets_at"]


async def test_what_was_exact_is_null_and_still_json(shop: Caller) -> None:
    exact = {**FILMS, "privacy": {"answers": "exact"}}
    registry = shop.live["services"].registry
    await registry.put("bare", AdaptivePartitionDocument.model_validate(exact))
    await shop.ask("open", recommender="bare")
    await registry.put("bare", AdaptivePartitionDocument.model_validate(FILMS))
    answer = await shop.ask("open", recommender="bare")
    assert b"Infinity" not in answer.content
    assert answer.json()["personalised"] is False
    assert answer.json()["privacy"]["spent"]["epsilon"] is None
    (bare,) = [
        one
        for one in (await statement(shop, "open"))["recommenders"]
        if one["recommender"] == "bare"
    ]
    assert bare["answers"]["ever"]["epsilon"] is None
    assert bare["days"][0]["epsilon"] is None
