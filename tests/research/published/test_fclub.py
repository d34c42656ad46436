"""CDP-FCLUB-DC as published: the lines, the noise that reaches decisions, and its parts."""

import math

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.privacy.calibration import published_privatizer_scale
from discreet.research.noise import SeededNoise
from discreet.research.published.fclub import NoiseTree, PublishedClusters, certainty, radius
from discreet.research.worlds.fclub import synthetic


def play(player: PublishedClusters, rounds: int, seed: int = 0) -> float:
    world = synthetic(seed, users=12, clusters=2, servers=3, dimensions=5)
    regret = 0.0
    for offers in world.offers(rounds=rounds):
        for place in range(len(offers.users)):
            user, items, means = int(offers.users[place]), offers.items[place], offers.means[place]
            chosen = player.choose(user, items)
            regret += float(means.max() - means[chosen])
            player.learn(user, items[chosen], float(offers.luck[place] < means[chosen]))
    return regret


def make(**given: float | bool | None) -> PublishedClusters:
    return PublishedClusters(
        servers=[0] * 4 + [1] * 4 + [2] * 4,
        dimensions=5,
        rounds=4_000,
        noise=SeededNoise(1),
        clusters=2,
        **given,  # type: ignore[arg-type]
    )


def test_certainty_is_the_paper_s() -> None:
    assert certainty(0) == pytest.approx(1.0)
    assert certainty([99])[0] == pytest.approx(math.sqrt((1 + math.log(100)) / 100))


def test_radius_grows_with_count_and_regulariser() -> None:
    few = radius(count=10, dimensions=5, failure=1e-3, sharing=1, least=1.0, most=1.0)
    many = radius(count=1e4, dimensions=5, failure=1e-3, sharing=1, least=1.0, most=1.0)
    loose = radius(count=1e4, dimensions=5, failure=1e-3, sharing=1, least=1.0, most=100.0)
    assert few < many < loose


class ConstantNoise:
    """Draws nothing but ones, and counts them."""

    production = False

    def __init__(self) -> None:
        self.drawn = 0

    def bits(self, count: int) -> int:
        raise AssertionError("not drawn here")

    def discrete_laplace(self, *, scale: float, size: int) -> "np.ndarray":
        raise AssertionError("not drawn here")

    def discrete_gaussian(self, *, scale: float, size: int) -> "np.ndarray":
        self.drawn += size
        return np.ones(size, dtype=np.int64)


def test_tree_adds_as_many_nodes_as_the_step_has_ones() -> None:
    noise = ConstantNoise()
    tree = NoiseTree(order=2, scale=3.0, noise=noise)
    step = 2.0**-20 * math.sqrt(2)  # (N + N^T) / sqrt(2) of a node of ones
    for number in range(1, 20):
        assert np.allclose(tree.next(), number.bit_count() * step)
    assert noise.drawn == 19 * 4


def test_noise_is_the_published_one_and_reaches_what_is_decided_by() -> None:
    player = make(epsilon=1.0, delta=0.1)
    expected = published_privatizer_scale(levels=player.levels, epsilon=1.0, delta=0.1)
    assert player.scale == expected
    play(player, 200)
    for gram in player.local.gram:
        # Sums of items of length 1 have an integer trace; noise does not.
        assert abs(np.trace(gram) - round(np.trace(gram))) > 1e-6


def test_without_noise_every_observation_is_counted_once() -> None:
    player = make(upload=1.0, download=1.0)
    play(player, 600)
    inside = player.local
    for model in range(len(inside)):
        # |x| = 1, so the trace is the ridge's 5 a local cluster that was merged, plus the count.
        extra = (np.trace(inside.gram[model]) - inside.count[model]) / 5
        assert extra == pytest.approx(round(extra), abs=1e-6)
    assert player.users.count.sum() == 600


def test_clusters_are_found_and_joined_over_servers() -> None:
    player = make()
    play(player, 4_000)
    # Blocks of six users on servers of four: the middle server holds both tastes.
    expected = [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 3, 3]
    assert player.home.tolist() == expected


def test_sharing_without_noise_beats_noise_and_one_cluster_for_all() -> None:
    exact = play(make(), 4_000)
    assert play(make(epsilon=1.0, delta=0.1), 4_000) > 3 * exact
    assert play(make(detect=False), 4_000) > 2 * exact


def test_delay_saves_communications() -> None:
    at_once, delayed, lazier = (
        make(upload=1.0, download=1.0),
        make(),
        make(upload=1.2, download=1.2),
    )
    for player in (at_once, delayed, lazier):
        play(player, 2_000)
    assert at_once.communications > delayed.communications > lazier.communications


def test_refuses_thresholds_below_one() -> None:
    with pytest.raises(InvalidArgument, match="upload"):
        make(upload=0.5)
