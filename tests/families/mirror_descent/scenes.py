"""A node of sparse mirror descent, and what tests do with it."""

import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np

from discreet.families.questions import Ask, Candidate, Feedback, Sparse
from discreet.decisions.feedback import give_feedback
from discreet.families.mirror_descent.broadcasts import broadcast
from discreet.families.mirror_descent.document import MirrorDescentDocument
from discreet.families.mirror_descent.recommender import MirrorRecommender
from discreet.decisions.recommend import recommend
from discreet.decisions.runtime import Runtime
from discreet.privacy.noise import SystemNoise
from discreet.state.memory import MemoryStore
from tests.decisions.conftest import Clock

DIMENSION = 10_000


def node(**changes: Any) -> MirrorDescentDocument:
    fields: dict[str, Any] = {
        "algorithm": "mirror-descent",
        "features": {"dimension": DIMENSION},
        "exploration": {"rate": 0.0},
        **changes,
    }
    return MirrorDescentDocument.model_validate(fields)


def candidate(item: str, *features: tuple[int, float]) -> Candidate:
    return Candidate(item, Sparse([i for i, _ in features], [v for _, v in features]))


PAIR = [candidate("tea", (7, 1.0), (5_000, 0.5)), candidate("milk", (8, 1.0), (9_999, 0.5))]


def ask(**changes: Any) -> Ask:
    return Ask(**{"recommender": "feed", "client": "ada", "candidates": PAIR, **changes})


async def found(runtime: Runtime, name: str = "feed") -> MirrorRecommender:
    recommender = await runtime.registry.find(name)
    assert isinstance(recommender, MirrorRecommender)
    return recommender


async def sums(runtime: Runtime, recommender: MirrorRecommender) -> np.ndarray[Any, Any]:
    """Everything that was learned, by feature, in units of values."""
    total = np.zeros(recommender.learner.dimension)
    for place in range(3):
        (vector,) = await runtime.store.read(addresses=[recommender.address(place)])
        part = vector[1:] / 2**20
        total[place * 4_096 : place * 4_096 + len(part)] = part
    return total


SMALL = [candidate("tea", (7, 1.0)), candidate("milk", (8, 1.0))]
"""For nodes of few features, whose noise is drawn faster."""


async def teach(
    runtime: Runtime, records: int, *, client: str = "{}", pair: Sequence[Candidate] = PAIR
) -> None:
    """Tea is liked, milk is not."""
    for number in range(records):
        chosen = pair[number % 2]
        answer = await recommend(runtime, ask(client=client.format(number), candidates=[chosen]))
        reward = 1.0 if chosen.id == "tea" else 0.0
        await give_feedback(
            runtime, Feedback(reward=reward, recommendation_id=answer.recommendation_id)
        )


async def release(runtime: Runtime, recommender: MirrorRecommender) -> bool:
    """Broadcast, whoever holds the lease."""

    async def keep() -> bool:
        return True

    return await broadcast(runtime, recommender, keep)


@asynccontextmanager
async def opened(
    clock: Clock, peers: Any = None, store: MemoryStore | None = None
) -> AsyncIterator[Runtime]:
    runtime = await Runtime.open(
        store=store or MemoryStore(clock=clock),
        noise=SystemNoise(),
        lease_seconds=math.inf,
        survey_seconds=math.inf,
        clock=clock,
        peers=peers,
    )
    try:
        yield runtime
    finally:
        await runtime.close()
