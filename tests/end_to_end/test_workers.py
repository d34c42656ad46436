"""Several workers behave as one: budgets, registries and metrics."""

import asyncio
import http.client
import itertools
import json
from collections import Counter
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.end_to_end.servers import CALL_SECONDS, Server, document, private
from tests.waiting import wait_for

N = 40


async def call_all(server: Server, bodies: list[tuple[str, Any]], width: int) -> list[Any]:
    """Send everything, over `width` connections at a time."""
    answers: list[Any] = [None] * len(bodies)
    turns = iter(range(len(bodies)))
    headers = {"Authorization": f"Bearer {server.key}"}

    async with httpx.AsyncClient(
        base_url=server.url, headers=headers, timeout=CALL_SECONDS
    ) as client:

        async def call_next() -> None:
            for turn in turns:
                path, body = bodies[turn]
                answers[turn] = await client.post(path, json=body)

        await asyncio.gather(*(call_next() for _ in range(width)))
    return answers


def question(recommender: str, client: str, **more: Any) -> tuple[str, Any]:
    body = {"recommender": recommender, "client": client, "context": [0.3, 0.6], **more}
    return "/recommend", body


def ask(server: Server, recommender: str, client: str) -> Any:
    path, body = question(recommender, client)
    answer = server.client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(("budget", "delta"), [(N * 0.1, 0.0), (5.0, 1e-6)])
def test_a_budget_for_n_decisions_personalises_exactly_n_times(
    server: Server, budget: float, delta: float
) -> None:
    name = "epsilons" if delta == 0 else "either"
    # With a delta, the sum of rhos admits more answers than the sum of epsilons; how many is the
    # accountant's affair, so it is asked: one client alone finds out.
    server.put(name, privacy=private(epsilon=0.1, budget=budget, delta=delta))
    alone = 0
    while ask(server, name, "alone")["personalised"]:
        alone += 1
    assert alone == N if delta == 0 else budget / 0.1 < alone < 200
    bodies = [question(name, f"client-{i % 3}") for i in range(600)]
    answers = asyncio.run(call_all(server, bodies, width=24))
    assert {answer.status_code for answer in answers} == {200}
    personalised = Counter(
        body["client"]
        for (_, body), answer in zip(bodies, answers, strict=True)
        if answer.json()["personalised"]
    )
    assert personalised == {f"client-{i}": alone for i in range(3)}


def test_retries_in_parallel_pay_once_and_answer_alike(server: Server) -> None:
    server.put("retried")
    bodies = [question("retried", "retrier", event_id="the-same") for _ in range(60)]
    answers = asyncio.run(call_all(server, bodies, width=20))
    assert len({answer.content for answer in answers}) == 1
    assert server.budget("retried", "retrier") == 1.0


def test_feedback_in_parallel_counts_once(server: Server) -> None:
    server.put("clicked")
    token = ask(server, "clicked", "clicker")["recommendation_id"]
    feedback = {"recommendation_id": token, "reward": 1}
    answers = asyncio.run(call_all(server, [("/feedback", feedback)] * 60, width=20))
    assert Counter(answer.json()["duplicate"] for answer in answers) == {False: 1, True: 59}


