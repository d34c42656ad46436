"""Four real instances in a ring: they come to agree, one is killed, and it comes back."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from discreet.commands.options import with_store
from discreet.families.mirror_descent.sync import read_message
from discreet.preparation import opened
from discreet.settings import Settings
from tests.end_to_end.servers import CALL_SECONDS, Server, serving
from tests.end_to_end.test_vendors import sample
from tests.ports import free_port
from tests.waiting import PATIENCE, wait_for

NAMES = "abcd"
DIMENSION = 400
RECORDS = 30
OBSERVER = "observer"


def neighbours_of(name: str) -> list[str]:
    place = NAMES.index(name)
    return [NAMES[place - 1], NAMES[(place + 1) % len(NAMES)]]


def item_of(name: str, *, liked: bool) -> dict[str, Any]:
    """Something that only this node's clients have an opinion on: ten features of its own."""
    first = 20 * NAMES.index(name) + (0 if liked else 10)
    return {
        "id": f"{'good' if liked else 'bad'} of {name}",
        "features": {"indices": list(range(first, first + 10)), "values": [0.3] * 10},
    }


async def issue(data: Path, labels: list[str]) -> dict[str, str]:
    """Have an instance issue keys to others, before it runs."""
    with with_store(Settings(data_dir=data)) as settings:
        async with opened(settings) as runtime:
            return {
                label: await runtime.keys.create(label=label, scopes=frozenset({"peer"}))
                for label in labels
            }


@dataclass
class Ring:
    """The nodes, where they are, and a key of each for looking at what it tells neighbours."""

    folder: Path
    stack: ExitStack
    ports: dict[str, int]
    keys: dict[str, dict[str, str]]
    servers: dict[str, Server] = field(default_factory=dict)

    def start(self, name: str) -> None:
        given = ",".join(f"{other}={self.keys[other][name]}" for other in neighbours_of(name))
        self.servers[name] = self.stack.enter_context(
            serving(
                self.folder / name,
                *("--workers", "1"),
                port=self.ports[name],
                DISCREET_PEER_KEYS=given,
                DISCREET_PEER_ADDRESSES=",".join(
                    f"{other}=http://127.0.0.1:{self.ports[other]}" for other in neighbours_of(name)
                ),
            )
        )

    def put(self, name: str, others: list[str]) -> None:
        document = {
            "algorithm": "mirror-descent",
            "features": {"dimension": DIMENSION},
            "exploration": {"rate": 0},
            "releases": {"seconds": 2.0, "growth": 0},
            "mixing_seconds": 0.2,
            "privacy": {
                "answers": "exact",
                "feedback": {"epsilon": 20.0, "budget": {"epsilon": 50.0, "delta": 1e-6}},
            },
            "neighbours": [
                {"name": other, "url": f"http://127.0.0.1:{self.ports[other]}"} for other in others
            ],
        }
        answer = self.servers[name].client.put("/recommenders/feed", json=document)
        assert answer.is_success, answer.text

    def ask(self, name: str, candidates: list[dict[str, Any]]) -> dict[str, Any]:
        body = {"recommender": "feed", "client": os.urandom(8).hex(), "candidates": candidates}
        answer = self.servers[name].client.post("/recommend", json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def teach(self, name: str, topic: str) -> None:
        """Clients of a node, each with an opinion on a topic."""
        for number in range(RECORDS):
            liked = number % 2 == 0
            found = self.ask(name, [item_of(topic, liked=liked)])
            body = {"recommendation_id": found["recommendation_id"], "reward": int(liked)}
            answer = self.servers[name].client.post("/feedback", json=body)
            assert answer.status_code == 200, answer.text

    def knows(self, name: str, topic: str) -> bool:
        pair = [item_of(topic, liked=False), item_of(topic, liked=True)]
        # Without an opinion the order is random: five in a row are right by chance 1 in 32, and
        # whoever asks goes on until everybody is right.
        return all(self.ask(name, pair)["items"][0]["id"] == pair[1]["id"] for _ in range(5))

    def known_by(self, name: str) -> np.ndarray[Any, Any]:
        """What a node would tell a neighbour now."""
        answer = httpx.post(
            f"http://127.0.0.1:{self.ports[name]}/peers/recommenders/feed/models",
            json={},
            headers={"Authorization": f"Bearer {self.keys[name][OBSERVER]}"},
            timeout=CALL_SECONDS,
        )
        assert answer.status_code == 200
        message = read_message(answer.content, dimension=DIMENSION)
        assert message.gradients is not None
        return message.gradients * (message.count / max(message.squares, 1e-9))

    def spread(self, names: str = NAMES) -> float:
        """How far nodes are from their mean, as a share of the largest coordinate."""
        known = np.array([self.known_by(name) for name in names])
        largest = np.abs(known).max()
        # As long as nobody has released anything, nobody agrees on anything.
        return float(np.abs(known - known.mean(axis=0)).max() / largest) if largest else np.inf


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[Ring]:
    ports = {name: free_port() for name in NAMES}
    keys = {}
    for name in NAMES:
        (tmp_path / name).mkdir()
        labels = [*neighbours_of(name), OBSERVER]
        keys[name] = asyncio.run(issue(tmp_path / name, labels))
    with ExitStack() as stack:
        found = Ring(tmp_path, stack, ports, keys)
        for name in NAMES:
            found.start(name)
        for name in NAMES:
            found.put(name, neighbours_of(name))
        yield found


def everybody(condition: Callable[[str], bool], names: str = NAMES) -> Callable[[], bool]:
    return lambda: all(condition(name) for name in names)


def test_nodes_agree_lose_one_and_take_it_back(ring: Ring) -> None:
    ring.teach("a", "a")
    ring.teach("b", "b")
    wait_for("all to know a's topic", everybody(lambda name: ring.knows(name, "a")))
    wait_for("all to know b's topic", everybody(lambda name: ring.knows(name, "b")))
    wait_for("the models to meet", lambda: ring.spread() < 0.02)
    print(f"spread of four: {ring.spread():.4f}")

    dead = ring.servers["b"]
    os.killpg(dead.process.pid, signal.SIGKILL)
    dead.process.wait(PATIENCE)
    ring.teach("c", "c")
    others = "acd"
    # The only way from c to a is now by d.
    wait_for("the others to know c's", everybody(lambda name: ring.knows(name, "c"), others))
    wait_for("the others to meet", lambda: ring.spread(others) < 0.02)
    print(f"spread of three: {ring.spread(others):.4f}")
    missing = 'discreet_neighbours{recommender="feed",state="missing"}'
    wait_for("a to miss b", lambda: sample(ring.servers["a"], missing) == 1)

    ring.start("b")
    assert ring.knows("b", "b"), "what it knew it still knows"
    wait_for("b to know c's topic", lambda: ring.knows("b", "c"))
    wait_for("all to meet again", lambda: ring.spread() < 0.02)
    print(f"spread of four again: {ring.spread():.4f}")

    # One that has just come back counts from nothing, and its first round may yet be to come.
    mixed = "discreet_mixing_rounds_total"
    wait_for("all to mix", everybody(lambda name: sample(ring.servers[name], mixed) > 0))
    for name in NAMES:
        assert "good of" not in ring.servers[name].output
