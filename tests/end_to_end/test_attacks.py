"""Attacks on a running server, by whoever holds a key that was given to them and nobody else's.

Each was once possible, or is a variant that a reviewer thought of. Two workers answer, so that what
one of them remembers is not what protects.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.end_to_end.servers import CALL_SECONDS, Server, private, serving

SHELF = {
    "algorithm": "collaborative",
    "items": [
        {"id": item, "categories": ["Space" if place % 2 else "Crime"]}
        for place, item in enumerate("abcdefgh")
    ],
}
NEWS = {
    "algorithm": "p-rec",
    "objects": 3,
    "most_shown": 2,
    "horizon": 100,
    "peers": 200,
    "voters": 2000,
    "client_runs": {"most": 2},
    "privacy": {"budget": {"epsilon": 1000.0, "delta": 1e-6}},
}
SELDOM = {"seconds": 3_600.0, "growth": 0.0, "longest": 3_600.0}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("attacked")) as one:
        one.put("films", privacy=private(epsilon=1.0), releases=SELDOM)
        for name, document in (("shelf", SHELF), ("attic", SHELF), ("news", NEWS)):
            made = one.client.put(f"/recommenders/{name}", json=document)
            assert made.status_code == 201, made.text
        yield one


def keyed(server: Server, key: str) -> httpx.Client:
    return httpx.Client(
        base_url=server.url, headers={"Authorization": f"Bearer {key}"}, timeout=CALL_SECONDS
    )


def device_of(server: Server, client: str, **more: Any) -> httpx.Client:
    """A person's own device, enrolled at the shelf."""
    asked = {"client": client, "recommenders": ["shelf"], **more}
    code = server.client.post("/enrolments", json=asked).json()["code"]
    traded = httpx.post(f"{server.url}/enrolments/redeem", json={"code": code}, timeout=30)
    return keyed(server, traded.json()["key"])


# event_id


def told(answer: httpx.Response) -> tuple[int, bytes, list[tuple[str, str]]]:
    """Everything that a caller is told, but for the clock and what names the request itself."""
    own = {"date", "x-request-id", "traceparent", "server-timing"}
    headers = [(name, value) for name, value in answer.headers.items() if name not in own]
    return answer.status_code, answer.content, headers


def test_an_event_id_does_not_tell_the_context_of_its_answer(server: Server) -> None:
    """One right guess among forty, over both workers, alone and in a batch: all the same bytes."""
    secret = {"recommender": "films", "client": "victim", "context": [0.625, 0.125]}
    first = server.client.post("/recommend", json={**secret, "event_id": "bought"})
    assert first.status_code == 200
    spent = server.budget("films", "victim")
    guesses: list[dict[str, Any]] = [
        {**secret, "context": [place / 8, other / 8]} for place in range(8) for other in range(5)
    ]
    assert secret in guesses
    guesses += [
        {**secret, "exclude": ["a"]},
        {**secret, "candidates": ["b", "c"]},
    ]
    answers = {
        str(told(server.client.post("/recommend", json={**one, "event_id": "bought"})))
        for one in guesses
    }
    assert len(answers) == 1
    batch = {"requests": [{**one, "event_id": "bought"} for one in guesses]}
    results = server.client.post("/recommend/batch", json=batch).json()["results"]
    assert len({json.dumps(one, sort_keys=True) for one in results}) == 1
    assert server.budget("films", "victim") == spent
    # What cannot be a question at all is refused for every event alike, known or not.
    wrong = [
        server.client.post("/recommend", json={**secret, "context": [2.0], "event_id": event})
        for event in ("bought", "never used")
    ]
    assert [one.status_code for one in wrong] == [422, 422]
    assert wrong[0].json()["errors"] == wrong[1].json()["errors"]


