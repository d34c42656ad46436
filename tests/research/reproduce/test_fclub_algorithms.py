"""The compared algorithms by name: each can be opened, and the same seed gives the same run."""

import asyncio
from functools import partial

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.reproduce.fclub import ALONE, BY_OBSERVATION, BY_PERSON
from discreet.research.reproduce.fclub_algorithms import ClusterAlgorithm
from discreet.research.reproduce.fclub_trials import ClusterTrial
from discreet.research.worlds.fclub import synthetic

WORLD = partial(synthetic, users=12, clusters=2, servers=3, dimensions=5, arrangement="mixed")


@pytest.mark.parametrize(
    "name", ["linucb", "club", "sclub", "fclub", "fclub-dc", "homo", "homo-dc"]
)
def test_every_rival_can_be_opened(name: str) -> None:
    assert ClusterTrial(ClusterAlgorithm(name), WORLD, 100, 0, 2).run().regret[-1] > 0


@pytest.mark.parametrize("algorithm", [ALONE, BY_PERSON, BY_OBSERVATION])
def test_the_same_seed_gives_the_same_run(algorithm: ClusterAlgorithm) -> None:
    one, two = (ClusterTrial(algorithm, WORLD, 500, 2, 2).run() for _ in range(2))
    assert np.array_equal(one.regret, two.regret)
    assert np.array_equal(one.communications, two.communications)


def test_unknown_names_are_refused() -> None:
    opening = ClusterAlgorithm("nobody").open(
        servers=[0], dimensions=2, rounds=1, clusters=1, seed=0
    )
    with pytest.raises(InvalidArgument, match="algorithm"):
        asyncio.run(opening)


def test_labels_say_what_is_protected() -> None:
    assert BY_PERSON.label == "fclub (served) ε=1, δ=1e-06, by person"
    assert ALONE.label == "no sharing (served)"
    assert ClusterAlgorithm("fclub-dc", threshold=1.05).label == "fclub-dc U=D=1.05"
    assert ClusterAlgorithm("fclub-dc").trigger == "determinant"
    assert BY_PERSON.trigger == "clock"
