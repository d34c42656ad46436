"""A global server and three local ones as real instances, with one and the other killed."""

import asyncio
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest

from discreet.decisions.services import open_simulation
from discreet.families.fclub.by_observation import ObservationModel
from discreet.families.fclub.recommender import ClusterRecommender
from discreet.families.fclub.sync.global_server import GlobalReading, server_name
from discreet.privacy.noise import SystemNoise
from discreet.state.embedded import EmbeddedStore
from discreet.state.redis_store import open_store
from tests.end_to_end.servers import CALL_SECONDS, Server, new_key, serving
from tests.end_to_end.test_vendors import sample
from tests.waiting import PATIENCE, join
from tests.waiting import wait_for as wait_until

pytestmark = pytest.mark.timeout(1800)

ITEMS = [
    {"id": f"item-{number}", "features": [round(0.9 * x, 3), round(0.9 * y, 3)]}
    for number, (x, y) in enumerate(
        [(1, 0), (0.7, 0.7), (0, 1), (-0.7, 0.7), (-1, 0), (-0.7, -0.7), (0, -1), (0.7, -0.7)]
    )
]
FEATURES = {item["id"]: np.array(item["features"]) for item in ITEMS}
KINDS = (np.array([0.5, 0.0]), np.array([-0.3, 0.4]))
PAUSE = 0.03
"""Between two questions: the servers shall be busy, and their processor need not be."""


def local(hub: Server) -> dict[str, Any]:
    return {
        "algorithm": "fclub",
        "role": "local",
        "dimensions": 2,
        "items": ITEMS,
        "global_server": {"name": "hub", "url": hub.url},
        "sharing": {"first_update": 10, "growth": 0.05},
        "privacy": {"protects": "observation", "feedback": {"epsilon": 2.0}},
        "releases": {"seconds": 0.5, "growth": 0},
    }


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    """Ask now and then: asking takes the servers' time, too."""
    wait_until(what, condition, pause=0.5)


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
        with httpx.Client(base_url=self.url, headers=headers, timeout=CALL_SECONDS) as client:
            while not self.over.is_set():
                self.once(client)
                self.over.wait(PAUSE)

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
    server.process.wait(PATIENCE)
    return int(urlsplit(server.url).port or 0)


Totals = dict[tuple[int, ...], list[int]]
"""Of each set of members, the noisy sums about them."""


@dataclass
class LocalBooks:
    """What a local server has in its store, read behind its back."""

    source: str
    counted: int
    noted: int
    next_number: int
    totals: Totals


@dataclass
class GlobalBooks:
    """What the global server has of one server."""

    wanted: int
    totals: Totals


async def _find(server: Server, read: Callable[[ClusterRecommender], Any]) -> Any:
    store = open_store(EmbeddedStore(server.data).url, timeout=60)
    services = await open_simulation(store=store, noise=SystemNoise())
    try:
        recommender = await services.registry.find("films")
        assert isinstance(recommender, ClusterRecommender)
        return await read(recommender)
    finally:
        await services.close()


def local_books(server: Server) -> LocalBooks:
    async def read(recommender: ClusterRecommender) -> LocalBooks:
        store, generation = recommender.store, recommender.generation
        owners = await store.owners(generation=generation)
        own = await store.own(generation=generation, principals=owners)
        model = recommender.current.model
        assert isinstance(model, ObservationModel)
        return LocalBooks(
            source=generation.hex(),
            counted=int(recommender._ranking.own.steps(own)[:, 0].sum()),
            noted=int(model.reported.covered[:, 0].sum()),
            next_number=model.next_number,
            totals={one.update.members: one.update.steps.tolist() for one in model.updates},
        )

    books: LocalBooks = asyncio.run(_find(server, read))
    return books


def global_books(server: Server, sources: dict[str, str]) -> dict[str, GlobalBooks]:
    """Return what the global server has of each label, whose source is known."""

    async def read(recommender: ClusterRecommender) -> dict[str, GlobalBooks]:
        reading = recommender.reading
        assert isinstance(reading, GlobalReading)
        received = await recommender.gather(1)
        found = {}
        for label, source in sources.items():
            name = server_name(label, source)
            wanted, _ = await reading.keep(name, [])
            totals = {
                one.update.members: one.update.steps.tolist()
                for one in received
                if one.server == name
            }
            found[label] = GlobalBooks(wanted, totals)
        assert {one.server for one in received} == {
            server_name(label, source) for label, source in sources.items()
        }
        return found

    books: dict[str, GlobalBooks] = asyncio.run(_find(server, read))
    return books


