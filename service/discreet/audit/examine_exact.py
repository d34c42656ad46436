"""Privacy loss of discrete mechanisms, in rationals, judged without floating-point error.

A distribution is a mapping from outcomes to rational probabilities; a pair is two of them that
come from neighbouring inputs. Two questions are answered:

- the largest |log(P(o)/Q(o))|, which pure differential privacy bounds by epsilon;
- whether the Rényi divergence of order alpha is at most rho * alpha for *every* alpha > 1, in
  both directions, which is rho-zCDP.

For the second, let K(s) = log sum_o P(o) (P(o)/Q(o))**s = s * D_(1+s). K is convex and K(0) = 0.
Between two points where K is known it lies below their chord, so a rational quadratic decides a
whole interval of orders at once; where that does not decide, the interval is halved. From
s = L/rho - 1 on, L being the largest loss, K(s) <= s L <= rho s (s+1) needs no look. What cannot
be decided counts as violated.
"""

import math
from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction

from discreet.audit.claims import Finding
from discreet.audit.enclosures import (
    exceeds_exp,
    exp_interval,
    float_above,
    log_interval,
)

Distribution = Mapping[Hashable, Fraction]
Pair = tuple[Distribution, Distribution]
Ratios = tuple[tuple[Fraction, Fraction], ...]

_HALVINGS = 48
"""How finely orders are divided before a doubt becomes a refusal."""


def from_weights(weights: Iterable[int]) -> Distribution:
    """Return the distribution that draws an index in proportion to its integer weight."""
    listed = [int(weight) for weight in weights]
    total = sum(listed)
    return {index: Fraction(weight, total) for index, weight in enumerate(listed) if weight}


def both_ways(pairs: Iterable[Pair]) -> set[Ratios]:
    """Return the distinct multisets of (P(o), Q(o)) among the pairs, each pair both ways.

    Outcomes' names do not matter to a divergence, so pairs that are permutations of each other
    are examined once.
    """
    found: set[Ratios] = set()
    for first, second in pairs:
        outcomes = first.keys() | second.keys()
        forwards = sorted(
            (first.get(outcome, Fraction(0)), second.get(outcome, Fraction(0)))
            for outcome in outcomes
        )
        found.add(tuple(forwards))
        found.add(tuple(sorted((q, p) for p, q in forwards)))
    return found


def largest_ratio(pairs: Iterable[Ratios]) -> Fraction | None:
    """Return the largest P(o)/Q(o), or None if an outcome is possible under P and not under Q."""
    worst = Fraction(1)
    for ratios in pairs:
        for p, q in ratios:
            if p == 0:
                continue
            if q == 0:
                return None
            # Cross-multiplied: normalising every ratio would cost more than all the rest.
            if p * worst.denominator > q * worst.numerator:
                worst = p / q
    return worst


def judge_pure(*, pairs: Iterable[Pair], claimed: Fraction) -> Finding:
    """Compare the largest loss over all pairs with a claimed epsilon."""
    worst = largest_ratio(both_ways(pairs))
    if worst is None:
        return Finding(float(claimed), math.inf, holds=False)
    measured = float_above(log_interval(worst).high) if worst != 1 else 0.0
    return Finding(float(claimed), measured, holds=not exceeds_exp(worst, claimed))


class _Divergence:
    """K(s), from above, for one direction of one pair."""

    def __init__(self, ratios: Ratios) -> None:
        self.terms = [(p, log_interval(p / q).high) for p, q in ratios if p]
        self.largest = max(loss for _, loss in self.terms)
        self.mean = sum((p * loss for p, loss in self.terms), Fraction(0))
        """The divergence of order 1 (Kullback and Leibler), the limit of K(s)/s at 0."""

    def above(self, s: Fraction) -> Fraction:
        """Return a rational that is at least K(s), by less than 2**-60."""
        total = sum((p * exp_interval(s * loss).high for p, loss in self.terms), Fraction(0))
        unit = 1 << 128
        return log_interval(Fraction(math.ceil(total * unit), unit)).high


def _chord_within(
    left: tuple[Fraction, Fraction], right: tuple[Fraction, Fraction], rho: Fraction
) -> bool:
    """Tell whether the chord of K stays below rho*s*(s+1) between two points (s, K(s))."""
    (s0, k0), (s1, k1) = left, right
    slope = (k1 - k0) / (s1 - s0)
    lowest = min(max((slope - rho) / (2 * rho), s0), s1)
    return k0 + slope * (lowest - s0) <= rho * lowest * (lowest + 1)


def zcdp_of(ratios: Ratios, rho: Fraction) -> tuple[Fraction, bool]:
    """Return the largest D_alpha/alpha that was met, and whether rho bounds it for every alpha."""
    divergence = _Divergence(ratios)
    worst = divergence.mean
    furthest = divergence.largest / rho - 1
    if worst > rho or furthest <= 0:
        return worst, worst <= rho
    nothing = (Fraction(0), Fraction(0))
    undecided = [(nothing, (furthest, divergence.above(furthest)), 0)]
    while undecided:
        left, right, depth = undecided.pop()
        for s, value in (left, right):
            worst = max(worst, value / (s * (s + 1)) if s else worst)
        if worst > rho or depth == _HALVINGS:
            return worst, False
        if _chord_within(left, right, rho):
            continue
        middle = (left[0] + right[0]) / 2
        split = (middle, divergence.above(middle))
        undecided.append((split, right, depth + 1))
        undecided.append((left, split, depth + 1))
    return worst, True


def judge_zcdp(*, pairs: Iterable[Pair], claimed: Fraction) -> Finding:
    """Compare Rényi divergences of every order, over all pairs, with a claimed rho."""
    directed = both_ways(pairs)
    if largest_ratio(directed) is None:
        return Finding(float(claimed), math.inf, holds=False)
    if claimed <= 0:
        equal = all(p == q for ratios in directed for p, q in ratios)
        return Finding(float(claimed), 0.0 if equal else math.inf, holds=equal)
    worst, holds = Fraction(0), True
    for ratios in directed:
        met, within = zcdp_of(ratios, claimed)
        worst, holds = max(worst, met), holds and within
    return Finding(float(claimed), float_above(worst), holds=holds)
