"""The contenders on small worlds: repeatable, and in the order that theory demands."""

from functools import partial

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.reproduce.p_dap_algorithms import ALGORITHMS, Contender
from discreet.research.published.p_dap_vendors import Network, Published, uniform_level
from discreet.research.reproduce.p_dap import default_world
from discreet.research.simulate.server import OneRecommender, Seat
from discreet.research.simulate.runs import run
from discreet.research.reproduce.trials import Trial, play_all
from discreet.research.worlds.contexts import ClusteredWorld, SparseWorld, catalogues_of


def contender(algorithm: str) -> Contender:
    return Contender(algorithm, None if algorithm in ("dap", "cap", "dup") else 1.0)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_same_seed_gives_the_same_run(algorithm: str) -> None:
    trials = [Trial(contender(algorithm), default_world, 300, seed) for seed in (1, 1, 2)]
    one, same, other = play_all(trials, processes=1)
    assert one.regret.tolist() == same.regret.tolist()
    assert one.reward.tolist() == same.reward.tolist()
    assert one.regret.tolist() != other.regret.tolist()


def test_progress_is_told_by_position() -> None:
    told: list[int] = []
    trials = [Trial(contender("cap"), default_world, 60, seed) for seed in range(2)]
    play_all(trials, processes=1, progress=told.append)
    assert told == [0, 1]


def regrets(
    one: Contender, seeds: int, rounds: int
) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    runs = play_all([Trial(one, default_world, rounds, seed) for seed in range(seeds)], processes=1)
    return np.array([found.regret[-1] for found in runs])


def test_the_order_of_the_algorithms_shows_in_a_small_setting() -> None:
    """Seeded, so it cannot fail by chance; what it can catch is an algorithm that stops learning.

    A uniform draw in place of the served learner or of DAP would make the ratios about 1.
    """
    served = regrets(Contender("served", 1.0), 2, 1_500)
    published = regrets(Contender("p-dap", 0.01), 2, 1_500)
    dap = regrets(Contender("dap"), 2, 1_500)
    dup = regrets(Contender("dup"), 2, 1_500)
    assert (published > 1.8 * served).all()
    assert (dap < 0.9 * dup).all()
    assert (dap < 0.9 * published).all()


@pytest.mark.anyio
async def test_vendors_forward_to_one_another_and_trees_make_it_noisy() -> None:
    world = ClusteredWorld(catalogues=catalogues_of(vendors=3, items=2), seed=0)
    published = Published(mode="uniform", horizon=500, epsilon=0.1, base=500.0)
    network = await Network.open(
        catalogues=world.catalogues, dimensions=2, published=published, seed=[0]
    )
    await run(player=network, world=world, rounds=500, seed=0)
    for seat in network.seats:
        held = {one.name: one for one in seat.runtime.registry.held()}
        (mine,) = await _vectors(seat, held["own"].generation)
        counts, sums = mine[1::2], mine[2::2]
        assert (counts[:2] >= 6).all()  # line 4: more than ln 500 each
        assert (counts[2:4] >= 6).all()  # line 8
        assert (counts[4:] == 7).all()  # line 6, and no more
        assert (sums[4:] == 0).all()
        # Rewards are 0 or 1, so that without noise every sum would be a whole number of them.
        assert (sums[:2] % 2**20 == 0).all()
        assert (sums[2:4] % 2**20 != 0).all()
        (others,) = await _vectors(seat, held["others"].generation)
        assert others[0] > 0
    await network.close()


async def _vectors(
    seat: Seat, generation: bytes
) -> list["np.ndarray[tuple[int], np.dtype[np.int64]]"]:
    cells = await seat.runtime.store.cells(index=generation, most=100)
    return list(await seat.runtime.store.read(addresses=list(cells)))


@pytest.mark.anyio
async def test_ten_thousand_dimensions_work_and_memory_grows_with_cells_not_rounds() -> None:
    world = SparseWorld(catalogues=catalogues_of(vendors=1, items=5), kinds=4, seed=0)
    assert world.dimensions == 10_000
    player = await Contender("served", 4.0).open(world=world, rounds=600, seed=0)
    assert isinstance(player, OneRecommender)
    await run(player=player, world=world, rounds=600, seed=0)
    assert await player.seat.cells() <= 1 + 4 + 4
    # Claims of feedback live as long as tokens do: a minute, which is so many rounds.
    store = player.seat.runtime.store
    assert len(store._claims) <= 200  # type: ignore[attr-defined]
    await player.close()


def test_the_uniform_rival_gets_the_papers_number_of_cells() -> None:
    # 30,000^(1/(3 + 2)) = 7.9 along each side: three halvings.
    assert uniform_level(horizon=30_000, dimensions=2, similarity=1.0, segments=2) == 3


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (partial(Contender, "best"), "algorithm"),
        (partial(Contender, "dap", 1.0), "epsilon"),
        (partial(Contender, "p-dap"), "epsilon"),
    ],
)
def test_contenders_that_cannot_be_are_refused(make: "partial[Contender]", argument: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        make()
    assert refused.value.argument == argument


def test_no_processes_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="processes"):
        play_all([], processes=0)
