"""What a worker opens is joined once, and closed as a whole."""

import time

import pytest

from discreet.decisions.services import open_services, open_simulation
from discreet.errors import SeededNoiseRefused
from discreet.privacy.noise import SystemNoise
from discreet.research.noise import SeededNoise
from discreet.state.memory import MemoryStore
from discreet.state.redis_store import open_store
from tests.decisions.conftest import ask, document, opened
from tests.state.conftest import embedded_url  # noqa: F401  pytest finds fixtures by name

pytestmark = pytest.mark.anyio


async def test_reproducible_noise_never_serves() -> None:
    with pytest.raises(SeededNoiseRefused):
        await open_services(store=MemoryStore(), noise=SeededNoise(1))


async def test_workers_of_one_store_share_ledgers_and_tokens() -> None:
    store = MemoryStore()
    first, second = await opened(store), await opened(store)
    await first.registry.put("films", document())
    await second.registry.refresh()
    await ask(first)
    answer = await ask(second)
    assert answer.privacy.spent is not None
    assert answer.privacy.spent.epsilon == 2.0


async def test_the_same_seed_simulates_the_same() -> None:
    found = []
    for _ in range(2):
        services = await open_simulation(store=MemoryStore(), noise=SeededNoise(5))
        await services.registry.put("films", document())
        found.append([(await ask(services, client=f"c{n}")).items for n in range(20)])
        await services.close()
    assert found[0] == found[1]


async def test_closing_ends_the_background() -> None:
    services = await open_services(store=MemoryStore(), noise=SystemNoise())
    await services.close()
    assert services.background._loops
    assert all(task.done() for task in services.background._loops)


async def test_closing_lets_go_of_everything_even_if_an_early_step_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A training that nobody ends would hold the worker for as long as it takes."""
    services = await open_services(store=MemoryStore(), noise=SystemNoise())
    closed: list[str] = []
    for name in ("films", "books"):
        await services.registry.put(name, document())
        recommender = await services.registry.find(name)

        async def close(name: str = name) -> None:
            closed.append(name)
            raise OSError(f"{name} does not end")

        monkeypatch.setattr(recommender, "close", close)

    async def fails() -> None:
        raise OSError("the disk is full")

    async def closes() -> None:
        closed.append("the store")

    monkeypatch.setattr(services.decision_log, "write", fails)
    monkeypatch.setattr(services.store, "close", closes)
    with pytest.raises(OSError, match="the disk is full"):
        await services.close()
    assert sorted(closed[:-1]) == ["books", "films"]
    assert closed[-1] == "the store"
    assert all(task.done() for task in services.background._loops)


async def test_the_clock_is_the_stores(
    embedded_url: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two workers whose own clocks are ten minutes apart agree on when a token expires."""
    expiries = []
    for skew in (-300.0, 300.0):
        real = time.time
        with monkeypatch.context() as skewed:
            skewed.setattr(time, "time", lambda real=real, skew=skew: real() + skew)
            services = await open_services(
                store=open_store(embedded_url, namespace="clocks", timeout=30), noise=SystemNoise()
            )
            await services.registry.put("films", document())
            answer = await ask(services)
            assert abs(services.store.clock() - real()) < 60
            await services.store.ping()
            assert abs(services.store.clock() - real()) < 60
            await services.close()
        expiries.append(answer.expires_at)
    assert 0 <= expiries[1] - expiries[0] < 120
