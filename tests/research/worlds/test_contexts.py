"""Worlds: the same for the same seed, true to what they say, and small enough for memory."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.worlds.contexts import (
    Arrivals,
    ClusteredWorld,
    SparseWorld,
    World,
    block_rows,
    catalogues_of,
)

CATALOGUES = catalogues_of(vendors=3, items=4)
WORLDS = [
    ClusteredWorld(catalogues=CATALOGUES, seed=1),
    SparseWorld(catalogues=CATALOGUES, dimensions=500, seed=1),
]


def all_of(world: World, *, rounds: int, seed: int) -> Arrivals:
    blocks = list(world.arrivals(rounds=rounds, seed=seed))
    return Arrivals(
        contexts=np.concatenate([block.contexts for block in blocks]),
        vendors=np.concatenate([block.vendors for block in blocks]),
        luck=np.concatenate([block.luck for block in blocks]),
        means=np.concatenate([block.means for block in blocks]),
    )


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: type(world).__name__)
def test_arrivals_are_repeatable_and_in_range(world: World) -> None:
    one, same, other = (all_of(world, rounds=1_300, seed=seed) for seed in (5, 5, 6))
    assert one.contexts.shape == (1_300, world.dimensions)
    assert one.means.shape == (1_300, 12)
    assert (one.contexts == same.contexts).all()
    assert (one.luck == same.luck).all()
    assert not (one.contexts == other.contexts).all()
    assert 0 <= one.contexts.min() <= one.contexts.max() <= 1
    assert 0 < one.means.min() < one.means.max() <= 1
    assert set(one.vendors.tolist()) == {0, 1, 2}


def test_the_default_widths_leave_room_for_learning() -> None:
    """A uniform draw earns about half of the optimum, the most popular item about 85%."""
    shares = []
    for seed in range(8):
        world = ClusteredWorld(catalogues=catalogues_of(vendors=4, items=5), seed=seed)
        means = all_of(world, rounds=1_000, seed=0).means
        best = means.max(axis=1).mean()
        shares.append((means.mean() / best, means.mean(axis=0).max() / best))
    uniform, popular = np.mean(shares, axis=0)
    assert 0.47 < uniform < 0.57
    assert 0.82 < popular < 0.91


def test_a_sparse_context_has_the_features_of_its_kind_only() -> None:
    world = SparseWorld(catalogues=CATALOGUES, dimensions=500, kinds=3, active=7, seed=2)
    contexts = all_of(world, rounds=200, seed=0).contexts
    assert (np.count_nonzero(contexts, axis=1) == 7).all()
    assert contexts[contexts > 0].min() >= 0.8
    kinds = {tuple(np.flatnonzero(row)) for row in contexts}
    assert len(kinds) == 3


def test_what_an_item_likes_is_what_it_is_liked_for() -> None:
    world = SparseWorld(catalogues=CATALOGUES, dimensions=500, seed=3)
    block = next(world.arrivals(rounds=5, seed=0))
    likes = np.zeros((12, 500))
    likes[:, world.features.reshape(-1)] = world.likes
    expected = 0.05 + 0.9 * (block.contexts @ likes.T) / 20
    assert block.means == pytest.approx(expected)


def test_blocks_stay_small_in_many_dimensions() -> None:
    world = SparseWorld(catalogues=CATALOGUES, dimensions=100_000)
    assert block_rows(world) == 80
    assert len(next(world.arrivals(rounds=1_000, seed=0)).luck) == 80


def test_worlds_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="items"):
        catalogues_of(vendors=0, items=3)
    with pytest.raises(InvalidArgument, match="dimensions"):
        SparseWorld(catalogues=CATALOGUES, dimensions=10, kinds=8, active=20)
