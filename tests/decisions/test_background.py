"""What runs beside requests: one task a recommender, and none for what is gone."""

import asyncio

import pytest

from discreet.decisions import background
from discreet.decisions.services import DecisionServices, open_services
from discreet.errors import StoreUnavailable
from discreet.privacy.noise import SystemNoise
from discreet.state.memory import MemoryStore
from tests.decisions.conftest import ask, document

pytestmark = pytest.mark.anyio


@pytest.fixture
async def running(anyio_backend: str, monkeypatch: pytest.MonkeyPatch) -> DecisionServices:
    monkeypatch.setattr(background, "TICK_SECONDS", 0.01)
    services = await open_services(store=MemoryStore(), noise=SystemNoise(), lease_seconds=0.05)
    await services.registry.put("films", document(releases={"seconds": 0.05, "growth": 0.0}))
    return services


async def test_models_are_released_in_the_background(running: DecisionServices) -> None:
    recommender = await running.registry.find("films")
    async with asyncio.timeout(30):
        while recommender.current.number < 3:
            await ask(running, client="c")
            await asyncio.sleep(0.01)
    await running.close()


async def test_a_failure_is_logged_and_tried_again(
    running: DecisionServices, caplog: pytest.LogCaptureFixture
) -> None:
    recommender = await running.registry.find("films")
    failures = [StoreUnavailable(), RuntimeError("broken")]
    done = asyncio.Event()

    async def tend() -> None:
        if failures:
            raise failures.pop()
        done.set()

    recommender.tend = tend  # type: ignore[method-assign]
    async with asyncio.timeout(30):
        await done.wait()
    assert "p-dap: background work failed" in caplog.text
    await running.close()


async def test_nothing_is_kept_for_a_recommender_that_is_gone(running: DecisionServices) -> None:
    for place in range(20):
        await running.registry.put(f"r{place}", document())
        await running.registry.remove(f"r{place}")
    kept = {one.name for one in (*running.background._tasks, *running.background._rest_until)}
    assert kept <= {"films"}
    await running.close()
    assert not running.background._tasks
