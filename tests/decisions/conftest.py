"""Services over the memory store, with a clock that tests can turn."""

import math
from collections.abc import AsyncIterator
from typing import Any

import pytest

from discreet.decisions.services import DecisionServices, open_services
from discreet.families.p_dap.document import AdaptivePartitionDocument
from discreet.families.questions import Ask, Recommendation
from discreet.privacy.noise import SystemNoise
from discreet.state.memory import MemoryStore


class Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def document(**changes: Any) -> AdaptivePartitionDocument:
    """A small recommender; `changes` replace whole top-level fields."""
    fields: dict[str, Any] = {
        "algorithm": "p-dap",
        "items": ["a", "b", "c", "d"],
        "context": {"dimensions": 2},
        "privacy": privacy(),
        **changes,
    }
    return AdaptivePartitionDocument.model_validate(fields)


def privacy(
    *, epsilon: float = 1.0, budget: float = 5.0, feedback: Any = None, **answers: Any
) -> dict[str, Any]:
    """Both dials, small enough to be spent in a test."""
    return {
        "answers": {"epsilon": epsilon, "budget": {"epsilon": budget, "delta": 1e-6}, **answers},
        "feedback": feedback or {"epsilon": 1.0, "budget": {"epsilon": 8.0, "delta": 1e-6}},
    }


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> MemoryStore:
    return MemoryStore(clock=clock)


async def opened(store: MemoryStore, clock: Clock | None = None, **given: Any) -> DecisionServices:
    """Services without background work, so that tests decide what happens when."""
    services = await open_services(
        store=store,
        noise=SystemNoise(),
        lease_seconds=math.inf,
        clock=clock or Clock(),
        **given,
    )
    await services.background.stop()
    return services


@pytest.fixture
async def services(
    anyio_backend: str, store: MemoryStore, clock: Clock
) -> AsyncIterator[DecisionServices]:
    given = {"the-given-key": frozenset({"serve", "admin"})}
    found = await opened(store, clock, api_keys=given)
    await found.registry.put("films", document())
    yield found
    await found.close()


async def ask(services: DecisionServices, **given: Any) -> Recommendation:
    """Ask the films for someone."""
    fields: dict[str, Any] = {
        "recommender": "films",
        "client": "someone",
        "context": [0.2, 0.8],
        **given,
    }
    return await services.recommend.recommend(Ask(**fields))


async def gathered(services: DecisionServices, recommender: str = "films") -> float:
    """How much feedback waits for the next release, in rewards and their complements."""
    found = await services.registry.find(recommender)
    frozen = await services.store.frozen(generation=found.generation, number=1)
    if not frozen:
        await services.store.freeze(generation=found.generation, number=1)
        frozen = await services.store.frozen(generation=found.generation, number=1)
    return sum(int(vector.sum()) for vector in frozen.values()) / 2**20
