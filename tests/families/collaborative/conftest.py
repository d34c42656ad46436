"""A runtime with the library in it, and what stands in for the training process."""

import pytest

from discreet.families.collaborative import trainer
from discreet.families.collaborative.training import trained
from discreet.decisions.runtime import Runtime
from tests.families.collaborative.library import document


@pytest.fixture
async def library(runtime: Runtime) -> Runtime:
    await runtime.registry.put("books", document())
    return runtime


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train in this process: a new one takes a second to begin, and does the same."""

    async def run(content: bytes, neighbours: int) -> bytes | None:
        return trained(content, neighbours)

    monkeypatch.setattr(trainer, "_run", run)
