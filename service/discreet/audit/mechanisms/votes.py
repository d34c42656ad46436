"""The claim of the p-REC rule: one vote more or less, every way in which the others may stand."""

import math
from collections.abc import Hashable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import Protocol

import numpy as np
import numpy.typing as npt

from discreet.audit.claims import AuditRun, Claim, Finding, Method, PlantedFault
from discreet.audit.enclosures import exceeds_exp, float_above, log_interval
from discreet.audit.examine_exact import from_weights
from discreet.audit.examine_worlds import (
    Enumerated,
    World,
    Worlds,
    exact_claims,
    examine_epsilon,
)
from discreet.privacy.events import Released
from discreet.privacy.noise import NoiseSource
from discreet.privacy.truncated import TruncatedExponential

Votes = tuple[int, ...]


class VoteChoice(Protocol):
    """A mechanism that chooses by votes, as `TruncatedExponential` does."""

    def choose(self, *, votes: npt.NDArray[np.integer], noise: NoiseSource) -> Released[int]: ...


def spreads(*, objects: int, survivors: int) -> Iterator[Votes]:
    """Yield every way to spread `survivors` votes, or one more, over the objects."""
    for votes in product(range(survivors + 2), repeat=objects):
        if survivors <= sum(votes) <= survivors + 1:
            yield votes


def vote_worlds(mechanism: VoteChoice, *, objects: int, survivors: int) -> Worlds:
    """Return a world for every way in which the votes may stand."""

    def world(votes: Votes) -> World:
        counts = np.array(votes)
        return lambda noise: mechanism.choose(votes=counts, noise=noise)

    return {votes: world(votes) for votes in spreads(objects=objects, survivors=survivors)}


def one_vote_apart(first: Hashable, second: Hashable) -> bool:
    """Tell whether one input has one vote more than the other, all else equal."""
    assert isinstance(first, tuple)
    assert isinstance(second, tuple)
    return bool(sum(abs(a - b) for a, b in zip(first, second, strict=True)) == 1)


def weighed_pairs(mechanism: TruncatedExponential) -> Enumerated:
    """Enumerate by the integer weights instead of by scripted draws, which take long here.

    The draw's own bias is below 2**-62 of the loss, and the event's epsilon has 2**-40 to spare;
    that the draw follows the weights is among the claims that scripted noise examines.
    """
    found = {
        votes: from_weights(mechanism.weights(np.array(votes)))
        for votes in spreads(objects=mechanism.objects, survivors=mechanism.survivors)
    }
    pairs = [
        (found[votes], found[more]) for votes in found for more in _one_more(votes) if more in found
    ]
    return frozenset({mechanism.event}), pairs


@lru_cache(maxsize=4096)
def law_of_draw(rule: TruncatedExponential, votes: Votes) -> tuple[Fraction, ...]:
    """Return the chance of every object."""
    weights = [int(weight) for weight in rule.weights(np.array(votes))]
    total = sum(weights)
    return tuple(Fraction(weight, total) for weight in weights)


@lru_cache(maxsize=16_384)
def law_of_lists(rule: TruncatedExponential, votes: Votes, limit: int) -> dict[Votes, Fraction]:
    """Return the chance of every list of so many objects."""
    if limit == 1:
        return {(drawn,): chance for drawn, chance in enumerate(law_of_draw(rule, votes))}
    law = {}
    for drawn, chance in law_of_lists(rule, votes, limit - 1).items():
        weights = rule.further_weights(np.array(votes), drawn=drawn)
        total = sum(weights.values())
        for further, weight in weights.items():
            law[*drawn, further] = chance * Fraction(weight, total)
    return law


def spreads_of(votes: int, objects: int) -> Iterator[Votes]:
    """Yield every way to spread votes over objects, the most voted ones first."""
    if objects == 1:
        yield (votes,)
        return
    for first in range(votes, -1, -1):
        for rest in spreads_of(votes - first, objects - 1):
            if rest[0] <= first:
                yield (first, *rest)


def worst_list(rule: TruncatedExponential, limit: int) -> Fraction:
    """Return the largest ratio of a list's chances, for every number of objects and every vote."""
    worst = Fraction(1)
    for objects in range(2, rule.objects + 1):
        for votes in spreads_of(rule.survivors + 1, objects):
            full = law_of_lists(rule, votes, min(limit, objects))
            for mine in range(objects):
                if votes[mine]:
                    fewer = (*votes[:mine], votes[mine] - 1, *votes[mine + 1 :])
                    less = law_of_lists(rule, fewer, min(limit, objects))
                    worst = max(worst, *(max(p / less[at], less[at] / p) for at, p in full.items()))
    return worst


def judged_ratio(worst: Fraction, claimed: float) -> Finding:
    """Compare a worst ratio of chances with an epsilon."""
    holds = not exceeds_exp(worst, Fraction(claimed))
    return Finding(claimed, float_above(log_interval(worst).high), holds)


def _one_more(votes: Votes) -> Iterator[Votes]:
    for place in range(len(votes)):
        yield (*votes[:place], votes[place] + 1, *votes[place + 1 :])


_FIVE = TruncatedExponential(
    objects=5, sharpness=10 * math.log(1_000), uniform_share=0.5, survivors=8
)
"""So much chance that the first draw reveals little: what further ones reveal is seen."""


def claims() -> Iterator[Claim]:
    """The truncated-and-shifted exponential, for few voters, where one vote weighs most."""
    small = TruncatedExponential(objects=2, sharpness=6.0, uniform_share=0.1, survivors=8)
    yield from exact_claims(
        "truncated choice of 2 objects by 8 votes",
        partial(vote_worlds, small, objects=2, survivors=8),
        one_vote_apart,
    )
    for objects, survivors, sharpness, uniform_share in (
        (3, 18, 14.0, 0.05),
        (4, 12, 8.0, 0.25),
    ):
        mechanism = TruncatedExponential(
            objects=objects,
            sharpness=sharpness,
            uniform_share=uniform_share,
            survivors=survivors,
        )
        name = f"truncated choice of {objects} objects by {survivors} votes, by its weights"

        def epsilon(_: AuditRun, mechanism: TruncatedExponential = mechanism) -> Finding:
            return examine_epsilon(weighed_pairs(mechanism))

        yield Claim(f"{name}: epsilon", Method.EXACT, epsilon)
    for limit in (2, 4):

        def several(_: AuditRun, limit: int = limit) -> Finding:
            charged = replace(_FIVE.event, shown=limit).epsilon
            return judged_ratio(worst_list(_FIVE, limit), charged)

        name = f"truncated choice of {limit} of up to 5 objects by 8 votes"
        yield Claim(f"{name}: epsilon", Method.EXACT, several)


def faults() -> Iterator[PlantedFault]:
    """Yield a mistake in what a list of objects is charged."""
    yield PlantedFault(
        "truncated choice of 4 objects charged as one draw",
        lambda _: judged_ratio(worst_list(_FIVE, 4), _FIVE.event.epsilon),
    )
