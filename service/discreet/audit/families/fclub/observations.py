"""What one observation, or all of one person, moves in federated clusters.

Distances are attacked by local search; the delta of calibrated noise is summed term by term. And a
small local server lives through a record of observations, under the reading `observation`, and
through every neighbouring record that replaces one of them by an extreme one: constant noise tells
which numbers it was asked to hide and at which scales, so the loss over *all* updates of its life
is computed. Given what the global server has told (the same in both lives: it is public), it must
be that of a single update.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np
from scipy.optimize import minimize

from discreet.audit.claims import AuditRun, Claim, Finding, Method, PlantedFault
from discreet.audit.enclosures import float_above
from discreet.audit.mechanisms.calibrations import summed_delta
from discreet.audit.prices import rho_charged
from discreet.audit.scripted_noise import ConstantNoise
from discreet.families.fclub.learning import FederatedClusters
from discreet.families.fclub.person_noise import COUNT_WEIGHT, PersonNoise
from discreet.families.fclub.sums import STEPS, Floats, NoisyUpdate, Privatizer
from discreet.state.stores import Vector

_USERS = 3
_GROUPS = {0: 0, 1: 0, 2: 1}
"""What the global server told: the first two users are alike."""

_APART = Fraction(10**6)
"""The loss of lives that can be told apart without looking into an update."""

Groups = Callable[[Sequence[Vector]], dict[int, int]]
"""From the users' exact sums to their groups. An honest server does not look at the sums."""

Observe = Callable[[Floats, float], Vector]


@dataclass(frozen=True, slots=True)
class Observation:
    """An item that was shown to a user, and its reward."""

    user: int
    x: tuple[float, float]
    reward: float


def _rule() -> FederatedClusters:
    return FederatedClusters(dimensions=2, epsilon=1.0, delta=1e-6, first_update=4)


def _record() -> tuple[Observation, ...]:
    """Return 36 observations of three users, their items all around the circle."""
    seen = []
    for step in range(36):
        angle = step * math.sqrt(2)
        x = (math.cos(angle), math.sin(angle))
        seen.append(Observation(step % _USERS, x, float(step % 4 < 2)))
    return tuple(seen)


def _replacements() -> tuple[tuple[tuple[float, float], float], ...]:
    """Return observations as unlike one another as can be."""
    angles = [turn * math.pi / 4 for turn in range(8)]
    return tuple(((math.cos(a), math.sin(a)), y) for a, y in product(angles, (0.0, 1.0)))


def updates_of(
    record: Sequence[Observation], groups: Groups, constant: ConstantNoise
) -> list[NoisyUpdate]:
    """Return the updates of a local server's whole life."""
    rule = _rule()
    privatizer = rule.privatizer
    sums = [np.zeros(privatizer.fields, dtype=np.int64) for _ in range(_USERS)]
    sent = [each.copy() for each in sums]
    updates = []
    for seen in record:
        sums[seen.user] += privatizer.observation(x=seen.x, reward=seen.reward)
        due = rule.due(
            counts=[each[0] for each in sums], sent=[each[0] for each in sent], groups=groups(sums)
        )
        for members in due:
            pending = sum((sums[each] - sent[each] for each in members), np.zeros_like(sums[0]))
            updates.append(privatizer.write(members=members, pending=pending, noise=constant).value)
            for each in members:
                sent[each] = sums[each].copy()
    return updates


def public_groups(_: Sequence[Vector]) -> dict[int, int]:
    """Return the groups that the global server told."""
    return _GROUPS


def _groups_by_taste(sums: Sequence[Vector]) -> dict[int, int]:
    """Group users by the direction of their exact moments, as a local clustering would."""
    return {user: int(each[-2] > 0) for user, each in enumerate(sums)}


def examine_life(groups: Groups, *, every: int) -> Finding:
    """Compare the exact zCDP loss over all updates with what one update is charged."""
    record = _record()
    claimed = rho_charged(_rule().privatizer.event)
    constant = ConstantNoise()
    before = updates_of(record, groups, constant)
    worst = Fraction(0)
    for place in range(0, len(record), every):
        for x, reward in _replacements():
            other = replace(record[place], x=x, reward=reward)
            changed = ConstantNoise()
            after = updates_of((*record[:place], other, *record[place + 1 :]), groups, changed)
            loss = _loss(before, after, constant.gaussian, changed.gaussian)
            worst = max(worst, _APART if loss is None else loss)
    return Finding(float(claimed), float_above(worst), holds=worst <= claimed)


def _loss(
    one: Sequence[NoisyUpdate],
    other: Sequence[NoisyUpdate],
    scales: Sequence[float],
    others: Sequence[float],
) -> Fraction | None:
    """Return rho between two lives; None if even the envelopes tell them apart."""
    envelopes = [[(each.members, each.count) for each in life] for life in (one, other)]
    if envelopes[0] != envelopes[1] or list(scales) != list(others):
        return None
    total, at = Fraction(0), 0
    for ours, theirs in zip(one, other, strict=True):
        for step in (ours.steps[1:] - theirs.steps[1:]).tolist():
            total += Fraction(step) ** 2 / (2 * Fraction(scales[at]) ** 2)
            at += 1
    return total


