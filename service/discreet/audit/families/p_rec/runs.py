"""One voter in all answers of a client's run: exact losses over every run of a small electorate.

A run is a closed loop: what the client is shown decides what the client thinks, which decides who
still counts. Two worlds differ in one voter, who is there with all votes or not at all.

Two examinations, both of the shipped draw and both in rationals.

`worst_run` plays all runs at once: every number of objects that a round may have, every way in
which any number of voters may vote or be silent, every list of objects drawn, every opinion of the
client, round after round, as long as enough votes count.
With D = R = 0 a voter has one credit, so all that matters of the past is how many are left, and the
worst product of ratios follows from the worst one of fewer voters.

`failing_mass` adds the test: every sequence of answers and of passed and failed tests for given
ballots, with the laws of both noises (at scale 1/ln 2, where they are rational), and the client who
makes most of it. What P(S) exceeds exp(epsilon) P'(S) by, over all S, is compared with delta.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.audit.claims import AuditRun, Claim, Finding, Method, PlantedFault, Scope
from discreet.audit.enclosures import exp_interval, float_above
from discreet.audit.mechanisms.votes import judged_ratio, law_of_draw, law_of_lists, spreads_of
from discreet.families.p_rec.credits import Ballots, Credits
from discreet.families.p_rec.run_parameters import RunParameters, VotingParameters, parameters_at
from discreet.privacy.truncated import TruncatedExponential

Masses = tuple[int, ...]

_HALF = 1 / math.log(2)
"""The scale at which noise z has the chance 2**-|z| / 3."""
_REACH = 64
"""How far the threshold's noise is enumerated; beyond it lies less than 2**-63 of its chance."""
_BEYOND = Fraction(1, 2**63)


@dataclass(frozen=True, slots=True)
class LosingCredit:
    """Who loses credit: as served, or with a fault."""

    silence_costs: bool = True
    one_like_counts: bool = True


SERVED = LosingCredit()


def worst_run(
    *,
    voting: VotingParameters,
    least: int,
    voters: int,
    losing: LosingCredit = SERVED,
) -> Fraction:
    """Return the largest ratio of chances that any run gives a voter away by.

    Runs start with at most `voters` voters and use votes while at least `least` count and vote.
    """
    rule = voting.rule(least - 1)
    best = {left: (Fraction(1), Fraction(1)) for left in range(least)}
    for left in range(least, voters + 1):
        up, down = best[left - 1]
        # If the silent lose their only credit, what follows depends on those who vote alone.
        for votes in range(left if losing.silence_costs else least, left + 1):
            for stays, (rises, falls) in steps(rule, votes, voting.shown, losing).items():
                # A round that takes nobody's credit leaks nothing.
                after = best[min(stays + left - votes, left - 1)]
                up, down = max(up, rises * after[0]), max(down, falls * after[1])
        best[left] = (up, down)
    return max(best[voters])


@lru_cache(maxsize=4096)
def steps(
    rule: TruncatedExponential, votes: int, shown: int = 1, losing: LosingCredit = SERVED
) -> dict[int, tuple[Fraction, Fraction]]:
    """Return the worst ratios, up and down, of a round with so many votes, ours among them.

    They are by how many of the voters are left if ours is: he voted for the one liked object, or
    nothing was liked and he did not vote for what was shown.
    """
    steps: dict[int, tuple[Fraction, Fraction]] = {}
    for objects in range(2, rule.objects + 1):
        for counts in spreads_of(votes, objects):
            for limit in range(1, min(shown, objects) + 1):
                full = law_of_lists(rule, counts, limit)
                for mine, count in enumerate(counts):
                    if not count:
                        continue
                    fewer = (*counts[:mine], count - 1, *counts[mine + 1 :])
                    less = law_of_lists(rule, fewer, limit)
                    for drawn, p in full.items():
                        q = less[drawn]
                        if p != q:
                            stays = _staying(counts, drawn, mine, losing)
                            was = steps.get(stays, (Fraction(1), Fraction(1)))
                            steps[stays] = (max(was[0], p / q), max(was[1], q / p))
    return steps


def _staying(counts: Sequence[int], drawn: Sequence[int], mine: int, losing: LosingCredit) -> int:
    """Return how many of those who voted keep their credit, at most, if our voter does."""
    shown = sum(counts[place] for place in drawn)
    if mine not in drawn:
        return sum(counts) - shown
    return counts[mine] if losing.one_like_counts else shown


def unanswered_run(*, voting: VotingParameters, least: int, voters: int, rounds: int) -> Fraction:
    """Return the worst ratio if a round without the client's opinion takes nobody's credit."""
    worst = Fraction(1)
    rule = voting.rule(least - 1)
    for counts in spreads_of(voters, voting.objects):
        full = law_of_draw(rule, counts)
        less = law_of_draw(rule, (counts[0] - 1, *counts[1:]))
        for p, q in zip(full, less, strict=True):
            worst = max(worst, p / q, q / p)
    return Fraction(worst**rounds)


