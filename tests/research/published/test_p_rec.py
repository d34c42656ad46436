"""p-REC and p-REC_sim as published, and why they are not served."""

import math

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.p_rec.run_parameters import VotingParameters
from discreet.research.noise import SeededNoise
from discreet.research.published.p_rec import PublishedVotersRun


def run_of(voters: int) -> PublishedVotersRun:
    voting = VotingParameters(objects=2, rounds=50)
    return PublishedVotersRun(voting=voting, voters=voters, noise=SeededNoise(0))


def test_simple_kicks_out_at_the_first_contradiction() -> None:
    run = run_of(6)
    run.update(np.array([1, 1, 1, 2, 2, 2], dtype=np.uint8), chosen=0, liked=True)
    assert run.counting.sum() == 3
    run.update(np.array([1, 2, 2, 1, 1, 1], dtype=np.uint8), chosen=1, liked=False)
    assert run.counting.sum() == 1


def test_credits_run_out_as_algorithm_2_says() -> None:
    voting = VotingParameters(objects=2, rounds=50, radius=1, diversity=1)
    run = PublishedVotersRun(voting=voting, voters=3, noise=SeededNoise(0))
    # Disliked three times: no R-credit. Contradicting five likes: no credit at all.
    ballots = np.array([1, 2, 1], dtype=np.uint8)
    for left in (3, 3, 1):
        run.update(ballots, chosen=0, liked=False)
        assert run.counting.sum() == left
    other = PublishedVotersRun(voting=voting, voters=2, noise=SeededNoise(0))
    for left in (2, 2, 2, 2, 1):
        other.update(np.array([1, 2], dtype=np.uint8), chosen=1, liked=True)
        assert other.counting.sum() == left


def test_the_loss_stays_below_its_bound() -> None:
    voting = VotingParameters(objects=4, rounds=300)
    rng = np.random.default_rng(4)
    run = PublishedVotersRun(voting=voting, voters=400, noise=SeededNoise(4))
    lost = 0
    for _ in range(300):
        wanted = int(rng.integers(4))
        ballots = np.concatenate([np.full(40, wanted + 1), rng.integers(1, 5, 360)])
        chosen = run.recommend(ballots.astype(np.uint8))
        run.update(ballots.astype(np.uint8), chosen=chosen, liked=chosen == wanted)
        lost += chosen != wanted
    assert run.counting.sum() == 40
    assert lost < voting.loss_bound(peers=40, voters=400)


def test_without_the_promise_one_voter_decides() -> None:
    # Two voters are left. Alone, one decides almost surely; with the other, not.
    rule = VotingParameters(objects=2, rounds=1000).rule(1)
    alone, both = rule.probabilities(np.array([1, 0])), rule.probabilities(np.array([1, 1]))
    assert math.log(both[1] / alone[1]) > 7
    assert VotingParameters(objects=2, rounds=1000).published_epsilon(1000) < 0.5


@pytest.mark.parametrize("ballots", [[1, 2], [1, 2, 0], [1, 1, 1, 1]])
def test_everybody_votes(ballots: list[int]) -> None:
    run = run_of(3)
    with pytest.raises(InvalidArgument) as refusal:
        run.recommend(np.array(ballots, dtype=np.uint8))
    assert refusal.value.argument == "ballots"


def test_without_survivors_the_answer_is_chance() -> None:
    run = run_of(2)
    run.update(np.array([1, 1], dtype=np.uint8), chosen=0, liked=False)
    assert run.counting.sum() == 0
    assert {run.recommend(np.array([1, 1], dtype=np.uint8)) for _ in range(60)} == {0, 1}
