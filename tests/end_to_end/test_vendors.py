"""Vendors as real instances: what is on the wire, and what happens when one is killed."""

import os
import random
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import redis

from discreet.state.embedded import socket_for
from tests.end_to_end.servers import (
    CALL_SECONDS,
    KEY,
    Server,
    new_key,
    private,
    serving,
)
from tests.end_to_end.tapped import Tap, tapping
from tests.waiting import PATIENCE, join, wait_for

PATIENT = {"DISCREET_VENDOR_TIMEOUT_SECONDS": "10"}


def ask(server: Server, context: list[float], client: str) -> dict[str, Any]:
    body = {"recommender": "films", "client": client, "context": context}
    answer = server.client.post("/recommend", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def reward(server: Server, token: str, value: float) -> bool:
    body = {"recommendation_id": token, "reward": value}
    answer = server.client.post("/feedback", json=body)
    assert answer.status_code == 200, answer.text
    return bool(answer.json()["duplicate"])


def sample(server: Server, series: str) -> float:
    """The sum of a series' samples."""
    lines = server.client.get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(series))


def to_be_passed_on(server: Server) -> int:
    """How much feedback waits for vendors: no metric tells, so the store is asked."""
    with redis.Redis(unix_socket_path=str(socket_for(server.data / "valkey"))) as store:
        queues = store.scan_iter(match="discreet:q:{*}", _type="hash")
        return sum(int(store.hlen(queue)) for queue in queues)


# The wire


@dataclass
class Joined:
    """An instance that asks, its vendor, and everything between them."""

    a: Server
    b: Server
    tap: Tap
    contexts: list[list[float]] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)


ITEMS_OF_B = [f"zebra-of-b-{number}" for number in range(4)]
ROUNDS = 400


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Joined]:
    """Two instances after some traffic, all feedback passed on."""
    rng = random.Random(11)
    with serving(tmp_path_factory.mktemp("b"), "--workers", "1") as b:
        b.put("films", items=ITEMS_OF_B, privacy=private(guests={"epsilon": 2.0}))
        key = new_key(b.data, "shop-a")
        parts = urlsplit(b.url)
        with (
            tapping(str(parts.hostname), int(parts.port or 0)) as tap,
            serving(
                tmp_path_factory.mktemp("a"),
                "--workers",
                "1",
                DISCREET_PEER_KEYS=f"b={key}",
                DISCREET_PEER_ADDRESSES=f"b={tap.url}",
                **PATIENT,
            ) as a,
        ):
            a.put(
                "films",
                items=["yak-of-a-1", "yak-of-a-2"],
                vendors=[{"name": "b", "url": tap.url}],
                # Cells split soon, and without luck, so that more than one is asked for.
                privacy=private(feedback="exact"),
                partition={"base": 60},
                releases={"seconds": 0.2, "growth": 0},
                # Everything pays alike here, so nothing but exploration must lead to the vendor.
                exploration={"rate": 0.8},
            )
            pair = Joined(a, b, tap)
            for number in range(ROUNDS):
                context = [rng.random(), rng.random()]
                answer = ask(a, context, f"walrus-client-{number}")
                pair.contexts.append(context)
                pair.answers.append(answer)
                reward(a, answer["recommendation_id"], 0.8125)
            wait_for("feedback to be passed on", lambda: not to_be_passed_on(a))
            yield pair


def vendors_answers(pair: Joined) -> list[dict[str, Any]]:
    return [answer for answer in pair.answers if "vendor" in answer["items"][0]]


def test_traffic_went_both_ways_and_was_counted(joined: Joined) -> None:
    theirs = vendors_answers(joined)
    # A fifth of all answers at the least: fewer than 30 has probability below 1e-9.
    assert len(theirs) >= 30
    assert {answer["items"][0]["vendor"] for answer in theirs} == {"b"}
    asked = [message for message in joined.tap.asked if message.first.split()[1].endswith("s")]
    answered = 'discreet_forwards_total{outcome="answered",peer="b",recommender="films"}'
    assert len(asked) == len(theirs) == sample(joined.a, answered)
    received = 'discreet_forwards_received_total{outcome="answered",peer="shop-a"'
    assert len(theirs) == sample(joined.b, received)
    assert sample(joined.a, "discreet_vendor_circuit_open") == 0


