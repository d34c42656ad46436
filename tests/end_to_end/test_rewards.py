"""Silence counts as the default, exactly once: workers and a real store, killed as they work."""

import asyncio
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from discreet.families.contract import REWARD_STEPS
from discreet.families.registration import read_stored
from discreet.state.redis_store import open_store
from tests.end_to_end.servers import Server, children, private, serving
from tests.waiting import PATIENCE, join, wait_for

WAIT = 20
NO_RELEASE = {"seconds": 86_400}
"""Without a release, everything that was learned is still in the sums."""


@dataclass
class Shop:
    """Asks under event ids, again until it is answered, and reports a click on every third."""

    server: Server
    counts: Counter[str] = field(default_factory=Counter)
    counting: threading.Lock = field(default_factory=threading.Lock)
    stop: threading.Event = field(default_factory=threading.Event)

    def _count(self, what: str) -> None:
        with self.counting:
            self.counts[what] += 1

    def run(self, name: str) -> None:
        headers = {"Authorization": f"Bearer {self.server.key}"}
        with httpx.Client(base_url=self.server.url, headers=headers, timeout=60) as client:
            number = 0
            while not self.stop.is_set():
                who = f"{name}-{number}"
                question = {"recommender": "films", "client": who, "context": [0.3, 0.6]}
                answer = self._until_answered(client, "/recommend", {**question, "event_id": who})
                assert answer.status_code == 200, answer.text
                assert answer.json()["awaiting"] is True
                self._count("answered")
                if number % 3 == 0:
                    self._click(client, {"event_id": who, "reward": 1})
                number += 1

    def _click(self, client: httpx.Client, feedback: dict[str, Any]) -> None:
        told = self._until_answered(client, "/feedback", feedback)
        if told.status_code == 200:
            self._count("clicked")
        else:
            # An attempt whose answer was lost may have been counted before it was too late.
            assert told.status_code == 410, told.text
            self._count("unsure")

    @staticmethod
    def _until_answered(client: httpx.Client, path: str, body: dict[str, Any]) -> httpx.Response:
        def attempt() -> httpx.Response | None:
            try:
                answer = client.post(path, json=body)
            except httpx.TransportError:
                return None
            return None if answer.status_code in (429, 503) else answer

        found = wait_for(path, attempt)
        assert found is not None
        return found


@contextmanager
def shopping(server: Server, visitors: int = 4) -> Iterator[Shop]:
    shop = Shop(server)
    threads = [
        threading.Thread(target=shop.run, args=(f"v{n}",), name=f"visitor {n}", daemon=True)
        for n in range(visitors)
    ]
    for thread in threads:
        thread.start()
    try:
        yield shop
    finally:
        shop.stop.set()
        join(*threads)


async def _looked_at(server: Server, *, frozen: bool) -> tuple[int, float, float]:
    """Return how many decisions are open, and the likes and dislikes that the sums hold."""
    store = open_store(f"unix://{server.data / 'valkey' / 'valkey.sock'}", timeout=30)
    await store.open()
    try:
        documents = (await store.registry()).documents
        generation = read_stored(documents["recommender/films"]).generation
        is_open = (await store.due(generation=generation, most=1)).open
        if not frozen:
            return is_open, 0.0, 0.0
        await store.freeze(generation=generation, number=1)
        blocks = await store.frozen(generation=generation, number=1)
        liked, disliked = (
            sum(int(block[at::2].sum()) for block in blocks.values()) for at in (0, 1)
        )
        return is_open, liked / REWARD_STEPS, disliked / REWARD_STEPS
    finally:
        await store.close()


def _counted(server: Server) -> tuple[float, float]:
    """Wait until nothing is open any more; return the likes and dislikes."""
    wait_for(
        "every decision to be counted",
        lambda: asyncio.run(_looked_at(server, frozen=False))[0] == 0,
        pause=1.0,
    )
    _, liked, disliked = asyncio.run(_looked_at(server, frozen=True))
    return liked, disliked


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def _progress(shop: Shop, by: int) -> None:
    reached = shop.counts["answered"] + by
    wait_for("answers", lambda: shop.counts["answered"] >= reached)


def test_every_open_decision_counts_once_whoever_is_killed(tmp_path: Path) -> None:
    """Workers and the store are killed while answers are given and while defaults are counted."""
    with serving(tmp_path) as server:
        server.put("films", reward={"wait": f"{WAIT}s"}, releases=NO_RELEASE, privacy=private())
        with shopping(server) as shop:
            for _ in range(3):
                _progress(shop, 20)
                for worker in server.workers:
                    _kill(worker)
                _progress(shop, 20)
                store = server.valkey
                _kill(store)
                wait_for("another store", lambda s=store: children(server.keeper) not in ([], [s]))
        # Defaults are being counted from here on, and whoever counts them is killed as well.
        for _ in range(5):
            open_before = asyncio.run(_looked_at(server, frozen=False))[0]
            wait_for(
                "some to be counted",
                lambda b=open_before: asyncio.run(_looked_at(server, frozen=False))[0] < max(b, 1),
                pause=0.3,
            )
            for worker in server.workers:
                _kill(worker)
        server.wait_until_ready()
        liked, disliked = _counted(server)
        assert shop.counts["answered"] > 100
        assert liked + disliked == shop.counts["answered"], "each exactly once"
        assert shop.counts["clicked"] <= liked <= shop.counts["clicked"] + shop.counts["unsure"]


def test_what_was_open_when_the_service_stopped_counts_when_it_is_back(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.put("films", reward={"wait": "3s"}, releases=NO_RELEASE, privacy=private())
        with shopping(server) as shop:
            _progress(shop, 40)
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(PATIENCE)
    with serving(tmp_path, DISCREET_INIT="") as server:
        liked, disliked = _counted(server)
        assert liked + disliked == shop.counts["answered"]
        assert shop.counts["clicked"] <= liked <= shop.counts["clicked"] + shop.counts["unsure"]
