"""What a node releases of its sums: with noise, once, and it survives."""

import math
from typing import Any

import numpy as np
import pytest

from discreet.families.mirror_descent.broadcasts import due, load_known, refresh, stretch_of
from discreet.families.mirror_descent.recommender import SLICE
from discreet.decisions.recommend import recommend
from discreet.decisions.runtime import Runtime
from discreet.errors import InvalidArgument
from discreet.state.checks import MOST_BLOB
from discreet.state.memory import MemoryStore
from tests.decisions.conftest import Clock
from tests.families.mirror_descent.scenes import (
    DIMENSION,
    SMALL,
    ask,
    found,
    node,
    opened,
    release,
    sums,
    teach,
)

pytestmark = pytest.mark.anyio


async def test_what_is_released_is_the_sum_with_noise_and_ranks(runtime: Runtime) -> None:
    await runtime.registry.put(
        "feed", node(privacy={"epsilon": 20.0, "budget": {"epsilon": 50.0, "delta": 1e-6}})
    )
    recommender = await found(runtime)
    await teach(runtime, 60)
    before = await sums(runtime, recommender)
    assert await release(runtime, recommender)
    await refresh(runtime, recommender)
    known = await load_known(runtime, recommender)
    assert known.counted == 60
    assert known.count == 60
    error = known.theta - before
    stated = math.sqrt(recommender.learner.sums(DIMENSION).variance(1))
    # 10,000 draws: within 5% but for chance 1e-11; none of them 0.
    assert error.std() == pytest.approx(stated, rel=0.05)
    assert (error != 0).all()
    answer = await recommend(runtime, ask(limit=2))
    assert answer.items == ("tea", "milk")
    assert answer.personalised


async def test_the_same_records_are_released_once(runtime: Runtime) -> None:
    await runtime.registry.put("feed", node(features={"dimension": 100}))
    recommender = await found(runtime)
    await teach(runtime, 4, pair=SMALL)
    for _ in range(20):
        assert await release(runtime, recommender)
    known = await load_known(runtime, recommender)
    exact = await sums(runtime, recommender)
    assert (exact[7], exact[8]) == pytest.approx((2.0, -2.0), abs=1e-5)
    assert known.broadcasts == 20
    deviation = math.sqrt(recommender.learner.sums(1).variance(20))
    assert np.abs(known.theta - exact).max() < 7 * deviation
    assert known.theta == pytest.approx(known.told)


async def test_two_who_continue_one_sum_cannot_both_release(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = runtime
    await feed.registry.put("feed", node(features={"dimension": 100}))
    recommender = await found(feed)
    await teach(feed, 2, pair=SMALL)
    assert await release(feed, recommender)
    stale = await feed.store.load(keys=[recommender.key(b"sum/0")])
    assert await release(feed, recommender)
    real = feed.store.load

    async def loading(*, keys: Any) -> Any:
        return stale if keys == [recommender.key(b"sum/0")] else await real(keys=keys)

    known = await load_known(feed, recommender)
    monkeypatch.setattr(feed.store, "load", loading)
    assert not await release(feed, recommender)
    monkeypatch.undo()
    assert (await load_known(feed, recommender)).version == known.version


async def test_batches_are_due_by_count_growth_and_time(runtime: Runtime, clock: Clock) -> None:
    rules = {"records": 4, "growth": 1.0, "seconds": 60}
    await runtime.registry.put("feed", node(broadcasts=rules, features={"dimension": 100}))
    family = runtime.families["mirror-descent"]
    recommender = await found(runtime)
    recommender.broadcast_at = clock.now
    await teach(runtime, 3, pair=SMALL)
    assert not due(recommender, clock.now)
    clock.now += 61
    assert due(recommender, clock.now)
    await teach(runtime, 1, pair=SMALL)
    await family.tend(runtime, recommender)  # type: ignore[attr-defined]
    assert recommender.counted == 4
    assert recommender.theta_version == 1
    await teach(runtime, 3, pair=SMALL)
    assert not due(recommender, clock.now)
    await teach(runtime, 1, pair=SMALL)
    assert due(recommender, clock.now)


async def test_state_survives_a_restart(clock: Clock) -> None:
    store = MemoryStore(clock=clock)
    async with opened(clock, store=store) as runtime:
        await runtime.registry.put("feed", node())
        await teach(runtime, 6)
        recommender = await found(runtime)
        await release(runtime, recommender)
        await refresh(runtime, recommender)
        weights = recommender.model.weights
    async with opened(clock, store=store) as runtime:
        recommender = await found(runtime)
        assert (recommender.model.weights == weights).all()
        assert recommender.counted == 6
        await teach(runtime, 1)
        assert recommender.arrivals == 7


async def test_mode_none_releases_exact_sums(runtime: Runtime) -> None:
    await runtime.registry.put("feed", node(privacy={"mode": "none"}))
    recommender = await found(runtime)
    await teach(runtime, 10)
    await release(runtime, recommender)
    await refresh(runtime, recommender)
    known = await load_known(runtime, recommender)
    assert (known.theta == await sums(runtime, recommender)).all()
    answer = await recommend(runtime, ask(limit=2))
    assert answer.items == ("tea", "milk")
    assert answer.privacy.epsilon is None


async def test_removal_erases_sums_noise_and_models(feed: Runtime) -> None:
    recommender = await found(feed)
    await teach(feed, 3)
    await release(feed, recommender)
    await feed.registry.remove("feed")
    names = [recommender.key(what) for what in (b"sum/0", b"known", b"page")]
    assert await feed.store.load(keys=names) == [None, None, None]
    assert not (await sums(feed, recommender)).any()


@pytest.mark.parametrize(
    "change",
    [
        {"features": {"dimension": 20}},
        {"learning": {"clip": 2.0}},
        {"broadcasts": {"length": 8}},
        {"privacy": {"epsilon": 2.0}},
        {"privacy": {"mode": "none"}},
    ],
)
async def test_what_sums_and_noise_depend_on_cannot_change(
    feed: Runtime, change: dict[str, Any]
) -> None:
    with pytest.raises(InvalidArgument, match="cannot change"):
        await feed.registry.put("feed", node(**change))


@pytest.mark.parametrize("length", [1, 16, 64])
async def test_no_state_is_too_large_for_the_store(runtime: Runtime, length: int) -> None:
    await runtime.registry.put(
        "feed", node(features={"dimension": 1_000_000}, broadcasts={"length": length})
    )
    recommender = await found(runtime)
    size = stretch_of(recommender)
    bytes_each = 8 * (2 * length + 3)
    assert size * bytes_each < MOST_BLOB // 2
    assert size % SLICE == 0
