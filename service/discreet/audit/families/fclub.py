"""The claims of federated clusters as served, for the audit.

Exact: a small local server lives through a record of observations, and through every neighbouring
record that replaces one of them by an extreme one. Noise that hums tells which numbers it was asked
to hide and at which scales, so the loss over *all* letters of its life is computed, not sampled.
Given what the global server has told (the same in both lives: it is public), the loss must be that
of a single letter. Sensitivity is attacked by local search; calibration is summed term by term.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
from scipy.optimize import minimize

from discreet.audit.claims import AuditRun, Claim, Finding, Method, PlantedFault
from discreet.audit.enclosures import float_above
from discreet.audit.mechanisms.calibrations import summed_delta
from discreet.audit.prices import rho_charged
from discreet.audit.scripted_noise import ConstantNoise
from discreet.families.fclub.clusters import FederatedClusters
from discreet.families.fclub.letters import STEPS, Floats, Letter, Privatizer
from discreet.families.p_dap.contract import Vector

_USERS = 3
_GROUPS = {0: 0, 1: 0, 2: 1}
"""What the global server told: the first two users are alike."""

_APART = Fraction(10**6)
"""The loss of lives that can be told apart without looking into a letter."""

Groups = Callable[[Sequence[Vector]], dict[int, int]]
"""From the users' exact sums to their groups. An honest server does not look at the sums."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One observation."""

    user: int
    x: tuple[float, float]
    reward: float


def _rule() -> FederatedClusters:
    return FederatedClusters(dimensions=2, epsilon=1.0, delta=1e-6, first_letter=4)


def _record() -> tuple[Seen, ...]:
    """Return 36 observations of three users, their items all around the circle."""
    seen = []
    for step in range(36):
        angle = step * math.sqrt(2)
        x = (math.cos(angle), math.sin(angle))
        seen.append(Seen(step % _USERS, x, float(step % 4 < 2)))
    return tuple(seen)


def _replacements() -> tuple[tuple[tuple[float, float], float], ...]:
    """Return observations as unlike one another as can be."""
    angles = [turn * math.pi / 4 for turn in range(8)]
    return tuple(((math.cos(a), math.sin(a)), y) for a, y in product(angles, (0.0, 1.0)))


def live(record: Sequence[Seen], groups: Groups, constant: ConstantNoise) -> list[Letter]:
    """Return the letters of a local server's whole life."""
    rule = _rule()
    privatizer = rule.privatizer
    sums = [np.zeros(privatizer.fields, dtype=np.int64) for _ in range(_USERS)]
    sent = [each.copy() for each in sums]
    letters = []
    for seen in record:
        sums[seen.user] += privatizer.observation(x=seen.x, reward=seen.reward)
        due = rule.due(
            counts=[each[0] for each in sums], sent=[each[0] for each in sent], groups=groups(sums)
        )
        for members in due:
            pending = sum((sums[each] - sent[each] for each in members), np.zeros_like(sums[0]))
            letters.append(privatizer.write(members=members, pending=pending, noise=constant).value)
            for each in members:
                sent[each] = sums[each].copy()
    return letters


def _public(_: Sequence[Vector]) -> dict[int, int]:
    return _GROUPS


def _by_taste(sums: Sequence[Vector]) -> dict[int, int]:
    """Group users by the direction of their exact moments, as a local clustering would."""
    return {user: int(each[-2] > 0) for user, each in enumerate(sums)}


def examine_life(groups: Groups, *, every: int) -> Finding:
    """Compare the exact zCDP loss over all letters with what one letter is charged."""
    record = _record()
    claimed = rho_charged(_rule().privatizer.event)
    constant = ConstantNoise()
    before = live(record, groups, constant)
    scales = constant.gaussian
    worst = Fraction(0)
    for place in range(0, len(record), every):
        for x, reward in _replacements():
            other = replace(record[place], x=x, reward=reward)
            changed = ConstantNoise()
            after = live((*record[:place], other, *record[place + 1 :]), groups, changed)
            loss = _loss(before, after, scales, changed.gaussian)
            worst = max(worst, _APART if loss is None else loss)
    return Finding(float(claimed), float_above(worst), holds=worst <= claimed)