def fresh(server: Server, path: str, body: Any = None, *, method: str = "POST") -> tuple[int, Any]:
    """Call over a connection of its own, so that any worker may get it."""
    host = server.url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=CALL_SECONDS)
    try:
        headers = {"Authorization": f"Bearer {server.key}"}
        connection.request(method, path, body=json.dumps(body), headers=headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_a_change_is_seen_by_every_worker_as_soon_as_it_is_acknowledged(server: Server) -> None:
    before = len(server.lines)
    changes = itertools.count()

    def both_were_asked() -> bool:
        name = f"seen-{next(changes)}"
        server.put(name, items=["old"])
        for _ in range(12):
            assert fresh(server, *question(name, "x"))[1]["items"] == [{"id": "old"}]
        server.client.put(f"/recommenders/{name}", json=document(items=["new"]))
        for _ in range(12):
            assert fresh(server, *question(name, "x"))[1]["items"] == [{"id": "new"}]
        server.client.delete(f"/recommenders/{name}")
        for _ in range(6):
            assert fresh(server, *question(name, "x"))[0] == 404
        asked = [line for line in server.lines[before:] if line.get("route") == "/recommend"]
        return {line["pid"] for line in asked} == set(server.workers)

    for _ in range(3):
        both_were_asked()
    wait_for("both workers to be asked", both_were_asked)


def total(server: Server, name: str, **labels: str) -> float:
    text = server.client.get("/metrics").text
    return sum(
        one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if one.name == name and labels.items() <= one.labels.items()
    )


def test_metrics_are_those_of_all_workers_together(server: Server) -> None:
    server.put("measured")
    bodies = [question("measured", f"client-{i}") for i in range(100)]
    answers = asyncio.run(call_all(server, bodies, width=10))
    tokens = [answer.json()["recommendation_id"] for answer in answers]
    feedback = [("/feedback", {"recommendation_id": token, "reward": 0.5}) for token in tokens]
    asyncio.run(call_all(server, feedback, width=10))
    for name, value in (
        ("discreet_recommendations_total", 100),
        ("discreet_items_total", 100),
        ("discreet_epsilon_spent_total", 100.0),
    ):
        # The worker that is asked waits for its own samples, not for those of the other.
        wait_for(
            f"{value} in {name}",
            lambda name=name, value=value: (
                total(server, name, recommender="measured") == pytest.approx(value)
            ),
        )
    fed_back = {"route": "/feedback", "status": "2xx"}
    assert total(server, "discreet_request_duration_seconds_count", **fed_back) >= 100
    assert total(server, "discreet_store_up") == 1
    assert total(server, "discreet_build_info") == 1


def test_a_released_model_reaches_every_worker_and_survives_a_change(server: Server) -> None:
    often = {"seconds": 0.2, "growth": 0}
    server.put("kept", privacy=private(feedback="exact"), releases=often)
    for i in range(30):
        token = ask(server, "kept", f"c{i}")["recommendation_id"]
        server.client.post("/feedback", json={"recommendation_id": token, "reward": 1})
    ask(server, "kept", "after the last feedback")
    wait_for("a model", lambda: total(server, "discreet_arms_explored", recommender="kept") >= 1)
    released = total(server, "discreet_release", recommender="kept")
    assert released >= 1
    assert total(server, "discreet_releases_total", recommender="kept") >= released
    server.put("kept", privacy=private(epsilon=0.5, feedback="exact"), releases=often)
    wait_for(
        "the model to return",
        lambda: total(server, "discreet_release", recommender="kept") >= released,
    )
    assert total(server, "discreet_cells", recommender="kept") >= 1
    assert total(server, "discreet_arms_explored", recommender="kept") >= 1
    # Exact sums: what the metrics say of them is what was sent, however many workers say it.
    wait_for(
        "30 records",
        lambda: total(server, "discreet_released_feedback", recommender="kept") == 30,
    )
    assert total(server, "discreet_released_rewards", recommender="kept") == 30
    for _ in range(12):
        status, card = fresh(server, "/recommenders/kept/guarantee", method="GET")
        assert (status, card["answers"]["epsilon"]) == (200, 0.5)
        assert card["release"] >= released


def test_a_removed_recommender_is_forgotten_by_every_worker(server: Server) -> None:
    server.put("removed", releases={"seconds": 0.1, "growth": 0})
    ask(server, "removed", "x")
    wait_for("a release", lambda: total(server, "discreet_release", recommender="removed") >= 1)
    server.client.delete("/recommenders/removed")
    wait_for("its end", lambda: total(server, "discreet_release", recommender="removed") == 0)
    server.put("removed")
    for _ in range(6):
        status, card = fresh(server, "/recommenders/removed/guarantee", method="GET")
        assert (status, card["release"]) == (200, 0)
