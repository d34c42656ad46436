"""The order of answers, against sorting everything."""

from dataclasses import replace

import numpy as np
import pytest

from discreet.families.collaborative.known import Known
from discreet.families.collaborative.snapshot import Snapshot, untaught
from discreet.decisions.hearing import REWARD_STEPS


def made(rng: np.random.Generator, size: int, each: int) -> Snapshot:
    """A snapshot with few distinct weights and counts, so that there are many ties."""
    return Snapshot(
        starts=np.arange(size + 1) * each,
        slots=np.concatenate([rng.choice(size, each, replace=False) for _ in range(size)]),
        weights=rng.integers(1, 3, size * each).astype(float),
        counts=rng.integers(0, 4, size),
        profiles=9,
    )


@pytest.mark.parametrize("seed", range(40))
def test_it_is_the_order_of_score_then_popularity_then_age(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(5, 40))
    # The newest two items came after the training.
    snapshot = made(rng, size - 2, int(rng.integers(0, 4)))
    rewards = rng.integers(0, 2, size + 1) * REWARD_STEPS
    known = Known()
    known.adopt(snapshot, version=1)
    known.hear(rewards)
    popular = np.concatenate([snapshot.counts, [0, 0]]) + rewards[1:] / REWARD_STEPS
    profile = np.sort(rng.choice(size, int(rng.integers(0, size)), replace=False))
    offer = np.sort(rng.choice(size, int(rng.integers(0, size)), replace=False))
    scores = np.zeros(size)
    for item in profile[profile < snapshot.size]:
        row = slice(snapshot.starts[item], snapshot.starts[item + 1])
        np.add.at(scores, snapshot.slots[row], snapshot.weights[row])
    for limit in (1, 3, 100):
        wanted = sorted(
            set(offer.tolist()) - set(profile.tolist()),
            key=lambda slot: (-scores[slot], -popular[slot], slot),
        )[:limit]
        ranked = known.rank(profile=profile, offer=offer, limit=limit, size=size)
        assert ranked.tolist() == wanted


def test_an_older_snapshot_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    known = Known()
    newer, older = made(rng, 5, 2), made(rng, 5, 2)
    known.adopt(newer, version=7)
    known.adopt(older, version=6)
    assert (known.snapshot, known.version) == (newer, 7)


def test_slots_that_came_later_are_the_least_popular() -> None:
    known = Known()
    counts = np.array([2, 1, 3], dtype=np.int64)
    known.adopt(replace(untaught(size=3), counts=counts), version=1)
    assert known.places(3).tolist() == [1, 2, 0]
    assert known.places(5).tolist() == [1, 2, 0, 3, 4]
