"""Local servers and a global one in one process, joined by what they would send over HTTP."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.api.fclub import MergedModelRequest, NoisyUpdatesRequest
from discreet.errors import DiscreetError, PeerUnavailable
from discreet.families.fclub.document import FederatedClustersDocument
from discreet.families.fclub.recommender import ClusterRecommender
from discreet.families.fclub.sync.global_server import ArrivedUpdates, UpdatesFromServers
from discreet.families.observer import NullObserver, Observer
from discreet.families.peering import NoPeers, PeerGateway
from discreet.families.questions import (
    Answered,
    Ask,
    Feedback,
    PendingDecision,
    PendingFeedback,
    Receipt,
)
from discreet.families.resources import Resources
from discreet.families.stored import StoredDocument
from discreet.privacy.noise import NoiseSource
from discreet.research.noise import SeededNoise
from discreet.state.memory import MemoryStore
from discreet.state.principals import Principals
from discreet.state.stores import Store

NAME = "films"
RIGHT, LEFT = np.array([0.5, 0.0]), np.array([-0.5, 0.0])
ITEMS = [
    {"id": "right", "features": [0.9, 0.0]},
    {"id": "left", "features": [-0.9, 0.0]},
    {"id": "up", "features": [0.0, 0.9]},
    {"id": "down", "features": [0.0, -0.9]},
]
FEATURES = {str(item["id"]): np.array(item["features"]) for item in ITEMS}
HUB = {"name": "hub", "url": "http://hub:8000"}
UNPROTECTED: dict[str, Any] = {"feedback": "exact"}
BY_OBSERVATION: dict[str, Any] = {"protects": "observation"}
GENEROUS: dict[str, Any] = {"feedback": {"epsilon": 20.0, "budget": {"epsilon": 1_000.0}}}
"""Protects people with so little noise that few of them can be told from none."""


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def local(**changes: Any) -> FederatedClustersDocument:
    """A local server's document; answers are exact, so that a test knows what comes first."""
    fields = {
        "algorithm": "fclub",
        "role": "local",
        "dimensions": 2,
        "items": ITEMS,
        "global_server": HUB,
        **changes,
    }
    return FederatedClustersDocument.model_validate(fields)


def merging(**changes: Any) -> FederatedClustersDocument:
    """A global server's document."""
    fields = {"algorithm": "fclub", "role": "global", "dimensions": 2, **changes}
    return FederatedClustersDocument.model_validate(fields)


def built(
    document: FederatedClustersDocument | None = None,
    *,
    store: Store | None = None,
    noise: NoiseSource | None = None,
    observer: Observer | None = None,
    peers: PeerGateway | None = None,
    clock: Clock | None = None,
    generation: bytes | None = None,
    like: ClusterRecommender | None = None,
) -> ClusterRecommender:
    """Build a recommender; `like` another one, it is that one in another worker."""
    clock = clock or Clock()
    if like is not None:
        document, store, stored = document or like.document, like.store, like.stored
    else:
        document = document or local()
        stored = StoredDocument(document, generation or os.urandom(8), clock(), {}, 0)
    return ClusterRecommender(
        name=NAME,
        stored=stored.with_document(document),
        resources=Resources(
            store=store or MemoryStore(clock=clock),
            noise=noise or SeededNoise(1),
            observer=observer or NullObserver(),
            principals=Principals(b"p" * 32),
            peers=peers or NoPeers(),
            clock=clock,
        ),
    )


def asked(client: str = "ada", **fields: Any) -> Ask:
    return Ask(**{"recommender": NAME, "client": client, **fields})


async def answer(server: ClusterRecommender, client: str = "ada", **fields: Any) -> Answered:
    """Ask one question, and raise what went wrong."""
    (found,) = await server.answer([server.question(asked(client, **fields))], [None])
    if isinstance(found, DiscreetError):
        raise found
    return found


def pending(server: ClusterRecommender, found: Answered, client: str = "ada") -> PendingDecision:
    """What the recommendation id of an answer carries."""
    decision = found.decision
    return PendingDecision(
        generation=server.generation,
        decision_id=os.urandom(12),
        expires_at=2**31,
        principal=server.principal(client),
        personalised=decision.personalised,
        choices=decision.choices,
        note=decision.note,
    )


