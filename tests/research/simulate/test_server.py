"""The shipped decisions on a simulated clock: releases by the clock, memory bounded."""

from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.documents import ReleasesDocument
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.families.registration import read_document
from discreet.families.rewards import RewardDocument
from discreet.research.reproduce.p_dap_algorithms import served_document
from discreet.research.simulate.runs import run
from discreet.research.simulate.server import (
    TOKEN_SECONDS,
    ServedRecommender,
    SimulatedClock,
    SimulatedServer,
)
from discreet.research.worlds.contexts import SparseWorld, catalogues_of
from discreet.state.memory import MemoryStore

DOCUMENT = served_document(["a", "b"], dimensions=1, epsilon=1.0, feedback_epsilon=None).model_copy(
    update={"releases": ReleasesDocument(seconds=2.0, growth=0.0)}
)


def test_time_passes_with_arrivals() -> None:
    clock = SimulatedClock(rate=4.0)
    assert clock() == 0.0
    for _ in range(6):
        clock.tick()
    assert clock() == 1.5


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), 1e9])
def test_impossible_rates_are_refused(rate: float) -> None:
    with pytest.raises(InvalidArgument, match="rate"):
        SimulatedClock(rate)


@pytest.mark.anyio
async def test_models_are_released_by_the_clock_and_hold_the_feedback() -> None:
    server = await SimulatedServer.open(seed=[1], clock=SimulatedClock(rate=10.0))
    await server.put("one", DOCUMENT)
    (recommender,) = server.services.registry.loaded()
    assert isinstance(recommender, PartitionRecommender)
    numbers = []
    for _ in range(41):
        answer = await server.recommend("one", np.array([0.5]))
        await server.record(answer, 1.0)
        numbers.append(recommender.current.number)
    # Two seconds are 20 arrivals; feedback of the 20th comes after the release at 2.0 s.
    assert numbers == [0] * 19 + [1] * 20 + [2] * 2
    assert recommender.current.model.own.statistics.arrivals().sum() == 39
    await server.close()


@pytest.mark.anyio
async def test_rewards_are_from_0_to_1_and_nothing_is_waited_for() -> None:
    """Whatever range and wait the document has: every reward is told at once."""
    server = await SimulatedServer.open(seed=[1], clock=SimulatedClock(rate=10.0))
    reward = RewardDocument(wait="30m", default=-1, range=[-1, 3])
    await server.put("one", DOCUMENT.model_copy(update={"reward": reward}))
    (recommender,) = server.services.registry.loaded()
    assert isinstance(recommender, PartitionRecommender)
    for number in range(21):
        answer = await server.recommend("one", np.array([0.5]))
        await server.record(answer, float(number % 2))
    statistics = recommender.current.model.own.statistics
    assert statistics.totals() == (19.0, 9.0)
    await server.close()


@pytest.mark.anyio
async def test_an_empty_catalogue_is_an_error() -> None:
    server = await SimulatedServer.open(seed=[1])
    empty = DOCUMENT.model_copy(update={"items": []})
    await server.put("empty", empty)
    with pytest.raises(InvalidArgument, match="items"):
        await server.recommend("empty", np.array([0.5]))
    await server.close()


@pytest.mark.anyio
async def test_ten_thousand_dimensions_work_and_memory_stays_small() -> None:
    world = SparseWorld(catalogues=catalogues_of(vendors=1, items=5), kinds=4, seed=0)
    assert world.dimensions == 10_000
    document = served_document(
        world.catalogues[0], dimensions=10_000, epsilon=4.0, feedback_epsilon=None
    )
    rate = 0.2
    player = await ServedRecommender.open(document=document, seed=[0], rate=rate)
    await run(player=player, world=world, rounds=400, seed=0)
    (recommender,) = player.server.services.registry.loaded()
    assert isinstance(recommender, PartitionRecommender)
    assert len(recommender.current.model.own.statistics.tree) <= 1 + 2 * 4
    # A claim on feedback is kept ten minutes longer than its token.
    store = player.server.services.store
    assert isinstance(store, MemoryStore)
    assert len(store._claims) <= 2 * (TOKEN_SECONDS + 600) * rate
    await player.close()


@pytest.mark.anyio
@pytest.mark.parametrize("dials", [("exact", "exact"), ({"epsilon": 2.0}, {"epsilon": 4.0})])
async def test_fields_that_are_missing_or_say_something_new_do_no_harm(
    dials: tuple[Any, Any],
) -> None:
    """Whoever reads likes the novel, everybody else the film; every third says nothing of use.

    Without telling them apart 0.5 is the most.
    """
    document = read_document(
        {
            "algorithm": "contextual",
            "items": ["novel", "film"],
            "context": {
                "fields": {
                    "age": {"type": "number", "range": [0, 120]},
                    "hobby": {"type": "category", "values": ["reading", "cinema"]},
                    "member": {"type": "boolean"},
                }
            },
            "privacy": {"answers": dials[0], "feedback": dials[1]},
        }
    )
    server = await SimulatedServer.open(seed=[3, 1], clock=SimulatedClock(40.0))
    await server.put("all", document)
    rng = np.random.default_rng(5)
    told_apart = []
    for visit in range(3_000):
        reads = bool(rng.integers(0, 2))
        hobby = "reading" if reads else "cinema"
        said: dict[str, Any] = {"hobby": hobby, "age": 30, "member": True}
        if visit % 3 == 0:
            said = [{}, {"hobby": "falconry"}, {"hobby": None, "age": None}][visit % 9 // 3]
        answer = await server.recommend("all", said)
        liked = (answer.items[0] == "novel") == reads
        await server.record(answer, float(liked))
        if visit % 3 and visit >= 2_000:
            told_apart.append(liked)
    await server.close()
    # The best private rule at epsilon 2 is right in 88%.
    assert np.mean(told_apart) > 0.75
