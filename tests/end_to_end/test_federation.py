"""A global server and three local ones as real instances, with one and the other killed."""

import asyncio
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
from discreet.decisions.runtime import Runtime
from discreet.families.fclub.desk import Desk, load_desk
from discreet.families.fclub.merging import server_name
from discreet.families.fclub.sent import read_sent
from discreet.families.fclub.users import read_users

from discreet.families.fclub.recommender import ClusterRecommender
from discreet.privacy.noise import SystemNoise
from discreet.state.embedded import EmbeddedStore
from discreet.state.redis_store import open_store
from tests.end_to_end.servers import Server, serving
from tests.end_to_end.test_vendors import WAIT_SECONDS, peer_key, sample

pytestmark = pytest.mark.timeout(600)

ITEMS = [
    {"id": f"item-{number}", "features": [round(0.9 * x, 3), round(0.9 * y, 3)]}
    for number, (x, y) in enumerate(
        [(1, 0), (0.7, 0.7), (0, 1), (-0.7, 0.7), (-1, 0), (-0.7, -0.7), (0, -1), (0.7, -0.7)]
    )
]
FEATURES = {item["id"]: np.array(item["features"]) for item in ITEMS}
KINDS = (np.array([0.5, 0.0]), np.array([-0.3, 0.4]))


