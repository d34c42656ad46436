"""Two instances that know each other, and how to call them."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.end_to_end.servers import Server, new_key, serving
from tests.ports import free_port
from tests.waiting import wait_for

OFTEN = {"seconds": 0.5, "growth": 0.0}
"""When to release, for those who watch: what was learned is to be seen within seconds."""


@dataclass
class Stage:
    """`a` serves people; `b` is its vendor, its federation's server and its neighbour."""

    a: Server
    b: Server
    rng: random.Random = field(default_factory=lambda: random.Random(5))

    def put(self, server: Server, name: str, document: dict[str, Any]) -> None:
        """Create a recommender."""
        answer = server.client.put(f"/recommenders/{name}", json=document)
        assert answer.is_success, f"{name}: {answer.text}"

    def post(self, path: str, body: Any, *, server: Server | None = None) -> Any:
        """Call and insist on success; a busy machine may refuse for a moment."""

        def answered() -> httpx.Response | None:
            answer = (server or self.a).client.post(path, json=body)
            assert answer.is_success or answer.status_code == 503, f"{path}: {answer.text}"
            return answer if answer.is_success else None

        found = wait_for(f"an answer of {path}", answered)
        assert found is not None
        return found.json()

    def visit(
        self, recommender: str, client: str, *, likes: float = 0.5, **question: Any
    ) -> dict[str, Any]:
        """Ask, and like what was shown, or not."""
        body = {"recommender": recommender, "client": client, **question}
        found: dict[str, Any] = self.post("/recommend", body)
        if found["items"]:
            feedback = {"recommendation_id": found["recommendation_id"]}
            feedback["reward"] = float(self.rng.random() < likes)
            if len(found["items"]) > 1:
                feedback["item"] = found["items"][0]["id"]
            self.post("/feedback", feedback)
        return found


@contextmanager
def two_instances(folder: Path, *, workers: int = 1) -> Iterator[Stage]:
    """Start both, each with the other's key."""
    data = {name: folder / name for name in "ab"}
    for_a, for_b = new_key(data["b"], "a"), new_key(data["a"], "b")
    patient: dict[str, Any] = {
        "DISCREET_VENDOR_TIMEOUT_SECONDS": "10",
        "DISCREET_STORE_TIMEOUT_SECONDS": "2",
    }
    options = ("--workers", str(workers))
    port = free_port()
    to_a = {"DISCREET_PEER_ADDRESSES": f"a=http://127.0.0.1:{port}"}
    with (
        serving(data["b"], *options, DISCREET_PEER_KEYS=f"a={for_b}", **to_a, **patient) as b,
        serving(
            data["a"],
            *options,
            port=port,
            DISCREET_PEER_KEYS=f"b={for_a}",
            DISCREET_PEER_ADDRESSES=f"b={b.url}",
            **patient,
        ) as a,
    ):
        yield Stage(a, b)
