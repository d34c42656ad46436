"""A runtime with the library in it, and what stands in for the training process."""

import pytest

from service.decisions.collaborative import trainer
from service.decisions.collaborative.training import trained
from service.decisions.runtime import Runtime
from tests.decisions.collaborative.library import document


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
