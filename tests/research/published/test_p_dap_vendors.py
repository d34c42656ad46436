"""Vendors as published: forwards reach the others, and trees make their rewards noisy."""

import asyncio

import numpy as np
import pytest

from discreet.research.published.p_dap_cells import PartitionParameters
from discreet.research.published.p_dap_vendors import (
    PublishedAlone,
    PublishedVendors,
    explorable_level,
    uniform_level,
)
from discreet.research.simulate.runs import run
from discreet.research.worlds.contexts import ClusteredWorld, catalogues_of


@pytest.mark.anyio
async def test_vendors_forward_to_one_another_and_trees_make_it_noisy() -> None:
    world = ClusteredWorld(catalogues=catalogues_of(vendors=3, items=2), seed=0)
    parameters = PartitionParameters(mode="uniform", horizon=500, epsilon=0.1, base=500.0)
    network = PublishedVendors(sizes=[2, 2, 2], dimensions=2, parameters=parameters, seed=[0])
    await run(player=network, world=world, rounds=500, seed=0)
    for vendor in network.vendors:
        (mine,) = vendor.own_users.cells
        assert (mine.counts[:2] >= 6).all()  # line 4: more than ln 500 each
        assert (mine.counts[2:4] >= 6).all()  # line 8
        assert (mine.counts[4:] == 7).all()  # line 6, and no more
        assert (mine.sums[4:] == 0).all()
        # Rewards are 0 or 1, so that without noise every sum would be a whole number of them.
        assert (mine.sums[:2] % 1 == 0).all()
        assert (mine.sums[2:4] % 1 != 0).all()
        (others,) = vendor.other_users.cells
        assert others.arrivals > 0


def test_a_vendors_items_stand_after_those_of_the_vendors_before_it() -> None:
    parameters = PartitionParameters(mode="none", horizon=10)
    network = PublishedVendors(sizes=[2, 3], dimensions=1, parameters=parameters, seed=[0])
    asked: list[int] = []

    def respond(item: int) -> float:
        asked.append(item)
        return 1.0

    played = [
        asyncio.run(network.play(vendor=1, context=np.array([0.5]), respond=respond))
        for _ in range(12)
    ]
    assert played == asked
    # Three tries (ln 10 = 2.3) of each of its three items, then the other vendor for training.
    assert played == [2, 3, 4] * 3 + [0, 1, 0]


def test_alone_it_learns_what_is_good() -> None:
    alone = PublishedAlone(
        items=2,
        dimensions=1,
        parameters=PartitionParameters(mode="none", horizon=10),
        seed=[0],
    )
    played = [
        asyncio.run(alone.play(vendor=0, context=np.array([0.5]), respond=lambda item: float(item)))
        for _ in range(9)
    ]
    assert played == [0, 1, 0, 1, 0, 1, 1, 1, 1]


def test_the_uniform_rival_gets_the_papers_number_of_cells() -> None:
    # 30,000^(1/(3 + 2)) = 7.9 along each side: three halvings.
    assert uniform_level(PartitionParameters(horizon=30_000), dimensions=2) == 3


@pytest.mark.parametrize(("arrivals", "level"), [(100, 0), (7_500, 1), (75_000, 2)])
def test_larger_cells_are_explored_in_half_the_time(arrivals: int, level: int) -> None:
    parameters = PartitionParameters(horizon=30_000)
    found = explorable_level(parameters, dimensions=2, slots=11, arrivals=arrivals)
    tries = 4**found * 11 * parameters.control(found)
    assert found == level
    assert level == 0 or tries <= arrivals / 2
