"""Judging samples, with error probabilities that are theorems and not asymptotics.

An audit of many tests needs each of them at a level near one in a billion, where the chi-square
and Kolmogorov approximations are not to be trusted. So three finite-sample bounds are used:

- Clopper-Pearson: an exact confidence interval for a binomial probability;
- Dvoretzky-Kiefer-Wolfowitz with Massart's constant: P(sup |F_n - F| > d) <= 2 exp(-2 n d^2), for
  any distribution, discrete ones included;
- relative entropy of k bins (Agrawal, "Finite-sample concentration of the multinomial in relative
  entropy", IEEE Trans. Inf. Theory 66, 2020): P(n KL(observed || expected) >= x) is at most
  exp(-x) (e x / (k-1))^(k-1) for x > k-1. It is the G-test, hence chi-square to second order,
  with a bound in place of a limit.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from discreet.audit.claims import Finding

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

_CUTS = 64
"""Thresholds and atoms that are tried for each view when looking for a telling event."""


def clopper_pearson(successes: Floats | int, trials: int, error: float) -> tuple[Floats, Floats]:
    """Return lower and upper bounds, each wrong with probability at most `error`."""
    seen = np.asarray(successes, dtype=np.float64)
    missed = trials - seen
    low = np.where(seen > 0, betaincinv(np.maximum(seen, 1), missed + 1, error), 0.0)
    high = np.where(missed > 0, betaincinv(seen + 1, np.maximum(missed, 1), 1 - error), 1.0)
    return low, high


def entropy_evidence(counts: Counts, probabilities: Floats) -> float:
    """Return evidence in nats that the counts do not come from these bin probabilities."""
    trials = int(counts.sum())
    seen = counts > 0
    if np.any(probabilities[seen] <= 0):
        return math.inf
    observed = counts[seen] / trials
    x = trials * float(np.sum(observed * np.log(observed / probabilities[seen])))
    freedom = len(probabilities) - 1
    if x <= freedom:
        return 0.0
    return x - freedom * (1 + math.log(x / freedom))


def supremum_evidence(sample: Floats, cdf: Callable[[Floats], Floats]) -> float:
    """Return evidence in nats that the sample was not drawn from this distribution function.

    The distance is taken at the sample points, from both sides; for a discrete distribution the
    left limit at a point is the function a hair below it, which `cdf` must resolve.
    """
    points, counts = np.unique(sample, return_counts=True)
    upto = np.cumsum(counts) / len(sample)
    before = upto - counts / len(sample)
    below = cdf(np.nextafter(points, -np.inf))
    distance = max(float(np.max(np.abs(upto - cdf(points)))), float(np.max(np.abs(before - below))))
    return max(0.0, 2 * len(sample) * distance**2 - math.log(2))


def judge_fit(evidence: Sequence[float], *, error: float) -> Finding:
    """Compare several pieces of evidence with what luck may explain at this error probability."""
    allowed = math.log(len(evidence) / error)
    worst = max(evidence)
    return Finding(allowed, worst, holds=worst <= allowed)


def fineness(values: Floats) -> Floats:
    """Return how many binary digits after the point each double uses: its tell-tale low bits."""
    mantissa, exponent = np.frexp(values)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.where(whole > 0, whole & -whole, 1)
    digits = 53 - exponent - np.log2(lowest.astype(np.float64))
    return np.where(whole > 0, digits, -2000.0)


def directions(first: Floats, second: Floats) -> Floats:
    """Return directions in which two samples seem to differ, as columns.

    The difference of their means, plainly, and after Fisher: with all entries weighed by the
    spread that they have together.
    """
    apart = first.mean(axis=0) - second.mean(axis=0)
    centred = np.concatenate([first - first.mean(axis=0), second - second.mean(axis=0)])
    spread = np.atleast_2d(np.cov(centred.T))
    ridge = 1e-6 * np.trace(spread) / len(apart) + 1e-12
    fisher = np.linalg.solve(spread + ridge * np.eye(len(apart)), apart)
    found: Floats = np.stack([apart, fisher], axis=1)
    return found


def views(releases: Floats, along: Floats) -> list[Floats]:
    """Return what an attacker might look at in vectors of releases, one number a release each.

    Every entry, every step from one entry to the next (noise used twice cancels there), the low
    bits of both, and the projections on directions in which the two worlds seem to differ.
    """
    columns = [releases[:, j] for j in range(releases.shape[1])]
    steps = [releases[:, j + 1] - releases[:, j] for j in range(releases.shape[1] - 1)]
    projected = releases @ along
    mixed = [projected[:, j] for j in range(along.shape[1])]
    return [*columns, *steps, *(fineness(seen) for seen in columns), *mixed]


def _events(view: Floats, other: Floats) -> list[tuple[str, float]]:
    """Return thresholds and atoms worth trying, from samples of both worlds."""
    pooled = np.sort(np.concatenate([view, other]))
    cuts = np.unique(pooled[np.linspace(0, len(pooled) - 1, _CUTS).astype(np.int64)])
    atoms, frequency = np.unique(pooled, return_counts=True)
    common = atoms[np.argsort(frequency)[::-1][:_CUTS]]
    return [
        *(("<=", float(cut)) for cut in cuts),
        *((">=", float(cut)) for cut in cuts),
        *(("==", float(atom)) for atom in common),
    ]


def _occurs(view: Floats, event: tuple[str, float]) -> int:
    relation, bound = event
    if relation == "<=":
        return int(np.count_nonzero(view <= bound))
    if relation == ">=":
        return int(np.count_nonzero(view >= bound))
    return int(np.count_nonzero(view == bound))


def _bounds(seen: Floats, unseen: Floats, trials: int, error: float, delta: float) -> Floats:
    """Return lower bounds on epsilon from how often events occurred in the two worlds."""
    low, _ = clopper_pearson(seen, trials, error / 2)
    _, high = clopper_pearson(unseen, trials, error / 2)
    excess = np.maximum(low - delta, 0.0)
    with np.errstate(divide="ignore"):
        bounds: Floats = np.maximum(np.log(excess) - np.log(high), 0.0)
    return bounds


def judge_lower_bound(
    first: Floats, second: Floats, *, claimed: float, delta: float = 0.0, error: float
) -> Finding:
    """Bound epsilon from below, from equally many releases of two neighbouring inputs.

    Rows are releases. One half of the rows chooses the event that tells the worlds apart best,
    the other half counts it, so that the choice costs no confidence: (epsilon, delta)-DP demands
    P(E) <= e^epsilon Q(E) + delta of every event, and with probability at least 1 - error both
    Clopper-Pearson bounds are right, whence epsilon >= log((P_low - delta) / Q_high).
    """
    half = len(first) // 2
    along = directions(first[:half], second[:half])
    seen, unseen = views(first, along), views(second, along)
    best, chosen = -1.0, None
    for a, b in ((seen, unseen), (unseen, seen)):
        for one, other in zip(a, b, strict=True):
            events = _events(one[:half], other[:half])
            inside = np.array([_occurs(one[:half], event) for event in events], dtype=np.float64)
            outside = np.array([_occurs(other[:half], event) for event in events], dtype=np.float64)
            scores = _bounds(inside, outside, half, error, delta)
            at = int(np.argmax(scores))
            if float(scores[at]) > best:
                best, chosen = float(scores[at]), (one, other, events[at])
    assert chosen is not None
    one, other, event = chosen
    measured = float(
        _bounds(
            np.array([_occurs(one[half:], event)], dtype=np.float64),
            np.array([_occurs(other[half:], event)], dtype=np.float64),
            len(first) - half,
            error,
            delta,
        )[0]
    )
    return Finding(claimed, measured, holds=measured <= claimed)