def all_delivered(hub: Server, shops: dict[str, Server]) -> dict[str, LocalBooks]:
    """Return the local servers' books once the global server has every update that was written.

    What was learned last may still become updates after the traffic has ended, and the books of
    four servers cannot be read at one moment; so they are read until they agree. An update that
    was lost, or counted twice, would keep them from it for ever.
    """
    own: dict[str, LocalBooks] = {}

    def agree() -> bool:
        own.update({name: local_books(shop) for name, shop in shops.items()})
        kept = global_books(hub, {name: one.source for name, one in own.items()})
        return all(
            kept[name] == GlobalBooks(one.next_number, one.totals) for name, one in own.items()
        )

    wait_for("the last updates to be delivered", agree)
    return own


def test_servers_come_and_go_and_nothing_is_lost_or_counted_twice(tmp_path: Path) -> None:
    """Three local servers under load. One is killed and comes back, then the global one: nobody
    else notices. In the end every observation was counted once, and what the global server has of
    each local one is exactly what that one wrote."""
    with ExitStack() as running:
        hub = running.enter_context(instance(tmp_path / "hub"))
        made = hub.client.put(
            "/recommenders/films",
            json={
                "algorithm": "fclub",
                "role": "global",
                "dimensions": 2,
                "releases": {"seconds": 0.5},
            },
        )
        assert made.status_code == 201, made.text
        shops: dict[str, Server] = {}
        keys = {}
        for name in ("a", "b", "c"):
            keys[name] = new_key(hub.data, name)
            variables = {
                "DISCREET_PEER_KEYS": f"hub={keys[name]}",
                "DISCREET_PEER_ADDRESSES": f"hub={hub.url}",
            }
            shops[name] = running.enter_context(instance(tmp_path / name, **variables))
            made = shops[name].client.put("/recommenders/films", json=local(hub))
            assert made.status_code == 201, made.text
        loads = {name: Load(server, seed) for seed, (name, server) in enumerate(shops.items())}
        for load in loads.values():
            load.start()
        try:

            def updates_of(name: str) -> float:
                return sample(shops[name], 'discreet_communications_total{direction="upload"')

            def models_of(name: str) -> float:
                return sample(shops[name], 'discreet_communications_total{direction="download"')

            wait_for("everybody's updates", lambda: all(updates_of(one) >= 3 for one in shops))
            wait_for("everybody's merged models", lambda: all(models_of(one) >= 1 for one in shops))

            loads["c"].patient = True
            port = kill(shops["c"])
            before = {name: (load.answers, updates_of(name)) for name, load in loads.items()
                      if name != "c"}  # fmt: skip
            wait_for(
                "answers and updates without c",
                lambda: all(
                    loads[name].answers > answers + 60 and updates_of(name) > updates
                    for name, (answers, updates) in before.items()
                ),
            )
            variables = {
                "DISCREET_PEER_KEYS": f"hub={keys['c']}",
                "DISCREET_PEER_ADDRESSES": f"hub={hub.url}",
            }
            shops["c"] = running.enter_context(instance(tmp_path / "c", port, **variables))
            answered = loads["c"].answers
            wait_for("answers by c", lambda: loads["c"].answers > answered + 20)
            wait_for("updates of c", lambda: updates_of("c") >= 1)
            loads["c"].patient = False

            port = kill(hub)
            answered_by = {name: load.answers for name, load in loads.items()}
            wait_for(
                "answers without the global server",
                lambda: all(loads[name].answers > answered_by[name] + 60 for name in loads),
            )
            hub = running.enter_context(instance(tmp_path / "hub", port))
            uploaded = {name: updates_of(name) for name in shops}
            wait_for(
                "updates after the global server came back",
                lambda: all(updates_of(name) > uploaded[name] for name in shops),
            )
        finally:
            for load in loads.values():
                load.over.set()
            join(*loads.values())

        assert {name: load.failures for name, load in loads.items()} == {
            "a": [], "b": [], "c": [],
        }  # fmt: skip
        for name, own in all_delivered(hub, shops).items():
            assert own.counted == loads[name].counted
            # The noise is on everything but the counts, so that these add up exactly.
            assert sum(steps[0] for steps in own.totals.values()) == own.noted
            assert 0 < own.noted <= own.counted
