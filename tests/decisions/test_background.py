"""What runs beside requests: one task a recommender, and none for what is gone."""

import asyncio
import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from discreet.decisions import background
from discreet.decisions.services import DecisionServices, open_services
from discreet.errors import StoreUnavailable
from discreet.families.contract import Recommender
from discreet.families.registration import read_document
from discreet.privacy.noise import SystemNoise
from discreet.state.memory import MemoryStore
from tests.contracts.samples import SAMPLES
from tests.decisions.conftest import Clock, ask, document, opened
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio


@pytest.fixture
async def running(anyio_backend: str, monkeypatch: pytest.MonkeyPatch) -> DecisionServices:
    monkeypatch.setattr(background, "TICK_SECONDS", 0.01)
    services = await open_services(store=MemoryStore(), noise=SystemNoise(), lease_seconds=0.05)
    await services.registry.put("films", document(releases={"seconds": 0.05, "growth": 0.0}))
    return services


async def test_models_are_released_in_the_background(running: DecisionServices) -> None:
    recommender = await running.registry.find("films")
    async with asyncio.timeout(PATIENCE):
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
    async with asyncio.timeout(PATIENCE):
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


@pytest.mark.parametrize("algorithm", sorted(SAMPLES))
async def test_what_was_replaced_or_removed_is_freed_without_pythons_own_search(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker searches for garbage so seldom that it would never happen: here it never does."""
    monkeypatch.setattr(background, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(background, "_SEARCH_SECONDS", 0.0)
    services = await open_services(store=MemoryStore(), noise=SystemNoise(), lease_seconds=0.02)
    made: weakref.WeakSet[Recommender[Any]] = weakref.WeakSet()
    gc.collect()
    gc.disable()
    try:
        sample = {"algorithm": algorithm, **SAMPLES[algorithm].document}
        for seconds in (3_600, 7_200):
            changed = read_document({**sample, "decision_ttl_seconds": seconds})
            await services.registry.put("r", changed)
            made.add(await services.registry.find("r"))
        await wait_until(lambda: len(made) == 1)
        await services.registry.remove("r")
        await wait_until(lambda: not made)
    finally:
        gc.enable()
        await services.close()


async def wait_until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not done():  # noqa: ASYNC110  nobody tells us
            await asyncio.sleep(0.01)


async def test_of_many_recommenders_some_have_their_turn_and_those_that_are_awaited_always(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background, "AT_ONCE", 2)
    clock = Clock()
    services = await opened(MemoryStore(clock=clock), clock)
    names = [f"r{place}" for place in range(7)]
    for name in names:
        await services.registry.put(name, document(releases={"seconds": 10, "growth": 0}))
    await ask(services, recommender="r3")
    turns = services.background
    for due in (False, True):
        seen = []
        for _ in range(4):
            some = {one.name for one in turns._whose_turn_it_is()}
            assert len(some) <= 2 + due
            assert not due or "r3" in some
            seen += sorted(some)
            turns._turn += 1
        assert set(seen) == set(names)
        clock.now += 60
    await services.releaser.release(await services.registry.find("r3"))
    assert not services.releaser.awaits_release(await services.registry.find("r3"))
    await services.close()


async def test_a_tick_asks_the_store_about_those_whose_turn_it_is(
    running: DecisionServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "AT_ONCE", 3)
    for place in range(9):
        await running.registry.put(f"r{place}", document())
    looked: list[int] = []
    enough = asyncio.Event()
    versions = running.store.versions

    def counted(*, keys: Sequence[bytes]) -> Any:
        looked.append(len(keys))
        if len(looked) == 10:
            enough.set()
        return versions(keys=keys)

    monkeypatch.setattr(running.store, "versions", counted)
    async with asyncio.timeout(PATIENCE):
        await enough.wait()
    assert max(looked) <= 3
    await running.close()