def farthest(observe: Observe, *, size: int, starts: int, absent: bool = False) -> float:
    """Return how far two observations can be apart, or one from none, as a search finds it."""

    def vector(raw: Floats) -> Vector:
        x = raw[:size] / max(float(np.linalg.norm(raw[:size])), 1e-9)
        return observe(x, (1 + math.sin(float(raw[size]))) / 2)

    def minus(raw: Floats) -> float:
        apart = vector(raw[: size + 1]).astype(np.float64)
        if not absent:
            apart = apart - vector(raw[size + 1 :])
        return -float(apart @ apart) / STEPS**2

    best = 0.0
    for start in range(starts):
        raw = 2 * np.sin(np.arange(1, 2 * size + 3) * math.sqrt(2 + start))
        # The grid makes the distance a staircase, on which gradients see nothing.
        best = max(best, -float(minimize(minus, raw, method="Nelder-Mead").fun))
    return math.sqrt(best)


def examine_observation(observe: Observe, *, claimed: float, starts: int) -> Finding:
    """Look for two observations further apart than claimed, among items of 2 and 3 features."""
    found = max(farthest(observe, size=size, starts=starts) for size in (2, 3))
    return Finding(claimed, found, holds=found <= claimed)


def _observe(x: Floats, reward: float) -> Vector:
    return Privatizer(dimensions=len(x)).observation(x=x, reward=reward)


def _observe_longer(x: Floats, reward: float) -> Vector:
    """Forget to check norms: items twice as long."""
    steps = _observe(x, reward)
    half = len(x) * (len(x) + 1) // 2
    return np.concatenate([steps[:1], 4 * steps[1 : 1 + half], 2 * steps[1 + half :]])


def _as_person(x: Floats, reward: float, *, count: float = COUNT_WEIGHT) -> Vector:
    """Return what a person with this observation alone puts into a release."""
    steps = _observe(x, reward)
    return np.concatenate([[round(count * STEPS)], steps[1:]])


def examine_person(observe: Observe, *, starts: int) -> Finding:
    """Look for a person who moves a release further than its noise covers.

    Against another person's worth of data in the same slot, in another slot, and against none,
    which may cost half as much and no more (`closed_loop.coupled` says why).
    """
    noise = PersonNoise(dimensions=2, contribution=1, epsilon=1.0, delta=1e-6)
    replaced = farthest(observe, size=2, starts=starts)
    alone = farthest(observe, size=2, starts=starts, absent=True)
    found = max(replaced, math.sqrt(2) * alone)
    return Finding(noise.sensitivity, found, holds=found <= noise.sensitivity)


def examine_calibration(multiplier: float, *, epsilon: float, delta: float) -> Finding:
    """Compare the delta of the noise, summed term by term, with the promise."""
    measured = summed_delta(multiplier=multiplier, epsilon=epsilon)
    return Finding(delta, measured, holds=measured <= delta)


def claims() -> Iterator[Claim]:
    """Yield the claims about one observation, and about one person's worth of them."""
    for delta in (1e-6, 0.1):

        def update(_: AuditRun, delta: float = delta) -> Finding:
            rule = Privatizer(dimensions=10, epsilon=1.0, delta=delta)
            multiplier = rule.gram_scale / rule.sensitivity
            return examine_calibration(multiplier, epsilon=1.0, delta=delta)

        def person(_: AuditRun, delta: float = delta) -> Finding:
            rule = PersonNoise(dimensions=10, contribution=10, epsilon=1.0, delta=delta)
            multiplier = rule.deviation / rule.sensitivity
            return examine_calibration(multiplier, epsilon=1.0, delta=delta)

        yield Claim(f"fclub, an update at (1, {delta:g}): delta", Method.EXACT, update)
        yield Claim(f"fclub, a person's part at (1, {delta:g}): delta", Method.EXACT, person)
    yield Claim(
        "fclub, an observation: sensitivity",
        Method.LOWER_BOUND,
        lambda run: examine_observation(
            _observe,
            claimed=Privatizer(dimensions=2).sensitivity,
            starts=run.size(quick=3, full=12),
        ),
    )
    yield Claim(
        "fclub, a person's part: sensitivity",
        Method.LOWER_BOUND,
        lambda run: examine_person(_as_person, starts=run.size(quick=3, full=12)),
    )
    yield Claim(
        "fclub, all updates of a server: rho of one observation",
        Method.EXACT,
        lambda run: examine_life(public_groups, every=run.size(quick=5, full=1)),
    )


def _sent_again(_: AuditRun) -> Finding:
    """Updates whose observations are sent again at the next of two phases, charged once."""
    once = Privatizer(dimensions=10, epsilon=1.0, delta=1e-6)
    multiplier = once.gram_scale / (once.sensitivity * math.sqrt(2))
    return examine_calibration(multiplier, epsilon=1.0, delta=1e-6)


def faults() -> Iterator[PlantedFault]:
    """Yield mistakes that a federation can make with a mechanism that is right."""
    yield PlantedFault(
        "fclub: updates grouped by clusters found in raw data",
        lambda _: examine_life(_groups_by_taste, every=5),
    )
    yield PlantedFault("fclub: observations sent again at every phase", _sent_again)
    yield PlantedFault(
        "fclub: items of any length",
        lambda _: examine_observation(
            _observe_longer, claimed=Privatizer(dimensions=2).sensitivity, starts=2
        ),
    )
    yield PlantedFault(
        "fclub: a person's count that costs as much as all the rest",
        lambda _: examine_person(lambda x, reward: _as_person(x, reward, count=1.3), starts=2),
    )
