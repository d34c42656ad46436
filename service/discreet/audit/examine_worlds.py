"""Inputs that a mechanism must not tell apart, and the examinations that compare them.

A world is one input to a mechanism, as a function from noise to what the mechanism released. All
examinations of choices take worlds and a neighbouring relation; they read the event off the
release itself and ask the accountant what it costs, so what is compared with the loss is what the
ledger would debit, not what somebody wrote beside the test.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from discreet.audit.claims import AuditRun, Claim, Finding, Method
from discreet.audit.examine_exact import Distribution, Pair, judge_pure, judge_zcdp
from discreet.audit.examine_samples import entropy_evidence, judge_fit, judge_lower_bound
from discreet.audit.prices import epsilon_charged, rho_charged
from discreet.audit.scripted_noise import distribution
from discreet.privacy.events import PrivacyEvent, Released
from discreet.privacy.noise import NoiseSource

World = Callable[[NoiseSource], Released[Any]]
Worlds = Mapping[Hashable, World]
Neighbours = Callable[[Hashable, Hashable], bool]
Enumerated = tuple[frozenset[PrivacyEvent], list[Pair]]


def always(_first: Hashable, _second: Hashable) -> bool:
    """Any two inputs are neighbours."""
    return True


def _outcome(released: Released[Any]) -> Hashable:
    outcome: Hashable = released.value
    return outcome


def enumerate_pairs(worlds: Worlds, neighbours: Neighbours = always) -> Enumerated:
    """Return the events of these worlds and the exact distributions of all neighbouring pairs."""
    found: dict[Hashable, Distribution] = {}
    events: set[PrivacyEvent] = set()
    for key, world in worlds.items():

        def draw(noise: NoiseSource, world: World = world) -> Hashable:
            released = world(noise)
            events.add(released.event)
            return _outcome(released)

        found[key] = distribution(draw)
    keys = list(found)
    pairs = [
        (found[one], found[other])
        for place, one in enumerate(keys)
        for other in keys[place + 1 :]
        if neighbours(one, other)
    ]
    return frozenset(events), pairs


def _judge(
    enumerated: Enumerated,
    charged: Callable[[PrivacyEvent], Fraction],
    judge: Callable[..., Finding],
) -> Finding:
    events, pairs = enumerated
    claimed = min(charged(event) for event in events)
    if len(events) > 1:
        # A price that depends on the data tells something about them, however high it is.
        return Finding(float(claimed), math.inf, holds=False)
    return judge(pairs=pairs, claimed=claimed)


def examine_epsilon(enumerated: Enumerated) -> Finding:
    """Compare the exact largest loss with the epsilon that is debited."""
    return _judge(enumerated, epsilon_charged, judge_pure)


def examine_rho(enumerated: Enumerated) -> Finding:
    """Compare exact Rényi divergences of every order with the rho that is debited."""
    return _judge(enumerated, rho_charged, judge_zcdp)


def exact_claims(
    name: str, worlds: Callable[[], Worlds], neighbours: Neighbours = always
) -> Iterator[Claim]:
    """Yield the claims about both columns of the ledger; the worlds are enumerated once."""

    @cache
    def once() -> Enumerated:
        return enumerate_pairs(worlds(), neighbours)

    yield Claim(f"{name}: epsilon", Method.EXACT, lambda _: examine_epsilon(once()))
    yield Claim(f"{name}: rho", Method.EXACT, lambda _: examine_rho(once()))


def examine_frequencies(run: AuditRun, world: World, *, size: int) -> Finding:
    """Compare sampled outcomes with the exact distribution that scripted noise has shown."""
    exact = distribution(lambda noise: _outcome(world(noise)))
    place = {outcome: index for index, outcome in enumerate(exact)}
    counts = np.zeros(len(exact) + 1, dtype=np.int64)
    for _ in range(size):
        counts[place.get(world(run.noise).value, len(exact))] += 1
    probabilities = np.array([*(float(share) for share in exact.values()), 0.0])
    return judge_fit([entropy_evidence(counts, probabilities)], error=run.allowance.share())


def examine_choice_by_sampling(run: AuditRun, first: World, second: World, *, size: int) -> Finding:
    """Bound epsilon from below by sampling two neighbouring worlds whose outcomes are numbers."""
    claimed = float(epsilon_charged(first(run.noise).event))
    samples = [
        np.array([[world(run.noise).value] for _ in range(size)], dtype=np.float64)
        for world in (first, second)
    ]
    return judge_lower_bound(*samples, claimed=claimed, error=run.allowance.share())