def test_what_the_vendor_is_told_has_no_context_client_or_item(joined: Joined) -> None:
    everything = b"".join(bytes(stream) for stream in joined.tap.there)
    for secret in (b"walrus-client", b"yak-of-a", b"zebra-of-b"):
        assert secret not in everything
    for context in joined.contexts:
        for value in context:
            assert repr(value)[:8].encode() not in everything
    centres = set()
    for message in joined.tap.asked:
        assert set(message.headers) <= {
            "host", "accept", "accept-encoding", "connection", "user-agent", "authorization",
            "content-type", "content-length",
        }  # fmt: skip
        path = message.first.split()[1]
        if path == "/peers/recommenders/films/feedback":
            assert set(message.body) == {"handle", "reward"}
            continue
        assert path == "/peers/recommenders/films/forwards"
        assert set(message.body) == {"centre", "epsilon"}
        centres.add(tuple(message.body["centre"]))
        assert message.body["epsilon"] == 0.5
    assert len(centres) > 1
    for centre in centres:
        # Each is the middle of a cell: an odd multiple of a power of 1/2, and never finer than the
        # splits that so much feedback allows.
        assert all((value * 64).is_integer() and 0 < value < 1 for value in centre)


def test_what_the_vendor_answers_is_a_handle_and_nothing_else(joined: Joined) -> None:
    everything = b"".join(bytes(stream) for stream in joined.tap.back)
    for secret in (b"walrus-client", b"yak-of-a", b"zebra-of-b"):
        assert secret not in everything
    handles = []
    for message in joined.tap.answered:
        assert message.first.startswith("HTTP/1.1 200")
        assert set(message.headers) <= {
            "date", "content-type", "content-length", "x-request-id", "connection",
        }  # fmt: skip
        if "handle" not in message.body:
            assert message.body == {"accepted": True}
            continue
        assert set(message.body) == {"handle", "expires_at"}
        handles.append(message.body["handle"])
    assert len(set(handles)) == len(handles)
    assert len({len(handle) for handle in handles}) == 1
    assert set(handles) == {answer["items"][0]["id"] for answer in vendors_answers(joined)}


def test_whoever_serves_the_user_at_the_vendor_opens_the_handle(joined: Joined) -> None:
    handles = [answer["items"][0]["id"] for answer in vendors_answers(joined)]
    items = set()
    for handle in handles[:30]:
        opened = joined.b.client.post("/handles/open", json={"handle": handle})
        assert opened.status_code == 200
        items.add(opened.json()["item"]["id"])
        # The feedback came through the other instance; here it is a duplicate, or a conflict.
        assert reward(joined.b, handle, 0.8125)
        other = joined.b.client.post("/feedback", json={"recommendation_id": handle, "reward": 0})
        assert other.status_code == 409
    assert items <= set(ITEMS_OF_B)
    assert len(items) > 1
    assert joined.a.client.post("/handles/open", json={"handle": handle}).status_code == 400


def test_a_peers_key_opens_nothing_else(joined: Joined) -> None:
    headers = {"Authorization": f"Bearer {new_key(joined.b.data, 'shop-c')}"}
    handle = vendors_answers(joined)[0]["items"][0]["id"]
    for path, body in (
        ("/handles/open", {"handle": handle}),
        ("/feedback", {"recommendation_id": handle, "reward": 0.5}),
        ("/recommend", {"recommender": "films", "client": "x", "context": [0, 0]}),
    ):
        assert joined.b.client.post(path, json=body, headers=headers).status_code == 403
    # Another vendor's handle is not its own to give feedback on.
    stolen = joined.b.client.post(
        "/peers/recommenders/films/feedback",
        json={"handle": handle, "reward": 0.8125},
        headers=headers,
    )
    assert stolen.status_code == 400
    own = joined.b.client.post(
        "/peers/recommenders/films/forwards",
        json={"centre": [0.5, 0.5], "epsilon": 1},
        headers=headers,
    )
    assert own.status_code == 200


def test_logs_say_nothing_about_anybody(joined: Joined) -> None:
    for server in (joined.a, joined.b):
        for secret in (
            "walrus",
            "zebra",
            "yak",
            "0.8125",
            vendors_answers(joined)[0]["items"][0]["id"],
        ):
            assert secret not in server.output


# Killing one


PAUSE = 0.02
"""Between two questions: somebody always asks, and the processor is not kept from the servers."""