def local(hub: Server) -> dict[str, Any]:
    return {
        "algorithm": "fclub",
        "role": "local",
        "dimensions": 2,
        "items": ITEMS,
        "global_server": {"name": "hub", "url": hub.url},
        "sharing": {"epsilon": 2.0, "delta": 1e-6, "first_letter": 10, "growth": 0.05},
    }


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    """Ask now and then: asking takes the servers' time, too."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.5)


class Load(threading.Thread):
    """Clients of both kinds at one server, in catalogue and inline questions, alone and in
    batches. Feedback whose fate is unknown is given again until it is acknowledged."""

    def __init__(self, server: Server, seed: int) -> None:
        super().__init__(daemon=True)
        self.url, self.key = server.url, server.key
        self.rng = random.Random(seed)
        self.failures: list[str] = []
        self.counted = 0
        self.answers = 0
        self.patient = False
        """Whether the server is known to be dead: what fails then is tried again."""
        self.over = threading.Event()

    def run(self) -> None:
        headers = {"Authorization": f"Bearer {self.key}"}
        with httpx.Client(base_url=self.url, headers=headers, timeout=20) as client:
            while not self.over.is_set():
                self.once(client)
                time.sleep(0.01)

    def once(self, client: httpx.Client) -> None:
        user = self.rng.randrange(6)
        body: dict[str, Any] = {"recommender": "films", "client": f"client-{user}"}
        if self.rng.random() < 0.5:
            body["candidates"] = [
                one if self.rng.random() < 0.5 else one["id"] for one in self.rng.sample(ITEMS, 4)
            ]
        path, sent = ("/recommend", body)
        if self.rng.random() < 0.2:
            path, sent = "/recommend/batch", {"requests": [body, body]}
        answer = self.post(client, path, sent)
        if answer is None:
            return
        found = answer.get("results", [answer])
        for one in found:
            self.answers += 1
            x = FEATURES[one["items"][0]["id"]]
            chance = 0.5 + float(x @ KINDS[user % 2])
            told = {
                "recommendation_id": one["recommendation_id"],
                "reward": float(self.rng.random() < chance),
            }
            while self.post(client, "/feedback", told) is None:
                if not self.patient:
                    return
                time.sleep(0.2)
            self.counted += 1

    def post(self, client: httpx.Client, path: str, body: Any) -> dict[str, Any] | None:
        try:
            answer = client.post(path, json=body)
            if answer.status_code == 200:
                found: dict[str, Any] = answer.json()
                return found
            why = answer.text
        except httpx.HTTPError as error:
            why = repr(error)
        if not self.patient:
            self.failures.append(why)
        else:
            time.sleep(0.1)
        return None


@contextmanager
def instance(folder: Path, port: int | None = None, **variables: str) -> Iterator[Server]:
    with serving(folder, "--workers", "1", port=port, **variables) as server:
        yield server


def kill(server: Server) -> int:
    """End an instance with all its processes, as a power cut would; return its port."""
    os.killpg(server.process.pid, signal.SIGKILL)
    server.process.wait(30)
    return int(urlsplit(server.url).port or 0)


class Books:
    """What an instance holds in its store, read behind its back."""

    counted: int
    noted: int
    desk: Desk
    source: str
    letters: dict[str, list[list[Any]]]


async def _read(server: Server) -> Books:
    url = EmbeddedStore(server.data).url
    runtime = await Runtime.open(
        store=open_store(url, timeout=20), noise=SystemNoise(), survey_seconds=float("inf")
    )
    try:
        recommender = await runtime.registry.find("films")
        assert isinstance(recommender, ClusterRecommender)
        books = Books()
        books.source = recommender.generation.hex()
        books.letters = {}
        if recommender.is_local:
            books.counted = int((await read_users(runtime, recommender)).steps[:, 0].sum())
            books.noted = int((await read_sent(runtime, recommender)).steps[:, 0].sum())
            books.desk = await load_desk(runtime, recommender)
            return books
        index = recommender.key(b"servers")
        for name in await runtime.store.cells(index=index, most=100):
            (box,) = await runtime.store.load(keys=[recommender.key(b"mailbox", name)])
            assert box is not None
            end = json.loads(box.content)["end"]
            page = recommender.key(b"letters", name)
            content = await runtime.store.read_page(page=page, end=end)
            letters = books.letters.setdefault(name.decode(), [])
            while content:
                size = int.from_bytes(content[:4], "big")
                letters.append(json.loads(content[4 : 4 + size]))
                content = content[4 + size :]
        return books
    finally:
        await runtime.close()


def books(server: Server) -> Books:
    return asyncio.run(_read(server))


def counts(letters: list[list[Any]]) -> int:
    return sum(steps[0] for *_, steps in letters)


def all_delivered(hub: Server, shops: dict[str, Server]) -> dict[str, Books]:
    """Return everybody's books once the global server has every letter that was ever numbered.

    What was learned last may still become letters after the traffic has ended, and the books of
    four servers cannot be read at one moment; so they are read until they agree. A letter that was
    lost, or counted twice, would keep them from it for ever.
    """
    own: dict[str, Books] = {}

    def agree() -> bool:
        own.update({name: books(shop) for name, shop in shops.items()})
        kept = books(hub).letters
        for name, one in own.items():
            one.letters = {name: kept.get(server_name(name, one.source), [])}
        return all(
            not one.desk.waiting
            and len(one.letters[name]) == one.desk.next
            and counts(one.letters[name]) == one.noted
            for name, one in own.items()
        )

    wait_for("the last letters to be delivered", agree)
    return own


def test_servers_come_and_go_and_nothing_is_lost_or_counted_twice(tmp_path: Path) -> None:
    """Three local servers under load. One is killed and comes back, then the global one: nobody
    else notices. In the end every observation was counted once, and what the global server has of
    each local one is exactly what that one noted as sent."""
    with ExitStack() as running:
        hub = running.enter_context(instance(tmp_path / "hub"))
        made = hub.client.put(
            "/recommenders/films", json={"algorithm": "fclub", "role": "global", "dimensions": 2}
        )
        assert made.status_code == 201, made.text
        shops: dict[str, Server] = {}
        keys = {}
        for name in ("a", "b", "c"):
            keys[name] = peer_key(hub, name)
            variables = {"DISCREET_PEER_KEYS": f"hub={keys[name]}"}
            shops[name] = running.enter_context(instance(tmp_path / name, **variables))
            made = shops[name].client.put("/recommenders/films", json=local(hub))
            assert made.status_code == 201, made.text
        loads = {name: Load(server, seed) for seed, (name, server) in enumerate(shops.items())}
        for load in loads.values():
            load.start()
        try:

            def letters_of(name: str) -> float:
                return sample(shops[name], 'discreet_communications_total{direction="upload"')

            def views_of(name: str) -> float:
                return sample(shops[name], 'discreet_communications_total{direction="download"')

            wait_for("everybody's letters", lambda: all(letters_of(one) >= 3 for one in shops))
            wait_for("everybody's views", lambda: all(views_of(one) >= 1 for one in shops))

            loads["c"].patient = True
            port = kill(shops["c"])
            before = {name: (load.answers, letters_of(name)) for name, load in loads.items()
                      if name != "c"}  # fmt: skip
            wait_for(
                "answers and letters without c",
                lambda: all(
                    loads[name].answers > answers + 60 and letters_of(name) > letters
                    for name, (answers, letters) in before.items()
                ),
            )
            variables = {"DISCREET_PEER_KEYS": f"hub={keys['c']}"}
            shops["c"] = running.enter_context(instance(tmp_path / "c", port, **variables))
            answered = loads["c"].answers
            wait_for("answers by c", lambda: loads["c"].answers > answered + 20)
            wait_for("letters of c", lambda: letters_of("c") >= 1)
            loads["c"].patient = False

            port = kill(hub)
            answered_by = {name: load.answers for name, load in loads.items()}
            wait_for(
                "answers without the global server",
                lambda: all(loads[name].answers > answered_by[name] + 60 for name in loads),
            )
            hub = running.enter_context(instance(tmp_path / "hub", port))
            uploaded = {name: letters_of(name) for name in shops}
            wait_for(
                "letters after the global server came back",
                lambda: all(letters_of(name) > uploaded[name] for name in shops),
            )
        finally:
            for load in loads.values():
                load.over.set()
            for load in loads.values():
                load.join(60)

        assert {name: load.failures for name, load in loads.items()} == {
            "a": [], "b": [], "c": [],
        }  # fmt: skip
        for name, own in all_delivered(hub, shops).items():
            assert own.counted == loads[name].counted
            assert own.noted <= own.counted
            # Introductions come first, one a user; noise hides what they say.
            assert all(epsilon == 2.0 for epsilon, *_ in own.letters[name])
        assert len(books(hub).letters) == 3