def fixed_parameters(
    *, voting: VotingParameters, peers: int, voters: int, delta: float
) -> RunParameters:
    """Return parameters whose noise has rational chances."""
    return parameters_at(voting=voting, peers=peers, voters=voters, delta=delta, scale=_HALF)


def _at_least(distance: int) -> Fraction:
    """Return P(X >= distance) for X with chances 2**-|x| / 3."""
    if distance > 0:
        return Fraction(2, 3 * 2**distance)
    return 1 - Fraction(1, 3 * 2**-distance)


_PASS: dict[int, int] = {}
_UNIT = 3 * 2**400


def _passing(distance: int) -> int:
    """Return P(X >= distance) in units of 1 / (3 * 2**400), exactly for all distances here."""
    if distance not in _PASS:
        _PASS[distance] = int(_at_least(distance) * _UNIT)
    return _PASS[distance]


@dataclass(frozen=True, slots=True)
class _World:
    """One of two neighbours: what it has learned, and the chance of what has happened so far.

    `masses` are for each value of the threshold's noise, in units that all worlds share.
    """

    credits: Credits
    masses: Masses
    drawn: Fraction


class TwoWorlds:
    """Two neighbours, played through every sequence of answers and tests."""

    def __init__(
        self, *, parameters: RunParameters, rounds: Sequence[tuple[Ballots, Ballots]]
    ) -> None:
        self._parameters = parameters
        self._rounds = rounds
        self._growth = exp_interval(Fraction(parameters.event.epsilon)).low

    def excess(self) -> Fraction:
        """Return the largest P(S) - exp(epsilon) P'(S), the client doing his worst."""
        voting = self._parameters.voting
        start = tuple(2 ** (_REACH - abs(noise)) for noise in range(-_REACH, _REACH + 1))
        fresh = [
            _World(Credits(diversity=voting.diversity, radius=voting.radius), start, Fraction(1))
            for _ in range(2)
        ]
        return self._after(0, fresh[0], fresh[1])

    def _leaf(self, first: _World, second: _World, at: int) -> Fraction:
        unit = Fraction(1, 3 * 2**_REACH * _UNIT**at)
        gained = first.drawn * (sum(first.masses) * unit + _BEYOND)
        return max(Fraction(0), gained - self._growth * second.drawn * sum(second.masses) * unit)

    def _after(self, at: int, first: _World, second: _World) -> Fraction:
        if at == len(self._rounds):
            return self._leaf(first, second, at)
        objects = self._parameters.voting.objects
        stopped, passed, laws = [], [], []
        for world, ballots in zip((first, second), self._rounds[at], strict=True):
            tally = world.credits.tally(ballots=ballots, objects=objects)
            chances = self._chances(tally.credit)
            passed.append(tuple(m * c for m, c in zip(world.masses, chances, strict=True)))
            stopped.append(
                tuple(m * (_UNIT - c) for m, c in zip(world.masses, chances, strict=True))
            )
            enough = sum(tally.votes) >= self._parameters.survivors
            rule = self._parameters.voting.rule(self._parameters.survivors)
            # Below the floor the test never passes; any law will do for what does not happen.
            laws.append(
                law_of_draw(rule, tuple(map(int, tally.votes)))
                if enough
                else (Fraction(1, objects),) * objects
            )
        ended = self._leaf(
            replace(first, masses=stopped[0]), replace(second, masses=stopped[1]), at + 1
        )
        if not any(passed[0]):
            return ended
        for drawn in range(objects):
            ended += max(
                self._after(
                    at + 1,
                    self._learned(first, at, 0, passed[0], laws[0][drawn], drawn, liked),
                    self._learned(second, at, 1, passed[1], laws[1][drawn], drawn, liked),
                )
                for liked in (True, False)
            )
        return ended

    def _learned(
        self,
        world: _World,
        at: int,
        side: int,
        masses: Masses,
        chance: Fraction,
        drawn: int,
        liked: bool,
    ) -> _World:
        credits = world.credits.copy()
        if liked:
            credits.update(ballots=self._rounds[at][side], liked=drawn)
        else:
            credits.update(ballots=self._rounds[at][side], disliked=[drawn])
        return _World(credits, masses, world.drawn * chance)

    def _chances(self, credit: int) -> tuple[int, ...]:
        if credit < self._parameters.floor:
            return (0,) * (2 * _REACH + 1)
        start = self._parameters.threshold - credit
        return tuple(_passing(start + noise) for noise in range(-_REACH, _REACH + 1))


def small_ballots(*, voters: int, rounds: int) -> list[list[Ballots]]:
    """Return ways of voting for two objects that take credit slowly, quickly, and in silence."""
    numbers = np.arange(voters)
    slowly = [np.where(numbers % (3 + at) == 1, 2, 1) for at in range(rounds)]
    quickly = [1 + (numbers >> at) % 2 for at in range(rounds)]
    silently = [np.where(numbers < voters - 2 * at, 1 + numbers % 2, 0) for at in range(rounds)]
    return [[ballots.astype(np.uint8) for ballots in way] for way in (slowly, quickly, silently)]