async def give(
    server: ClusterRecommender, decision: PendingDecision, reward: float, item: str | None = None
) -> Receipt:
    """Give feedback, and raise what went wrong."""
    feedback = PendingFeedback(decision, Feedback(reward=reward, item=item), 60)
    (receipt,) = await server.record_feedback([feedback])
    if isinstance(receipt, DiscreetError):
        raise receipt
    return receipt


async def play(
    server: ClusterRecommender,
    client: str,
    theta: Any,
    rounds: int,
    rng: np.random.Generator,
    **fields: Any,
) -> float:
    """Let a client with linear preferences use the server; return the mean reward."""
    total = 0.0
    for _ in range(rounds):
        found = await answer(server, client, **fields)
        x = FEATURES[found.decision.items[0]]
        reward = float(rng.random() < 0.5 + x @ theta)
        total += reward
        await give(server, pending(server, found, client), reward)
    return total / rounds


async def own_sums(server: ClusterRecommender, client: str) -> list[int]:
    """A client's own sums."""
    return await _added_up(server, [server.principal(client)])


async def total_sums(server: ClusterRecommender) -> list[int]:
    """Everybody's own sums together."""
    return await _added_up(server, await server.store.owners(generation=server.generation))


async def _added_up(server: ClusterRecommender, principals: Sequence[bytes]) -> list[int]:
    found = await server.store.own(generation=server.generation, principals=principals)
    steps: list[int] = server._ranking.own.steps(found)[:, :6].sum(axis=0).tolist()
    return steps


async def release(server: ClusterRecommender, noise: NoiseSource | None = None) -> None:
    """Do what the releaser does, without the store's copy."""
    current = server.current
    number = current.number + 1
    gathered = await server.gather(number)
    model = server.release(current.model, gathered, noise or server.noise)
    server.adopt(
        number=number, released_at=server.clock(), model=server.decode(server.encode(model))
    )
    await server.clean_up(number)


@dataclass
class Wire:
    """Carries messages of one local server to the global one, as its key's label says."""

    to: ClusterRecommender
    label: str = "shop-a"
    dead: bool = False
    deaf: bool = False
    """Messages arrive, and their answers are lost."""
    lie: bytes | None = None
    """What is answered in place of the truth."""
    distrusted: int = 0
    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def reachable(self, peer: str, *, urgent: bool = False) -> bool:
        return peer == "hub"

    def distrust(self, *, peer: str, urgent: bool = False) -> None:
        self.distrusted += 1

    async def post(
        self, *, peer: str, url: str, content: bytes, urgent: bool = False
    ) -> tuple[int, bytes]:
        if self.dead:
            raise PeerUnavailable("gone", reason="dead")
        base, _, what = url.rpartition("/")
        assert base == f"http://hub:8000/peers/recommenders/{NAME}"
        self.sent.append((what, json.loads(content)))
        if self.lie is not None:
            return 200, self.lie
        try:
            found = await self._answer(what, content)
        except DiscreetError as error:
            return 422, str(error).encode()
        if self.deaf:
            raise PeerUnavailable("no answer", reason="slow")
        return 200, found

    async def _answer(self, what: str, content: bytes) -> bytes:
        updates = self.to.part(UpdatesFromServers)
        if what == "noisy-updates":
            sent = NoisyUpdatesRequest.model_validate_json(content)
            arrived = ArrivedUpdates(
                label=self.label,
                source=sent.source,
                dimensions=sent.dimensions,
                baseline=sent.baseline,
                updates=[
                    (one.number, one.members, one.steps, one.deviation) for one in sent.updates
                ],
            )
            return json.dumps({"next": await updates.accept(arrived)}).encode()
        assert what == "merged-model"
        wanted = MergedModelRequest.model_validate_json(content)
        merged = updates.merged_for(label=self.label, source=wanted.source, seen=wanted.seen)
        return b"null" if merged is None else merged

    def updates(self) -> list[dict[str, Any]]:
        """Every update that was sent, however often."""
        return [
            one for what, body in self.sent if what == "noisy-updates" for one in body["updates"]
        ]


async def exchange(server: ClusterRecommender, clock: Clock) -> None:
    """Let a local server speak to the global one, whatever pause it takes."""
    clock.now += 60.0
    await server.tend()


async def kept(hub: ClusterRecommender) -> list[tuple[str, tuple[int, ...], list[int]]]:
    """Every total that the global server has: server, members and steps."""
    return [
        (one.server, one.update.members, one.update.steps.tolist()) for one in await hub.gather(1)
    ]
