"""What is printed and what the authors' program does: names are those of the algorithms."""

import asyncio

from discreet.research.reproduce.fclub import EVERYBODY
from discreet.research.reproduce.fclub_algorithms import PROGRAM, RIVALS, ClusterAlgorithm
from discreet.research.reproduce.fclub_published import (
    AUTHORS_PROGRAM,
    MOVIELENS_MS,
    PUBLISHED,
    SYNTHETIC_MS,
)
from discreet.research.worlds.fclub import synthetic

NAMES = {one.algorithm for one in EVERYBODY}


def test_every_printed_number_is_of_an_algorithm_that_is_played() -> None:
    assert SYNTHETIC_MS.keys() == MOVIELENS_MS.keys() == AUTHORS_PROGRAM["blocks"].keys() == NAMES
    assert AUTHORS_PROGRAM["mixed"].keys() < NAMES
    assert AUTHORS_PROGRAM["communications"].keys() < NAMES
    assert PUBLISHED["table_3_ms_per_round"]["fclub"] == 58.870


def test_club_of_the_program_ends_with_everybody_alone() -> None:
    """Edges at an eighth of the distance: after 40 arrivals a user has no neighbour left."""
    world = synthetic(0)
    program, published = (
        RIVALS[name](servers=world.servers.tolist(), dimensions=10, rounds=4_000)
        for name in (f"club {PROGRAM}", "club")
    )
    for offers in world.offers(rounds=4_000):
        for player in (program, published):
            for place, user in enumerate(offers.users.tolist()):
                items = offers.items[place]
                chosen = player.choose(user, items)
                liked = offers.luck[place] < offers.means[place][chosen]
                player.learn(user, items[chosen], float(liked))
    assert len(set(program.home.tolist())) == 40  # type: ignore[attr-defined]
    assert len(set(published.home.tolist())) < 30  # type: ignore[attr-defined]


def test_homo_dc_of_the_program_is_one_model_a_server() -> None:
    player = asyncio.run(
        ClusterAlgorithm(f"homo-dc {PROGRAM}").open(
            servers=[0, 0, 1, 1], dimensions=3, rounds=100, clusters=1, seed=0
        )
    )
    assert player.learner.home.tolist() == [0, 0, 2, 2]  # type: ignore[attr-defined]
