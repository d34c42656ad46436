"""The claims of calibration: noise of the scale that is returned keeps the promise it was for.

The delta of Gaussian noise is summed here term by term over a fine lattice, as
sum max(P(z) - e^epsilon P(z - shift), 0); calibration uses a closed formula for it. Sensitivities
of outer products are attacked by local search from many starts.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from discreet.audit.claims import AuditRun, Claim, Finding, Method
from discreet.audit.enclosures import float_above
from discreet.privacy.calibration import (
    analytic_gaussian_scale,
    laplace_scale,
    zcdp_gaussian_scale,
)
from discreet.privacy.matrices import (
    Neighbours,
    frobenius_sensitivity,
    half_vector_sensitivity,
    outer,
    unpack,
)

Floats = npt.NDArray[np.float64]
Scale = Callable[[float, float, int], float]
"""(epsilon, delta, releases) -> scale, for sensitivity 1."""

_PER_DEVIATION = 2**15
_REACH = 20


def summed_delta(*, multiplier: float, epsilon: float) -> float:
    """Return the delta of Gaussian noise of `multiplier` sensitivities, by summing its terms."""
    x = np.arange(-_REACH * _PER_DEVIATION, _REACH * _PER_DEVIATION + 1) / _PER_DEVIATION
    shift = 1 / multiplier
    log_ratio = x * shift + shift**2 / 2
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) / _PER_DEVIATION
    excess = density * -np.expm1(np.minimum(epsilon - log_ratio, 0.0))
    return math.fsum(excess.tolist())


def examine_gaussian_scale(scale: Scale, *, epsilon: float, delta: float, releases: int) -> Finding:
    """Compare the summed delta of so many releases at the calibrated scale with the promise."""
    multiplier = scale(epsilon, delta, releases) / math.sqrt(releases)
    measured = summed_delta(multiplier=multiplier, epsilon=epsilon)
    return Finding(delta, measured, holds=measured <= delta)


def examine_laplace_scale(scale: float, *, epsilon: float, releases: int) -> Finding:
    """Compare the exact loss of so many releases of sensitivity 1 with the promise."""
    loss = releases / Fraction(scale)
    return Finding(epsilon, float_above(loss), holds=loss <= Fraction(repr(epsilon)))


def half_vector(z: Floats) -> Floats:
    """Return the upper triangle of z z^T."""
    return outer(z[:-1], float(z[-1]))


def whole(z: Floats) -> Floats:
    """Return all entries of z z^T."""
    return unpack(half_vector(z)).reshape(-1)


def _record(raw: Floats) -> Floats:
    """Map any vector to a record z = (x, y) with |x| = 1 and |y| <= 1."""
    return np.append(raw[:-1] / np.linalg.norm(raw[:-1]), np.sin(raw[-1]))


def examine_sensitivity(
    claimed: float,
    statistic: Callable[[Floats], Floats],
    neighbours: Neighbours,
    *,
    starts: int,
    largest: int = 2,
) -> Finding:
    """Look for two records whose statistics are further apart than claimed.

    x has from 2 to `largest` entries; deterministic starts, improved by quasi-Newton search.
    """
    best = 0.0
    for size in range(3, largest + 2):

        def minus_distance(raw: Floats, size: int = size) -> float:
            apart = statistic(_record(raw[:size]))
            if neighbours is Neighbours.REPLACE:
                apart = apart - statistic(_record(raw[size:]))
            return -float(apart @ apart)

        for start in range(starts):
            # Sines of irrational multiples: spread out, and the same in every run.
            raw = 2 * np.sin(np.arange(1, 2 * size + 1) * math.sqrt(2 + start))
            best = max(best, -float(minimize(minus_distance, raw, method="BFGS").fun))
    return Finding(claimed, math.sqrt(best), holds=math.sqrt(best) <= claimed)


def _analytic(epsilon: float, delta: float, releases: int) -> float:
    return analytic_gaussian_scale(
        epsilon=epsilon, delta=delta, sensitivity=1.0, releases=releases, granularity=2.0**-20
    )


def _zcdp(epsilon: float, delta: float, releases: int) -> float:
    return zcdp_gaussian_scale(epsilon=epsilon, delta=delta, sensitivity=1.0, releases=releases)


def claims() -> Iterator[Claim]:
    """Gaussian and Laplace scales, and the sensitivities of outer products."""
    for name, scale in (("analytic", _analytic), ("zcdp", _zcdp)):
        for epsilon, delta, releases in ((1.0, 1e-6, 1), (0.1, 1e-9, 10), (4.0, 1e-5, 100)):

            def gaussian(
                _: AuditRun,
                scale: Scale = scale,
                epsilon: float = epsilon,
                delta: float = delta,
                releases: int = releases,
            ) -> Finding:
                return examine_gaussian_scale(
                    scale, epsilon=epsilon, delta=delta, releases=releases
                )

            yield Claim(
                f"{name} Gaussian scale, epsilon {epsilon:g}, releases {releases}: delta",
                Method.EXACT,
                gaussian,
            )

    def laplace(_: AuditRun) -> Finding:
        scale = laplace_scale(epsilon=0.1, sensitivity=1.0, releases=3)
        return examine_laplace_scale(scale, epsilon=0.1, releases=3)

    yield Claim("Laplace scale, 3 releases at epsilon 0.1: epsilon", Method.EXACT, laplace)
    for neighbours in Neighbours:
        for name, claimed, statistic in (
            ("half-vector", half_vector_sensitivity(neighbours), half_vector),
            ("Frobenius", frobenius_sensitivity(neighbours), whole),
        ):

            def search(run: AuditRun, examine: Callable[..., Finding]) -> Finding:
                return examine(starts=run.size(quick=6, full=60), largest=run.size(quick=2, full=4))

            yield Claim(
                f"outer products, {neighbours.value}, {name}: sensitivity",
                Method.LOWER_BOUND,
                partial(
                    search,
                    examine=partial(examine_sensitivity, claimed, statistic, neighbours),
                ),
            )
