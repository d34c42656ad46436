"""Local servers and a global one in one process, joined by what they would send over HTTP."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from discreet.api.federation_schemas import LettersRequest, ViewRequest
from discreet.decisions.runtime import Runtime
from discreet.families.fclub.family import ClusterFamily
from discreet.families.fclub.merging import Arrived, accept, view_of

from discreet.decisions.feedback import give_feedback
from discreet.decisions.recommend import recommend
from discreet.errors import DiscreetError, PeerUnavailable
from discreet.families.fclub.document import FederatedClustersDocument
from discreet.families.fclub.recommender import ClusterRecommender
from discreet.families.questions import Ask, Feedback, Recommendation
from discreet.privacy.noise import SystemNoise
from discreet.state.memory import MemoryStore

NAME = "films"


@dataclass
class Wire:
    """Carries messages of one local server to the global one, as its key's label says."""

    label: str
    to: Callable[[], Runtime]
    dead: bool = False
    deaf: bool = False
    """Messages arrive, and their answers are lost."""
    distrusted: int = 0
    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def reachable(self, peer: str) -> bool:
        return peer == "hub"

    def distrust(self, *, peer: str) -> None:
        self.distrusted += 1

    async def post(self, *, peer: str, url: str, content: bytes) -> tuple[int, bytes]:
        if self.dead:
            raise PeerUnavailable("gone", reason="dead")
        base, _, what = url.rpartition("/")
        assert base == f"http://hub:8000/peers/recommenders/{NAME}"
        self.sent.append((what, json.loads(content)))
        runtime = self.to()
        try:
            recommender = await runtime.registry.find(NAME)
            assert isinstance(recommender, ClusterRecommender)
            if what == "letters":
                answer = await self._letters(runtime, recommender, content)
            else:
                answer = await self._view(runtime, recommender, content)
        except DiscreetError as error:
            return 422, str(error).encode()
        if self.deaf:
            raise PeerUnavailable("no answer", reason="slow")
        return 200, answer

    async def _letters(
        self, runtime: Runtime, recommender: ClusterRecommender, content: bytes
    ) -> bytes:
        body = LettersRequest.model_validate_json(content)
        arrived = Arrived(
            label=self.label,
            letters=[(one.sequence, one.members, one.steps) for one in body.letters],
            **body.model_dump(exclude={"letters"}),
        )
        return json.dumps({"next": await accept(runtime, recommender, arrived)}).encode()

    async def _view(
        self, runtime: Runtime, recommender: ClusterRecommender, content: bytes
    ) -> bytes:
        body = ViewRequest.model_validate_json(content)
        view = await view_of(
            runtime, recommender, label=self.label, source=body.source, seen=body.seen
        )
        return b"null" if view is None else view

    def letters(self) -> list[dict[str, Any]]:
        """Every letter that was sent, however often."""
        return [one for what, body in self.sent if what == "letters" for one in body["letters"]]


class Server:
    """One instance with one worker; `store` outlives it."""

    def __init__(self, store: MemoryStore, peers: Wire | None = None) -> None:
        self.store = store
        self.peers = peers
        self.runtime: Runtime

    async def open(self) -> "Server":
        self.runtime = await Runtime.open(
            store=self.store,
            noise=SystemNoise(),
            lease_seconds=math.inf,
            survey_seconds=math.inf,
            peers=self.peers,
        )
        return self

    async def put(self, **fields: Any) -> None:
        """Put the recommender; another promise to its observations needs another recommender."""
        document = FederatedClustersDocument.model_validate({"algorithm": "fclub", **fields})
        held = self.runtime.registry.held()
        if held:
            before, after = held[0].stored.document.fixed(), document.fixed()
            changed = {name for name in before if before[name] != after[name]}
            if changed and all(name.startswith("sharing.") for name in changed):
                await self.runtime.registry.remove(NAME)
        await self.runtime.registry.put(NAME, document)

    async def found(self) -> ClusterRecommender:
        recommender = await self.runtime.registry.find(NAME)
        assert isinstance(recommender, ClusterRecommender)
        return recommender

    @property
    def family(self) -> ClusterFamily:
        family = self.runtime.families["fclub"]
        assert isinstance(family, ClusterFamily)
        return family

    async def cycle(self) -> bool:
        return await self.family.cycle(self.runtime, await self.found())

    async def refresh(self) -> None:
        await self.family.refresh(self.runtime, await self.found())

    async def ask(self, client: str = "ada", **fields: Any) -> Recommendation:
        return await recommend(self.runtime, Ask(recommender=NAME, client=client, **fields))

    async def play(
        self, client: str, theta: Any, rounds: int, rng: np.random.Generator, **fields: Any
    ) -> float:
        """Let a client with linear preferences use the server; return the mean reward."""
        recommender = await self.found()
        features = {item.id: item.features for item in recommender.document.items}
        total = 0.0
        for _ in range(rounds):
            answer = await self.ask(client, **fields)
            x = np.array(features[answer.items[0]])
            reward = float(rng.random() < 0.5 + x @ theta)
            total += reward
            await give_feedback(
                self.runtime,
                Feedback(reward=reward, recommendation_id=answer.recommendation_id),
            )
        return total / rounds


LOCAL: dict[str, Any] = {
    "role": "local",
    "dimensions": 2,
    "items": [
        {"id": "right", "features": [0.9, 0.0]},
        {"id": "left", "features": [-0.9, 0.0]},
        {"id": "up", "features": [0.0, 0.9]},
        {"id": "down", "features": [0.0, -0.9]},
    ],
    "global_server": {"name": "hub", "url": "http://hub:8000"},
}
GLOBAL: dict[str, Any] = {"role": "global", "dimensions": 2}