def test_a_device_neither_finds_nor_takes_other_peoples_event_ids(server: Server) -> None:
    """Ids that a shop counts up are no secret: a device that meets them could block the next."""
    taken = {"recommender": "shelf", "client": "bob", "event_id": "order-1"}
    assert server.client.post("/recommend", json=taken).status_code == 200
    with device_of(server, "eve") as eve:
        statuses = [
            eve.post(
                "/recommend", json={"recommender": "shelf", "client": "eve", "event_id": event}
            ).status_code
            for event in ("order-1", "order-2", "order-3")
        ]
        # Her own retries are retries.
        ask = {"recommender": "shelf", "client": "eve", "event_id": "order-2"}
        assert eve.post("/recommend", json=ask).content == eve.post("/recommend", json=ask).content
    assert statuses == [200, 200, 200], "the id that is in use looks like any other"
    for event in ("order-2", "order-3"):
        answer = server.client.post("/recommend", json={**taken, "event_id": event})
        assert answer.status_code == 200, "and none was taken"


# Keys


OPEN_TO_DEVICES = {
    ("GET", "/recommenders/{name}/catalogue"),
    ("GET", "/recommenders/{name}/popular"),
    ("GET", "/recommenders/{name}/guarantee"),
}
PUBLIC = ("/health", "/docs", "/openapi.json", "/reference", "/statement", "/demo", "/favicon")


def statement(server: Server, client: str) -> str:
    """Return what was spent on a client's behalf."""
    answer = server.client.get(f"/clients/{client}/statement")
    assert answer.status_code == 200, answer.text
    return answer.text


def test_a_device_key_opens_no_route_for_somebody_else(server: Server) -> None:
    """Every operation that the server says it has, asked about another client."""
    document = server.client.get("/openapi.json").json()
    seen = []
    before = statement(server, "bob")
    bodies: list[dict[str, Any]] = [
        {"recommender": "shelf", "client": "bob", "items": ["a"], "replace": True},
        {"client": "bob", "items": ["a"], "replace": True},
        {"client": "bob", "recommenders": ["shelf"]},
        {"recommender": "attic", "client": "mallory"},
        {"requests": [{"recommender": "shelf", "client": "bob"}]},
        {"event_id": "order-1", "reward": 1},
        {"round": "r", "voter": "bob", "object": "x"},
    ]
    with device_of(server, "mallory", scopes=["profile", "statement"]) as device:
        for path, operations in document["paths"].items():
            if path == "/" or path.startswith(PUBLIC) or path == "/enrolments/redeem":
                continue
            for method in operations:
                if method not in ("get", "post", "put", "patch", "delete"):
                    continue
                for name in ("shelf", "attic"):
                    url = path.replace("{name}", name)
                    for slot in ("client", "client_id", "id"):
                        url = url.replace(f"{{{slot}}}", "bob")
                    url = url.replace("{", "").replace("}", "")
                    query = {"recommender": name, "client": "bob"}
                    for body in bodies if method != "get" else [None]:
                        answer = device.request(method.upper(), url, params=query, json=body)
                        if answer.is_success:
                            seen.append((method.upper(), path, name, answer.text))
    harmless = []
    for method, path, name, text in seen:
        if (method, path) in OPEN_TO_DEVICES:
            assert name == "shelf"
        elif path == "/recommend/batch":
            assert [one["status"] for one in json.loads(text)["results"]] == [403]
        else:
            harmless.append((method, path, text))
    assert harmless == []
    assert statement(server, "bob") == before


# Metrics


