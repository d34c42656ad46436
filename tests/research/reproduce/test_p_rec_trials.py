"""What a run of p-REC reveals about every voter, exactly."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.decisions.services import open_simulation
from discreet.families.documents import BudgetDocument
from discreet.families.p_rec.credits import Ballots
from discreet.families.p_rec.document import VoterPrivacyDocument, VotersDocument
from discreet.families.p_rec.run_parameters import VotingParameters
from discreet.families.p_rec.votes import Vote, Votes
from discreet.families.questions import Ask, Feedback
from discreet.research.noise import SeededNoise
from discreet.research.reproduce.p_rec import DELTA, Numbers, case_of
from discreet.research.reproduce.p_rec_trials import (
    ServedVotersRun,
    VotersCase,
    VotersRunResult,
    VotersTrial,
    log_chances,
    losses,
    padded,
    vote_counts,
    worst_epsilon,
)
from discreet.research.worlds.electorates import PATTERNS, Pattern, SyntheticElectorate
from discreet.state.memory import MemoryStore


@pytest.mark.parametrize("votes", [(30, 20, 10), (1, 0, 0), (12, 12, 12), (50, 9, 1)])
def test_chances_are_those_of_the_served_draw(votes: tuple[int, ...]) -> None:
    voting = VotingParameters(objects=3, rounds=100)
    ours = log_chances(voting, np.array([votes]))[0]
    weights = [int(weight) for weight in voting.rule(1).weights(np.array(votes))]
    for found, weight in zip(ours, weights, strict=True):
        assert found == pytest.approx(math.log(Fraction(weight, sum(weights))), abs=1e-9)


def test_every_voter_is_compared_with_the_world_without_him() -> None:
    voting = VotingParameters(objects=2, rounds=100)
    ballots: Ballots = np.array([1] * 9 + [2] * 5 + [0], dtype=np.uint8)
    counting = np.array([True] * 13 + [False, True])
    found = losses(voting, ballots, counting, 1)
    there = log_chances(voting, np.array([[9, 4]]))[0, 1]
    for voter, votes in ((0, [8, 4]), (9, [9, 3])):
        assert found[voter] == pytest.approx(there - log_chances(voting, np.array([votes]))[0, 1])
    assert found[13] == found[14] == 0.0
    assert found[0] < 0 < found[9]


def brute_force(voting: VotingParameters, least: int, left: int, sign: int) -> float:
    """Try every first round of `left` voters, ours among them, and every run that follows it.

    Losses add up with their sign, which is that of the direction in which the worlds differ.
    """
    if left < least:
        return 0.0
    worst = brute_force(voting, least, left - 1, sign)
    rule = voting.rule(1)
    for votes in vote_counts(left, voting.objects):
        there = rule.weights(np.array(votes))
        for mine in (place for place, count in enumerate(votes) if count):
            fewer = list(votes)
            fewer[mine] -= 1
            without = rule.weights(np.array(fewer))
            for drawn, count in enumerate(votes):
                chances = (
                    Fraction(int(there[drawn]), int(there.sum())),
                    Fraction(int(without[drawn]), int(without.sum())),
                )
                # Whoever contradicts the client counts no more; we stay.
                stay = count if mine == drawn else left - count
                if abs(loss := math.log(chances[0] / chances[1])) > 1e-12 and stay < left:
                    worst = max(worst, sign * loss + brute_force(voting, least, stay, sign))
    return worst


@pytest.mark.parametrize(("objects", "voters"), [(2, 9), (3, 8)])
def test_the_worst_run_is_found(objects: int, voters: int) -> None:
    voting = VotingParameters(objects=objects, rounds=50)
    worst = max(brute_force(voting, 6, voters, sign) for sign in (1, -1))
    assert worst_epsilon(voting, least=6, voters=voters) == pytest.approx(worst, abs=1e-9)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_run_tells_more_than_the_worst_one(pattern: Pattern) -> None:
    case = case_of("published", (60, 2, 100, 0, 0, 24))
    played = VotersTrial(case, pattern, 3).run()
    assert 0 < played.revealed <= worst_epsilon(case.voting, least=24, voters=60) + 1e-9


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("numbers", "pattern"),
    [
        ((600, 3, 40, 0, 1, 300), "adaptive"),
        ((600, 3, 40, 1, 0, 300), "scattered"),
        ((400, 2, 60, 0, 0, 150), "halving"),
    ],
)
async def test_the_shipped_decisions_give_the_same_run(numbers: Numbers, pattern: Pattern) -> None:
    """The same votes, opinions and seed: the same objects, answer by answer, to the end of a run.

    What is measured is this module's loop, which has no store and no requests. Here rounds, votes,
    questions and feedback go through `discreet.decisions`, over the store in memory.
    """
    case = case_of("served", numbers)
    voting = case.voting
    assert case.run is not None
    ours = ServedVotersRun(parameters=case.run, noise=SeededNoise(5))
    electorate = SyntheticElectorate(voting, case.peers, case.voters, pattern, seed=5)
    shipped = await open_simulation(store=MemoryStore(), noise=SeededNoise(5))
    try:
        document = VotersDocument(
            algorithm="p-rec",
            objects=voting.objects,
            horizon=voting.rounds,
            peers=case.peers,
            radius=voting.radius,
            diversity=voting.diversity,
            voters=case.voters,
            privacy=VoterPrivacyDocument(
                budget=BudgetDocument(epsilon=1e6, delta=1e-6), run_delta=DELTA
            ),
        )
        await shipped.registry.put("talk", document)
        votes = (await shipped.registry.find("talk")).part(Votes)
        disliked, by_votes = [0, 0], 0
        for number in range(voting.rounds):
            asked = electorate.next_round(padded(ours.counting, case.voters))
            one, _ = await votes.rounds.make(
                round_id=f"round {number}", objects=[str(place) for place in range(voting.objects)]
            )
            await votes.cast(
                [
                    Vote(one.id, f"voter {voter}", str(ballot - 1))
                    for voter, ballot in enumerate(asked.ballots.tolist())
                ]
            )
            answer = await shipped.recommend.recommend(Ask("talk", "ada", round=one.id))
            chosen = ours.recommend(asked.ballots)
            assert (int(answer.items[0]), answer.personalised) == (chosen, not ours.ended)
            liked = chosen in asked.liked
            ours.update(asked.ballots, chosen=chosen, liked=liked)
            await shipped.feedback.record(Feedback(float(liked), answer.recommendation_id))
            disliked[0] += not liked
            disliked[1] += int(answer.items[0]) not in asked.liked
            by_votes += answer.personalised
    finally:
        await shipped.close()
    assert disliked[0] == disliked[1] == play_again(case, pattern).disliked
    assert by_votes > voting.rounds // 2


def play_again(case: VotersCase, pattern: Pattern) -> VotersRunResult:
    """Play the run as it is measured."""
    return VotersTrial(case, pattern, 5).run()
