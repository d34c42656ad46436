"""Chance and popularity: what can be earned without looking at the visitor."""

import numpy as np
import pytest

from discreet.research.rivals.context_free import (
    ChanceLearner,
    PopularityLearner,
    PrivatePopularityLearner,
)
from discreet.research.suite.stretches import Stretch
from tests.research.suite.known import two_kinds


def alike(rounds: int, seed: int) -> Stretch:
    rng = np.random.default_rng(seed)
    means = np.tile([0.2, 0.6, 0.4], (rounds, 1))
    return Stretch(rng.random((rounds, 2)), np.arange(3), means, rng.random(rounds))


@pytest.mark.anyio
async def test_chance_answers_every_item_alike() -> None:
    chosen = await ChanceLearner().play(two_kinds(6_000, first=4), seed=1)
    # The standard error of a count is 37.
    assert all(abs(int(count) - 2_000) < 200 for count in np.bincount(chosen)[4:])


@pytest.mark.anyio
async def test_popularity_finds_the_most_liked_item() -> None:
    player = PopularityLearner()
    await player.play(alike(2_000, 0), seed=1)
    stretch = alike(1_000, 1)
    chosen = await player.play(stretch, seed=1)
    assert stretch.worth(chosen).mean() > 0.57


@pytest.mark.anyio
async def test_popularity_cannot_tell_people_apart() -> None:
    player = PopularityLearner()
    stretch = two_kinds(3_000)
    assert stretch.worth(await player.play(stretch, seed=1)).mean() < 0.55


@pytest.mark.anyio
async def test_private_popularity_tries_all_items_alike_until_its_first_release() -> None:
    player = PrivatePopularityLearner(feedback=1.0, rate=200.0)
    chosen = await player.play(alike(2_000, 0), seed=1)
    assert all(abs(int(count) - 667) < 110 for count in np.bincount(chosen))
    stretch = alike(1_000, 1)
    assert stretch.worth(await player.play(stretch, seed=1)).mean() > 0.55


@pytest.mark.anyio
async def test_private_popularity_learns_less_at_a_smaller_epsilon() -> None:
    worth = {}
    for epsilon in (0.001, 4.0):
        runs = []
        for seed in range(6):
            player = PrivatePopularityLearner(feedback=epsilon, rate=200.0)
            await player.play(alike(2_000, 2 * seed), seed=seed)
            stretch = alike(1_000, 2 * seed + 1)
            runs.append(float(stretch.worth(await player.play(stretch, seed=seed)).mean()))
        worth[epsilon] = sum(runs) / len(runs)
    assert worth[0.001] < worth[4.0] - 0.05
