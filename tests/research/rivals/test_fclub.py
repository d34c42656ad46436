"""Rivals without sharing between servers: they learn, and clusters are those of the truth."""

import numpy as np
import pytest

from discreet.research.rivals.fclub import CLUB, SCLUB, LinUCB
from discreet.research.worlds.fclub import synthetic

SERVERS = [0] * 6 + [1] * 6
ROUNDS = 4_000


def play(player: LinUCB) -> float:
    """Return the regret in a world where each server holds three users of either taste."""
    world = synthetic(0, users=12, clusters=2, servers=2, dimensions=5, arrangement="mixed")
    regret = 0.0
    for offers in world.offers(rounds=ROUNDS):
        for place in range(len(offers.users)):
            user, items, means = int(offers.users[place]), offers.items[place], offers.means[place]
            chosen = player.choose(user, items)
            regret += float(means.max() - means[chosen])
            player.learn(user, items[chosen], float(offers.luck[place] < means[chosen]))
    return regret


@pytest.fixture(scope="module")
def played() -> dict[str, tuple[LinUCB, float]]:
    found = {}
    for make in (LinUCB, CLUB, SCLUB):
        player = make(servers=SERVERS, dimensions=5, rounds=ROUNDS)
        found[make.__name__] = (player, play(player))
    return found


def test_everybody_learns(played: dict[str, tuple[LinUCB, float]]) -> None:
    for _, regret in played.values():
        assert regret < 0.35 * 0.25 * ROUNDS  # random play loses about a quarter a round


@pytest.mark.parametrize("name", ["CLUB", "SCLUB"])
def test_clusters_end_as_the_truth(name: str, played: dict[str, tuple[LinUCB, float]]) -> None:
    home = played[name][0].home  # type: ignore[attr-defined]
    truth = np.arange(12) % 2
    for server in (0, 1):
        inside = slice(6 * server, 6 * server + 6)
        for one, other in zip(home[inside], truth[inside], strict=True):
            mates = truth[np.flatnonzero(home == one)]
            assert (mates == other).all()


@pytest.mark.parametrize("name", ["CLUB", "SCLUB"])
def test_a_cluster_s_sums_are_its_users(name: str, played: dict[str, tuple[LinUCB, float]]) -> None:
    player = played[name][0]
    home = player.home  # type: ignore[attr-defined]
    for cluster in np.unique(home):
        members = np.flatnonzero(home == cluster)
        ridge = (len(members) - 1) * np.eye(5)
        expected = player.users.gram[members].sum(axis=0) - ridge
        assert np.allclose(player.models.gram[cluster], expected)  # type: ignore[attr-defined]


def test_nobody_communicates(played: dict[str, tuple[LinUCB, float]]) -> None:
    assert all(player.communications == 0 for player, _ in played.values())


@pytest.mark.parametrize("programmed", [False, True])
def test_the_program_never_joins_the_cluster_of_the_highest_number(programmed: bool) -> None:
    player = SCLUB(servers=[0, 0, 0], dimensions=2, rounds=100, programmed=programmed)
    clusters = []
    for step in range(800):
        for user in range(3):  # one is unlike the others at first, and like them later
            liked = 8.0 if user == 0 and step < 3 else 0.0
            player.learn(user, np.array([0.6, 0.8]), liked)
        clusters.append(len(set(player.home.tolist())))
    assert max(clusters) > 1
    assert (clusters[-1] == 1) is not programmed