def _loss(
    one: Sequence[Letter], other: Sequence[Letter], scales: Sequence[float], others: Sequence[float]
) -> Fraction | None:
    """Return rho between two lives; None if even the envelopes tell them apart."""
    if [each.members for each in one] != [each.members for each in other]:
        return None
    if [each.count for each in one] != [each.count for each in other] or list(scales) != list(
        others
    ):
        return None
    total, at = Fraction(0), 0
    for ours, theirs in zip(one, other, strict=True):
        for step in (ours.steps[1:] - theirs.steps[1:]).tolist():
            total += Fraction(step) ** 2 / (2 * Fraction(scales[at]) ** 2)
            at += 1
    return total


def examine_observation(
    observe: Callable[[Floats, float], Vector], *, claimed: float, starts: int
) -> Finding:
    """Look for two observations further apart than claimed, among items of 2 and 3 features."""
    best = 0.0
    for size in (2, 3):

        def vector(raw: Floats, size: int = size) -> Vector:
            x = raw[:size] / max(float(np.linalg.norm(raw[:size])), 1e-9)
            return observe(x, (1 + math.sin(float(raw[size]))) / 2)

        def minus(raw: Floats, size: int = size) -> float:
            apart = (vector(raw[: size + 1]) - vector(raw[size + 1 :])) / STEPS
            return -float(apart @ apart)

        for start in range(starts):
            raw = 2 * np.sin(np.arange(1, 2 * size + 3) * math.sqrt(2 + start))
            # The grid makes the distance a staircase, on which gradients see nothing.
            best = max(best, -float(minimize(minus, raw, method="Nelder-Mead").fun))
    return Finding(claimed, math.sqrt(best), holds=math.sqrt(best) <= claimed)


def _observe(x: Floats, reward: float) -> Vector:
    return Privatizer(dimensions=len(x)).observation(x=x, reward=reward)


def _observe_longer(x: Floats, reward: float) -> Vector:
    """Forget to check norms: items twice as long."""
    steps = Privatizer(dimensions=len(x)).observation(x=x, reward=reward)
    half = len(x) * (len(x) + 1) // 2
    return np.concatenate([steps[:1], 4 * steps[1 : 1 + half], 2 * steps[1 + half :]])


def examine_calibration(privatizer: Privatizer, *, epsilon: float, delta: float) -> Finding:
    """Compare the delta of a letter's noise, summed term by term, with the promise."""
    measured = summed_delta(
        multiplier=privatizer.gram_scale / privatizer.sensitivity, epsilon=epsilon
    )
    return Finding(delta, measured, holds=measured <= delta)


def _examine_letter(_: AuditRun, *, delta: float) -> Finding:
    letter = Privatizer(dimensions=10, epsilon=1.0, delta=delta)
    return examine_calibration(letter, epsilon=1.0, delta=delta)


def cluster_checks() -> Iterator[Claim]:
    """Yield the claims of federated clusters as served."""
    for delta in (1e-6, 0.1):
        yield Claim(
            f"federated clusters, a letter at (1, {delta:g}): delta",
            Method.EXACT,
            partial(_examine_letter, delta=delta),
        )
    yield Claim(
        "federated clusters, an observation: sensitivity",
        Method.EXACT,
        lambda run: examine_observation(
            _observe,
            claimed=Privatizer(dimensions=2).sensitivity,
            starts=run.size(quick=3, full=12),
        ),
    )
    yield Claim(
        "federated clusters, all letters of a server: rho",
        Method.EXACT,
        lambda run: examine_life(_public, every=run.size(quick=5, full=1)),
    )


def _examine_published_composition(_: AuditRun) -> Finding:
    """Letters whose observations are sent again at the next of two phases, charged once."""
    once = Privatizer(dimensions=10, epsilon=1.0, delta=1e-6)
    twice = once.sensitivity * math.sqrt(2)
    measured = summed_delta(multiplier=once.gram_scale / twice, epsilon=1.0)
    return Finding(1e-6, measured, holds=measured <= 1e-6)


def cluster_faults() -> Iterator[PlantedFault]:
    """Yield mistakes that a federation can make with a mechanism that is right."""
    yield PlantedFault(
        "letters grouped by clusters found in raw data", lambda _: examine_life(_by_taste, every=5)
    )
    yield PlantedFault("observations sent again at every phase", _examine_published_composition)
    yield PlantedFault(
        "items of any length",
        lambda _: examine_observation(
            _observe_longer, claimed=Privatizer(dimensions=2).sensitivity, starts=2
        ),
    )