class Load(threading.Thread):
    """Asks one server and gives feedback, until told to stop; remembers every failure."""

    def __init__(self, server: Server, seed: int) -> None:
        super().__init__(daemon=True)
        self.client = httpx.Client(
            base_url=server.url, headers={"Authorization": f"Bearer {KEY}"}, timeout=CALL_SECONDS
        )
        self.rng = random.Random(seed)
        self.name_of_clients = f"load-{seed}"
        self.failures: list[str] = []
        self.answers = 0
        self.by_vendor: dict[str | None, int] = {}
        self.handles: list[tuple[str, str]] = []
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(PAUSE):
            try:
                self.once()
            except httpx.HTTPError as error:
                self.failures.append(repr(error))
        self.client.close()

    def once(self) -> None:
        body = {
            "recommender": "films",
            "client": f"{self.name_of_clients}-{self.answers % 50}",
            "context": [self.rng.random(), self.rng.random()],
        }
        answer = self.client.post("/recommend", json=body)
        self.answers += 1
        if answer.status_code != 200:
            self.failures.append(answer.text)
            return
        found = answer.json()
        (item,) = found["items"]
        vendor = item.get("vendor")
        self.by_vendor[vendor] = self.by_vendor.get(vendor, 0) + 1
        given = self.client.post(
            "/feedback", json={"recommendation_id": found["recommendation_id"], "reward": 0.5}
        )
        if given.status_code != 200:
            self.failures.append(given.text)
        elif vendor is not None and given.json()["learned"]:
            self.handles.append((vendor, item["id"]))

    def count(self, vendor: str) -> int:
        return self.by_vendor.get(vendor, 0)


def test_killing_an_instance_costs_no_request_at_the_others(tmp_path: Path) -> None:
    """C is killed with all its processes while A and B, which ask it, are under load; it comes
    back, is asked again, and has all feedback that was learned in between."""
    # Everything pays alike, so nothing but exploration must lead to the others, and soon.
    plenty = {"privacy": private(budget=1e6), "exploration": {"rate": 0.8}}
    options = ("--workers", "1")
    with serving(tmp_path / "c", *options) as c:
        c.put("films", items=["c1", "c2"], **plenty)
        keys = {name: new_key(c.data, name) for name in ("a", "b")}
        to_c = {"name": "c", "url": c.url}
        where = {**PATIENT, "DISCREET_PEER_ADDRESSES": f"c={c.url}"}
        with serving(tmp_path / "b", *options, DISCREET_PEER_KEYS=f"c={keys['b']}", **where) as b:
            where = {**PATIENT, "DISCREET_PEER_ADDRESSES": f"b={b.url},c={c.url}"}
            b.put("films", items=["b1", "b2"], vendors=[to_c], **plenty)
            all_keys = f"b={new_key(b.data, 'a')},c={keys['a']}"
            with serving(tmp_path / "a", DISCREET_PEER_KEYS=all_keys, **where) as a:
                to_b = {"name": "b", "url": b.url}
                a.put("films", items=["a1", "a2"], vendors=[to_b, to_c], **plenty)
                loads = [Load(a, 1), Load(a, 2), Load(b, 3)]
                for load in loads:
                    load.start()
                try:
                    wait_for("all to be asked", lambda: all(load.count("c") > 2 for load in loads))
                    wait_for("b to be asked", lambda: loads[0].count("b") + loads[1].count("b") > 0)

                    os.killpg(c.process.pid, signal.SIGKILL)
                    c.process.wait(PATIENCE)
                    before = [load.answers for load in loads]
                    wait_for(
                        "answers without c",
                        lambda: all(
                            load.answers > then + 40
                            for load, then in zip(loads, before, strict=True)
                        ),
                    )
                    during = [load.count("c") for load in loads]

                    with serving(tmp_path / "c", *options, port=urlsplit(c.url).port) as again:
                        wait_for(
                            "c to be asked again",
                            lambda: all(
                                load.count("c") > then + 3
                                for load, then in zip(loads, during, strict=True)
                            ),
                        )
                        for load in loads:
                            load.over.set()
                        join(*loads)
                        assert [load.failures for load in loads] == [[], [], []]
                        for server in (a, b):
                            wait_for(
                                "feedback to be passed on",
                                lambda server=server: not to_be_passed_on(server),
                            )
                        for load in loads:
                            for vendor, handle in load.handles:
                                assert reward(again if vendor == "c" else b, handle, 0.5)
                finally:
                    for load in loads:
                        load.over.set()
                    join(*loads)


def test_a_list_and_candidates_may_hold_a_vendors_item(joined: Joined) -> None:
    found: set[str] = set()
    for number in range(400):
        for kind, given in (("list", {"limit": 2}), ("candidates", {"candidates": ["yak-of-a-1"]})):
            body = {"recommender": "films", "client": f"{kind} {number}", "context": [0.5, 0.5]}
            answer = joined.a.client.post("/recommend", json={**body, **given}).json()
            theirs = [one for one in answer["items"] if one.get("vendor") == "b"]
            assert len(theirs) <= 1
            for one in theirs:
                opened = joined.b.client.post("/handles/open", json={"handle": one["id"]})
                assert opened.json()["item"]["id"] in ITEMS_OF_B
                told = {"recommendation_id": answer["recommendation_id"], "item": one["id"]}
                sent = joined.a.client.post("/feedback", json={**told, "reward": 1})
                assert sent.status_code == 200, sent.text
                found.add(kind)
        if found == {"list", "candidates"}:
            break
    assert found == {"list", "candidates"}
