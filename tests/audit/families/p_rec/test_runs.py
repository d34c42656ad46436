"""The audit of p-REC, and its enumeration beside one that shares nothing with it but the draw."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import permutations, product

import numpy as np
import pytest

from discreet.audit.enclosures import exceeds_exp
from discreet.audit.families.p_rec.runs import (
    TwoWorlds,
    draws_claimed,
    failing_mass,
    fixed_parameters,
    worst_run,
)
from discreet.audit.mechanisms.votes import law_of_lists
from discreet.families.p_rec.run_parameters import RunParameters, VotingParameters
from discreet.privacy.truncated import TruncatedExponential


@cache
def law(rule: TruncatedExponential, votes: tuple[int, ...]) -> list[Fraction]:
    weights = [int(weight) for weight in rule.weights(np.array(votes))]
    return [Fraction(weight, sum(weights)) for weight in weights]


class Reference:
    """All sequences of draws and opinions for fixed ballots, in the simplest way there is."""

    def __init__(self, parameters: RunParameters, ballots: list[list[int]], *, floor: int) -> None:
        self._parameters = parameters
        self._floor = floor
        self._ballots = ballots
        voting = parameters.voting
        self._fresh = [(2 * voting.diversity, 2 * voting.radius + 1)] * len(ballots[0])

    def chances(self, opinions: list[tuple[int, bool]]) -> list[Fraction]:
        """Return the chance of the first object, of the first two, as long as enough count."""
        credits, chance, found = list(self._fresh), Fraction(1), []
        for ballots, (drawn, liked) in zip(self._ballots, opinions, strict=True):
            counts = [r > 0 and d + r > 0 for d, r in credits]
            voting = [b for b, ok in zip(ballots, counts, strict=True) if ok and b]
            worth = sum(
                d + r for (d, r), ok, b in zip(credits, counts, ballots, strict=True) if ok and b
            )
            if worth < self._floor:
                break
            votes = tuple(
                voting.count(place + 1) for place in range(self._parameters.voting.objects)
            )
            chance *= law(self._parameters.voting.rule(self._parameters.survivors), votes)[drawn]
            found.append(chance)
            credits = [
                self._after(credit, ballot, drawn, liked)
                for credit, ballot in zip(credits, ballots, strict=True)
            ]
        return found

    @staticmethod
    def _after(credit: tuple[int, int], ballot: int, drawn: int, liked: bool) -> tuple[int, int]:
        if ballot == 0 or (liked and ballot != drawn + 1):
            return credit[0] - 1, credit[1]
        if not liked and ballot == drawn + 1:
            return credit[0], credit[1] - 1
        return credit


def every_opinion(objects: int, rounds: int) -> Iterator[list[tuple[int, bool]]]:
    yield from map(list, product(product(range(objects), (True, False)), repeat=rounds))


def parameters_with(voting: VotingParameters, *, survivors: int, voters: int) -> RunParameters:
    return RunParameters(
        voting=voting,
        peers=12,
        voters=voters,
        delta=0.01,
        scale=1.0,
        survivors=survivors,
        threshold=0,
    )


@pytest.mark.parametrize(
    ("radius", "diversity", "survivors", "voters", "rounds", "seed"),
    [(0, 0, 3, 9, 4, 1), (1, 0, 2, 7, 4, 2), (0, 1, 2, 7, 4, 3), (1, 1, 2, 6, 4, 4)],
)
def test_no_sequence_tells_more_than_its_charge(
    radius: int, diversity: int, survivors: int, voters: int, rounds: int, seed: int
) -> None:
    voting = VotingParameters(objects=2, rounds=20, radius=radius, diversity=diversity)
    parameters = parameters_with(voting, survivors=survivors, voters=voters)
    claimed = Fraction(parameters.votes_epsilon)
    rng = np.random.default_rng(seed)
    told = Fraction(1)
    for silence in (1, 0):
        ballots = rng.integers(silence, 3, (rounds, voters)).tolist()
        for missing in range(2):
            absent = [[*row[:missing], 0, *row[missing + 1 :]] for row in ballots]
            there = Reference(parameters, ballots, floor=parameters.floor)
            gone = Reference(parameters, absent, floor=parameters.floor)
            for opinions in every_opinion(2, rounds):
                for p, q in zip(there.chances(opinions), gone.chances(opinions), strict=False):
                    told = max(told, p / q, q / p)
    assert told > 1
    assert not exceeds_exp(told, claimed)


Opinions = tuple[bool | None, ...]
"""What the client thought of each object of a list; None: passed over."""


class ListReference:
    """All sequences of lists and opinions, voter by voter, with both credits."""

    def __init__(self, parameters: RunParameters, ballots: list[list[int]]) -> None:
        self._parameters = parameters
        self._ballots = ballots

    def chances(self, shown: Sequence[tuple[tuple[int, ...], Opinions]]) -> list[Fraction]:
        """Return the chance of the first list, of the first two, as long as enough count."""
        parameters = self._parameters
        voting = parameters.voting
        rule = voting.rule(parameters.survivors)
        credits = [(2 * voting.diversity, 2 * voting.radius + 1)] * len(self._ballots[0])
        chance, found = Fraction(1), []
        for ballots, (drawn, opinions) in zip(self._ballots, shown, strict=True):
            counting = [
                (ballot, sum(credit))
                for ballot, credit in zip(ballots, credits, strict=True)
                if ballot and credit[1] > 0 and sum(credit) > 0
            ]
            if sum(worth for _, worth in counting) < parameters.floor:
                break
            votes = tuple(
                sum(ballot == place + 1 for ballot, _ in counting)
                for place in range(voting.objects)
            )
            chance *= law_of_lists(rule, votes, len(drawn))[drawn]
            found.append(chance)
            credits = [
                self._after(credit, ballot - 1, dict(zip(drawn, opinions, strict=True)))
                for credit, ballot in zip(credits, ballots, strict=True)
            ]
        return found

    @staticmethod
    def _after(
        credit: tuple[int, int], voted: int, opinions: dict[int, bool | None]
    ) -> tuple[int, int]:
        liked = next((place for place, opinion in opinions.items() if opinion), None)
        contradicted = voted in opinions and (
            opinions[voted] is False or (opinions[voted] is None and liked is None)
        )
        if contradicted:
            return credit[0], credit[1] - 1
        if voted < 0 or (liked is not None and voted != liked):
            return credit[0] - 1, credit[1]
        return credit


@pytest.mark.parametrize(("radius", "diversity", "seed"), [(0, 0, 1), (1, 0, 2), (0, 1, 3)])
def test_no_sequence_of_lists_tells_more_than_its_charge(
    radius: int, diversity: int, seed: int
) -> None:
    """Three objects, two of them shown, three rounds; every list and every kind of opinion."""
    voting = VotingParameters(objects=3, rounds=20, radius=radius, diversity=diversity, shown=2)
    parameters = parameters_with(voting, survivors=2, voters=7)
    kinds: list[Opinions] = [(True, True), (False, True), (None, True), (False, None)]
    answers = list(product(permutations(range(3), 2), kinds))
    rng = np.random.default_rng(seed)
    told = Fraction(1)
    for silence in (1, 0):
        ballots = rng.integers(silence, 4, (2, 7)).tolist()
        ballots.append(ballots[0])  # the same again: what the first took is seen
        absent = [[0, *row[1:]] for row in ballots]
        there, gone = ListReference(parameters, ballots), ListReference(parameters, absent)
        for shown in product(answers, repeat=3):
            for p, q in zip(there.chances(shown), gone.chances(shown), strict=False):
                told = max(told, p / q, q / p)
    assert told > 1
    assert not exceeds_exp(told, Fraction(parameters.votes_epsilon))


def test_the_worst_run_is_found_among_all_runs() -> None:
    # For so few voters every way of voting can be written down: ours votes for the first object.
    voting = VotingParameters(objects=2, rounds=20)
    parameters = parameters_with(voting, survivors=2, voters=4)
    worst = Fraction(1)
    rounds = [[1, *rest] for rest in product((0, 1, 2), repeat=3)]
    for first, second in product(rounds, repeat=2):
        # Three of the four must vote, ours among them, so two without him.
        there = Reference(parameters, [first, second], floor=3)
        gone = Reference(parameters, [[0, *first[1:]], [0, *second[1:]]], floor=2)
        for opinions in every_opinion(2, 2):
            for p, q in zip(there.chances(opinions), gone.chances(opinions), strict=False):
                worst = max(worst, p / q, q / p)
    assert worst == worst_run(voting=voting, least=3, voters=4)


def test_the_worst_run_grows_with_the_voters_and_stays_below_the_claim() -> None:
    voting = VotingParameters(objects=2, rounds=50)
    found = [worst_run(voting=voting, least=6, voters=voters) for voters in (6, 12, 24)]
    assert found == sorted(found)
    for ratio, voters in zip(found, (6, 12, 24), strict=True):
        claimed = draws_claimed(voting=voting, least=6, voters=voters)
        assert not exceeds_exp(ratio, Fraction(claimed))


def test_the_failing_mass_with_several_credits() -> None:
    parameters = fixed_parameters(
        voting=VotingParameters(objects=2, rounds=50, radius=1), peers=30, voters=40, delta=0.01
    )
    mass = failing_mass(parameters=parameters, voters=20, rounds=2)
    assert mass <= Fraction(1, 100)


def test_a_duel_of_equals_has_no_excess() -> None:
    parameters = fixed_parameters(
        voting=VotingParameters(objects=2, rounds=50), peers=34, voters=40, delta=0.01
    )
    ballots = np.array([1, 2] * 12, dtype=np.uint8)
    assert TwoWorlds(parameters=parameters, rounds=[(ballots, ballots)] * 2).excess() == 0