def scrape(server: Server) -> dict[str, float]:
    text = server.client.get("/metrics").text
    return {
        f"{one.name} {sorted(one.labels.items())}": one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def grown(server: Server, body: dict[str, Any], reward: float | None) -> dict[str, float]:
    """By how much every series grows, histograms and their sums included, with one answer."""
    before = scrape(server)
    answer = server.client.post("/recommend", json=body)
    assert answer.status_code == 200, answer.text
    if reward is not None:
        said = {"recommendation_id": answer.json()["recommendation_id"], "reward": reward}
        assert server.client.post("/feedback", json=said).status_code == 200
    after = scrape(server)
    return {
        name: value - before.get(name, 0.0)
        for name, value in after.items()
        if value != before.get(name, 0.0)
    }


BY_THE_CLOCK = ("_bucket ", "_sum ", "process_", "python_")
"""Durations, and what moves by itself."""


def exact(growth: dict[str, float]) -> dict[str, float]:
    return {
        name: value
        for name, value in growth.items()
        if not any(part in name for part in BY_THE_CLOCK)
        and "'/metrics'" not in name
        and "duration_seconds_count" not in name  # the background calls the store by the clock
        and "_created" not in name
        and "('recommender', 'shelf')" not in name  # releases its models by the clock
    }


def test_one_answer_between_two_scrapes(server: Server) -> None:
    """The context, and the reward: neither is in what grew, and every bucket counts one answer.

    How long it took is in the sums of histograms, to the microsecond. No claim is made about that:
    docs/privacy.md says so.
    """
    worlds: dict[str, list[dict[str, float]]] = {"first": [], "second": []}
    for place in range(6):
        for world, context, reward in (("first", [0.1, 0.1], 0.0), ("second", [0.9, 0.8], 1.0)):
            body = {"recommender": "films", "client": f"{world} {place}", "context": context}
            worlds[world].append(grown(server, body, reward))
    first, second = (
        {json.dumps(exact(one), sort_keys=True) for one in many} for many in worlds.values()
    )
    assert first == second
    assert len(first) == 1
    assert "recommendations_total" in first.pop()
    for one in (*worlds["first"], *worlds["second"]):
        for route in ("'/recommend'", "'/feedback'"):
            counted = {value for name, value in one.items() if "_bucket " in name and route in name}
            assert counted == {1.0}
        # Histograms are of durations alone: there is none of rewards, prices or regret.
        assert all("duration_seconds" in name for name in one if "_bucket " in name)


# p-REC


def test_one_id_begins_as_many_runs_as_it_may_whatever_it_does(server: Server) -> None:
    """Over both workers at once, with erasures, event ids and lists; two runs are allowed."""
    votes = {f"v{at}": "ab"[at % 2] for at in range(600)}
    for number in range(8):
        made = {"id": f"r{number}", "objects": ["a", "b", "c"][: 2 + number % 2]}
        assert server.client.post("/recommenders/news/rounds", json=made).is_success
        cast = {"round": f"r{number}", "votes": votes}
        assert server.client.post("/recommenders/news/votes", json=cast).is_success
    run = server.client.get("/recommenders/news/guarantee").json()["answers"]["epsilon"]

    def spent() -> float:
        found = server.client.get("/clients/any/budget", params={"recommender": "news"}).json()
        return float(found["answers"]["spent"]["epsilon"])

    def once(number: int) -> int:
        with keyed(server, server.key) as caller:
            body = {
                "recommender": "news",
                "client": "eve",
                "round": f"r{number % 8}",
                "limit": 1 + number % 2,
                **({"event_id": f"e{number}"} if number % 3 else {}),
            }
            if number % 7 == 0:
                caller.delete("/clients/eve")
            return caller.post("/recommend", json=body).status_code

    with ThreadPoolExecutor(12) as pool:
        statuses = set(pool.map(once, range(96)))
    assert statuses <= {200, 404, 409}
    assert spent() <= 2 * run * (1 + 1e-6)


# Erasure


def test_nothing_from_before_an_erasure_is_found_after_it(server: Server) -> None:
    """Requests with event ids over both workers, and an erasure in the middle of them."""

    def once(number: int) -> tuple[str, int]:
        event = f"storm {number}"
        with keyed(server, server.key) as caller:
            if number == 40:
                return "erased", caller.delete("/clients/gone").status_code
            body = {
                "recommender": "films",
                "client": "gone",
                "context": [0.5, 0.5],
                "event_id": event,
            }
            return event, caller.post("/recommend", json=body).status_code

    with ThreadPoolExecutor(16) as pool:
        statuses = dict(pool.map(once, range(80)))
    assert statuses.pop("erased") == 200
    assert set(statuses.values()) <= {200, 404, 409}
    kept = {
        event: server.client.post("/feedback", json={"event_id": event, "reward": 1}).status_code
        for event in statuses
    }
    for event, status in statuses.items():
        assert status == 200 or kept[event] == 404, "refused, and stored all the same"
    # Those that were answered before are gone, those after are there; another erasure ends it.
    assert server.client.delete("/clients/gone").status_code == 200
    for event in statuses:
        found = server.client.post("/feedback", json={"event_id": event, "reward": 1})
        assert found.status_code == 404, event
