"""Worlds of federated clusters: lengths, rewards and arrangements are as the page says."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.worlds.fclub import factors, popular, rated, rated_clusters, synthetic


def test_items_and_rewards_are_what_the_guarantee_needs() -> None:
    world = synthetic(3)
    offers = next(world.offers(rounds=500))
    assert offers.items.shape == (500, 10, 10)
    assert np.allclose(np.linalg.norm(offers.items, axis=2), 1)
    assert offers.means.min() >= 0
    assert offers.means.max() <= 1
    theta = np.concatenate([world.tastes, np.ones((40, 1))], axis=1) / np.sqrt(2)
    expected = np.einsum("tkd,td->tk", offers.items, theta[offers.users])
    assert np.allclose(offers.means, expected)


def test_preference_vectors_of_clusters_are_one_apart() -> None:
    tastes = np.unique(synthetic(0).tastes.round(9), axis=0) / np.sqrt(2)
    gaps = np.linalg.norm(tastes[:, None] - tastes, axis=2)
    assert np.allclose(gaps[~np.eye(4, dtype=bool)], 1)


def test_arrangements() -> None:
    for arrangement, most in (("blocks", 2), ("mixed", 4)):
        world = synthetic(0, arrangement=arrangement)  # type: ignore[arg-type]
        held = [
            len(np.unique(world.tastes[world.servers == server].round(9), axis=0))
            for server in range(5)
        ]
        assert max(held) == most
        assert np.bincount(world.servers).tolist() == [8] * 5


def test_longer_runs_begin_with_the_same_rounds() -> None:
    short = list(synthetic(1).offers(rounds=3_000))
    long = list(synthetic(1).offers(rounds=5_000))
    assert sum(len(each.users) for each in short) == 3_000
    few = len(short[-1].users)
    assert np.array_equal(short[-1].luck, long[len(short) - 1].luck[:few])
    assert np.array_equal(short[-1].items, long[len(short) - 1].items[:few])


def test_rated_worlds_have_distinct_users() -> None:
    rng = np.random.default_rng(0)
    table = (rng.random((200, 60)) < 0.3).astype(float)
    table[100:] = table[0]  # a hundred copies of one user
    world = rated(table, 0, users=40, dimensions=6)
    assert len(np.unique(world.tastes.round(9), axis=0)) == 40
    offers = next(world.offers(rounds=100))
    assert offers.items.shape == (100, 10, 6)
    with pytest.raises(InvalidArgument, match="distinct"):
        rated(table[95:], 0, users=40, dimensions=6)


def test_factors_put_users_near_what_they_like() -> None:
    table = np.kron(np.eye(2), np.ones((10, 8)))
    rows, columns = factors(table, rank=1)
    assert np.allclose(np.abs(rows), 1)
    assert (rows[:10] @ columns[:8].T > 0.99).all()
    assert (rows[:10] @ columns[8:].T < -0.99).all()


@pytest.mark.parametrize("wrong", [{"clusters": 10}, {"servers": 0}, {"servers": 41}])
def test_refuses_impossible_worlds(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidArgument):
        synthetic(0, **wrong)  # type: ignore[arg-type]


def test_rated_clusters_are_few_tastes_in_blocks() -> None:
    rng = np.random.default_rng(1)
    kinds = (rng.random((3, 60)) < 0.5).astype(float)
    noise = rng.random((150, 60)) < 0.05
    table = np.abs(kinds[np.arange(150) % 3] - noise)
    world = rated_clusters(table, 0, users=12, clusters=3, servers=2, dimensions=5)
    tastes = np.unique(world.tastes.round(9), axis=0)
    assert len(tastes) == 3
    assert np.allclose(np.linalg.norm(tastes, axis=1), 1)
    assert np.array_equal(world.tastes[:4], np.tile(world.tastes[0], (4, 1)))
    assert world.catalogue is None
    # Three kinds of people were in the table, and three tastes that differ were found.
    assert (tastes @ tastes.T)[~np.eye(3, dtype=bool)].max() < 0.5
    with pytest.raises(InvalidArgument, match="fewer"):
        rated_clusters(table[:2], 0, clusters=3, dimensions=3)


def test_the_most_liked_things_are_columns() -> None:
    pairs = np.array([(2, 51), (2, 52), (7, 51), (9, 60), (9, 51)])
    assert popular(pairs, columns=1).tolist() == [[1], [1], [1]]
    assert popular(pairs, columns=10).tolist() == [[1, 1, 0], [1, 0, 0], [1, 0, 1]]
    with pytest.raises(InvalidArgument, match="empty"):
        popular(np.zeros((0, 2), dtype=np.int64), columns=3)
