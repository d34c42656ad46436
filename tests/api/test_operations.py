"""Health and metrics."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.api.conftest import Caller

pytestmark = pytest.mark.anyio


async def test_a_working_service_is_alive_and_ready(caller: Caller) -> None:
    for path in ("/health/live", "/health/ready"):
        assert (await caller.get(path)).json() == {"status": "ok"}


async def samples(caller: Caller) -> dict[tuple[str, str], float]:
    answer = await caller.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(answer.text):
        assert family.name.startswith("discreet_")
        assert family.documentation
        for one in family.samples:
            label = one.labels.get("outcome") or one.labels.get("route") or ""
            found[one.name, label] = found.get((one.name, label), 0) + one.value
    return found


async def test_a_scrape_shows_what_was_just_answered(caller: Caller) -> None:
    before = await samples(caller)
    token = (await caller.ask("measured")).json()["recommendation_id"]
    for reward in (0.5, 0.5, 1):
        await caller.post("/feedback", json={"recommendation_id": token, "reward": reward})
    await caller.post("/feedback", json={"recommendation_id": "forged", "reward": 1})
    after = await samples(caller)

    def grown(name: str, label: str = "") -> float:
        return after[name, label] - before.get((name, label), 0)

    assert grown("discreet_recommendations_total", "personalised") == 1
    assert grown("discreet_items_total") == 1
    assert grown("discreet_epsilon_spent_total") == 1.0
    assert grown("discreet_rho_spent_total") > 0
    assert grown("discreet_forged_feedback_total") == 1
    assert grown("discreet_request_duration_seconds_count", "/recommend") == 1
    assert grown("discreet_request_duration_seconds_count", "/feedback") == 4
    assert after["discreet_store_up", ""] == 1
    assert after["discreet_requests_in_flight", ""] == 1
