"""A runtime over the memory store, with a clock that tests can turn."""

import math
from collections.abc import AsyncIterator
from typing import Any

import pytest

from discreet.families.p_dap.document import AdaptivePartitionDocument
from discreet.decisions.runtime import Runtime
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
        "privacy": {"epsilon": 1.0, "budget": {"epsilon": 5.0, "delta": 1e-6}},
        **changes,
    }
    return AdaptivePartitionDocument.model_validate(fields)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> MemoryStore:
    return MemoryStore(clock=clock)


@pytest.fixture
async def runtime(anyio_backend: str, store: MemoryStore, clock: Clock) -> AsyncIterator[Runtime]:
    opened = await Runtime.open(
        store=store,
        noise=SystemNoise(),
        api_keys={"the-given-key": frozenset({"serve", "admin"})},
        lease_seconds=math.inf,
        survey_seconds=math.inf,
        clock=clock,
    )
    await opened.registry.put("films", document())
    yield opened
    await opened.close()
