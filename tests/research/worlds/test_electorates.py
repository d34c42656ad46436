"""Synthetic electorates: patterns do what they say."""

import numpy as np
import pytest

from discreet.families.p_rec.run_parameters import VotingParameters
from discreet.research.worlds.electorates import PATTERNS, Pattern, SyntheticElectorate


@pytest.mark.parametrize("pattern", PATTERNS)
def test_peers_keep_within_radius_and_diversity(pattern: Pattern) -> None:
    voting = VotingParameters(objects=4, rounds=60, radius=3, diversity=5)
    made = SyntheticElectorate(voting=voting, peers=30, voters=200, pattern=pattern, seed=1)
    distance, diverse = np.zeros(200, dtype=int), 0
    for _ in range(60):
        asked = made.next_round(np.ones(200, dtype=np.bool_))
        assert len(asked.ballots) == 200
        assert asked.ballots.min() >= 1
        distance += [ballot - 1 not in asked.liked for ballot in asked.ballots.tolist()]
        diverse += len(asked.liked) > 1
    assert distance[:30].max() == 3
    assert diverse == 5
    assert distance[30:].min() > 3


def test_the_adaptive_pattern_moves_those_who_count() -> None:
    voting = VotingParameters(objects=4, rounds=60)
    made = SyntheticElectorate(voting=voting, peers=30, voters=330, pattern="adaptive", seed=1)
    counting = np.zeros(330, dtype=np.bool_)
    counting[30:60] = True
    asked = made.next_round(counting)
    counts = np.bincount(asked.ballots[30:60], minlength=5)[1:]
    assert sorted(counts.tolist()) == [0, 10, 10, 10]
    assert counts[next(iter(asked.liked))] == 0