def failing_mass(*, parameters: RunParameters, voters: int, rounds: int) -> Fraction:
    """Return the largest excess over a few ways of voting, three voters missing, both ways."""
    worst = Fraction(0)
    for way in small_ballots(voters=voters, rounds=rounds):
        for missing in (0, 1, voters - 1):
            less = [np.where(np.arange(voters) == missing, 0, ballots) for ballots in way]
            without = [ballots.astype(np.uint8) for ballots in less]
            for pairs in (zip(way, without, strict=True), zip(without, way, strict=True)):
                worst = max(worst, TwoWorlds(parameters=parameters, rounds=list(pairs)).excess())
    return worst


def draws_claimed(*, voting: VotingParameters, least: int, voters: int) -> float:
    """Return what the draws of a run are charged if `least` votes count in each round."""
    return RunParameters(
        voting=voting,
        peers=6 * voting.objects,
        voters=voters,
        delta=0.01,
        scale=1.0,
        survivors=least - 1,
        threshold=least * voting.credit,
    ).votes_epsilon


def _examine_runs(
    voting: VotingParameters, least: int, voters: int
) -> Callable[[AuditRun], Finding]:
    def examine(run: AuditRun) -> Finding:
        most = run.size(quick=max(least + 4, voters // 2), full=voters)
        worst = worst_run(voting=voting, least=least, voters=most)
        return judged_ratio(worst, draws_claimed(voting=voting, least=least, voters=most))

    return examine


_TWO = VotingParameters(objects=2, rounds=50)
_THREE = VotingParameters(objects=3, rounds=100)
_FOUR = VotingParameters(objects=4, rounds=100)


def _judged_delta(parameters: RunParameters, *, voters: int, rounds: int) -> Finding:
    excess = failing_mass(parameters=parameters, voters=voters, rounds=rounds)
    return Finding(
        parameters.delta, float_above(excess), holds=excess <= Fraction(parameters.delta)
    )


def _tested() -> RunParameters:
    return fixed_parameters(voting=_TWO, peers=34, voters=40, delta=0.01)


def claims() -> Iterator[Claim]:
    """Yield the claims of p-REC as served."""
    name = "p-rec, every run"
    person = Scope.PERSON
    yield Claim(f"{name} of 2 objects: epsilon", Method.EXACT, _examine_runs(_TWO, 12, 48), person)
    yield Claim(
        f"{name} of 2 or 3 objects: epsilon", Method.EXACT, _examine_runs(_THREE, 18, 30), person
    )
    yield Claim(
        f"{name} of 2 or 3 objects, lists of up to 2: epsilon",
        Method.EXACT,
        _examine_runs(replace(_THREE, shown=2), 18, 30),
        person,
    )
    yield Claim(
        f"{name} of 2 to 4 objects, lists of up to 3: epsilon",
        Method.EXACT,
        _examine_runs(replace(_FOUR, shown=3), 8, 16),
        person,
    )
    yield Claim(
        "p-rec, every sequence of answers and tests: delta",
        Method.EXACT,
        lambda run: _judged_delta(_tested(), voters=24, rounds=run.size(quick=2, full=3)),
        person,
    )


def _examine_free_silence() -> Finding:
    worst = worst_run(voting=_TWO, least=4, voters=36, losing=LosingCredit(silence_costs=False))
    return judged_ratio(worst, draws_claimed(voting=_TWO, least=4, voters=36))


def _examine_every_like() -> Finding:
    voting = replace(_TWO, shown=2)
    worst = worst_run(
        voting=voting, least=12, voters=48, losing=LosingCredit(one_like_counts=False)
    )
    return judged_ratio(worst, draws_claimed(voting=voting, least=12, voters=48))


def _examine_unanswered() -> Finding:
    worst = unanswered_run(voting=_TWO, least=12, voters=24, rounds=200)
    return judged_ratio(worst, draws_claimed(voting=_TWO, least=12, voters=24))


def _examine_bare_threshold() -> Finding:
    parameters = _tested()
    return _judged_delta(replace(parameters, threshold=parameters.floor), voters=24, rounds=2)


def faults() -> Iterator[PlantedFault]:
    """Yield mistakes that can be made with p-REC's draw, which itself is right."""
    for name, examine in {
        "silent voters keep their credit": _examine_free_silence,
        "unanswered rounds take no credit": _examine_unanswered,
        "every liked object of a list spares its voters": _examine_every_like,
        "a threshold without its margin": _examine_bare_threshold,
    }.items():

        def look(_: AuditRun, examine: Callable[[], Finding] = examine) -> Finding:
            return examine()

        yield PlantedFault(f"p-rec, every run: {name}", look, Scope.PERSON)
