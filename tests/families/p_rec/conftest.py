"""A voters' recommender over the memory store, and a client to play with it."""

import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from discreet.families.questions import Ask, Feedback, Receipt, Recommendation
from discreet.decisions.feedback import give_feedback
from discreet.decisions.recommend import recommend
from discreet.decisions.runtime import Runtime
from discreet.families.p_rec.ballots import Vote, cast
from discreet.families.p_rec.desk import Desk
from discreet.families.p_rec.document import VotersDocument
from discreet.families.p_rec.family import VotersFamily
from discreet.families.p_rec.recommender import VotersRecommender
from discreet.privacy.noise import SystemNoise
from discreet.state.memory import MemoryStore
from discreet.state.stores import Store

NAME = "news"
VOTERS = 400


def document(**changes: Any) -> VotersDocument:
    """Two objects a round, and few enough peers for a small test; so a run is dear."""
    fields: dict[str, Any] = {
        "algorithm": "p-rec",
        "objects": 2,
        "horizon": 60,
        "peers": 150,
        "voters": 1000,
        "privacy": {"budget": {"epsilon": 20.0, "delta": 1e-6}},
        **changes,
    }
    return VotersDocument.model_validate(fields)


@dataclass
class Bench:
    """A recommender and whatever is needed to play with it."""

    runtime: Runtime

    async def recommender(self) -> VotersRecommender:
        found = await self.runtime.registry.find(NAME)
        assert isinstance(found, VotersRecommender)
        return found

    async def desk(self) -> Desk:
        family = self.runtime.families["p-rec"]
        assert isinstance(family, VotersFamily)
        return family.desk(await self.recommender())

    async def round(self, name: str, objects: Sequence[str] = ("a", "b")) -> None:
        await (await self.desk()).rounds.make(
            self.runtime, await self.recommender(), round_id=name, objects=objects
        )

    async def votes(self, name: str, choices: dict[str, str]) -> int:
        votes = [Vote(name, voter, chosen) for voter, chosen in choices.items()]
        desk = await self.desk()
        return await cast(self.runtime, await self.recommender(), desk.rounds, votes)

    async def full_round(self, name: str, wanted: str = "a", *, voters: int = VOTERS) -> None:
        """A round in which everybody votes alike."""
        await self.round(name)
        await self.votes(name, {f"v{number}": wanted for number in range(voters)})

    async def ask(self, client: str = "ann", **changes: Any) -> Recommendation:
        return await recommend(self.runtime, Ask(recommender=NAME, client=client, **changes))

    async def tell(self, answer: Recommendation, reward: float, **changes: Any) -> Receipt:
        feedback = Feedback(reward=reward, recommendation_id=answer.recommendation_id, **changes)
        return await give_feedback(self.runtime, feedback)


async def open_bench(store: Store, **changes: Any) -> Bench:
    """Another worker on the same store; the first one makes the recommender."""
    runtime = await Runtime.open(
        store=store, noise=SystemNoise(), lease_seconds=math.inf, survey_seconds=math.inf
    )
    if NAME not in await runtime.registry.names():
        await runtime.registry.put(NAME, document(**changes))
    return Bench(runtime)


@pytest.fixture
def memory() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
async def bench(anyio_backend: str, memory: MemoryStore) -> AsyncIterator[Bench]:
    opened = await open_bench(memory)
    yield opened
    await opened.runtime.close()
