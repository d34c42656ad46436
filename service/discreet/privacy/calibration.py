"""How much noise a promise needs: (epsilon, delta), number of releases, sensitivity -> scale.

Every function returns a scale in the units of the sensitivity, rounded up. Where the releases are
to be charged one by one, their costs must fit into the limit *after* each has been rounded up to
the ledger's unit, so the limit in units is divided first and the scale derived from a whole number.

- Laplace, basic composition: k releases of L1 sensitivity s at epsilon in all need k*s/epsilon.
- Gaussian, analytic: k releases of L2 sensitivity s, adaptively chosen or not, are exactly as
  private as one of sensitivity s*sqrt(k) (Dong, Roth and Su 2022, on composing GDP). The smallest
  scale whose exact curve (Balle and Wang 2018) passes below (epsilon, delta) is found by
  bisection; the curve falls as the scale grows.
- Gaussian, zCDP: k releases of rho each, k*rho within what (epsilon, delta) allows.

The analytic scale is the smaller one for continuous noise. Ours is discrete, and pays
(1 + exp(epsilon)) * `lattice_gap` of its delta for the difference; `gaussian_scale` takes whichever
is smaller after that. **The two are promises of different reach**: the zCDP scale can be charged to
a ledger release by release (`GaussianRelease` prices it at exactly this rho), the analytic one
holds for the k releases together, fixed in advance, and a zCDP ledger of the same (epsilon, delta)
would refuse it.
"""

import math
from dataclasses import dataclass
from typing import Literal

from discreet.errors import InvalidArgument
from discreet.privacy.charges import NANO, round_down
from discreet.privacy.conversions import (
    check_delta,
    check_epsilon,
    gaussian_delta,
    lattice_gap,
    zcdp_rho,
)
from discreet.privacy.numeric import GRANULARITY

_UP = 1 + 2.0**-50
"""More than the few roundings of a closed formula can lose."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A noise scale and the argument that justifies it."""

    scale: float
    route: Literal["analytic", "zcdp"]


def _check(epsilon: float, sensitivity: float, releases: int) -> None:
    check_epsilon(epsilon)
    if not (math.isfinite(sensitivity) and sensitivity > 0):
        raise InvalidArgument("sensitivity", "must be finite and greater than 0")
    if releases < 1:
        raise InvalidArgument("releases", "must be at least 1")


def laplace_scale(*, epsilon: float, sensitivity: float, releases: int = 1) -> float:
    """Return the Laplace scale for `releases` of L1 sensitivity `sensitivity`, epsilon in all.

    A basic ledger of that epsilon pays for exactly so many.
    """
    _check(epsilon, sensitivity, releases)
    each = round_down(epsilon, NANO) // releases
    if each == 0:
        raise InvalidArgument("releases", "must be fewer: each would cost less than a nano-epsilon")
    return sensitivity / (each / NANO) * _UP


def zcdp_gaussian_scale(
    *, epsilon: float, delta: float, sensitivity: float, releases: int = 1
) -> float:
    """Return the Gaussian scale at which `releases` spend no more rho than the promise allows.

    A zCDP ledger of that (epsilon, delta) pays for exactly so many.
    """
    _check(epsilon, sensitivity, releases)
    each = _nano_rho_each(epsilon, delta, releases)
    if each == 0:
        raise InvalidArgument("releases", "must be fewer: each would cost less than a nano-rho")
    return sensitivity / math.sqrt(2 * (each / NANO)) * _UP


def _nano_rho_each(epsilon: float, delta: float, releases: int) -> int:
    return round_down(zcdp_rho(epsilon=epsilon, delta=delta), NANO) // releases


def analytic_gaussian_scale(
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    releases: int = 1,
    dimension: int = 1,
    granularity: float = 0.0,
) -> float:
    """Return the least Gaussian scale that keeps (epsilon, delta) over all `releases`.

    With a `granularity` the noise is discrete, with steps of that size in each of `dimension`
    coordinates; 0 means continuous noise. Refuses a lattice too coarse for the promise.
    """
    _check(epsilon, sensitivity, releases)
    check_delta(delta)
    if dimension < 1:
        raise InvalidArgument("dimension", "must be at least 1")
    if not (math.isfinite(granularity) and granularity >= 0):
        raise InvalidArgument("granularity", "must be finite and not negative")
    total = sensitivity * math.sqrt(releases) * _UP

    def kept(scale: float) -> bool:
        gap = 0.0
        if granularity > 0:
            gap = lattice_gap(steps=scale / granularity, coordinates=dimension * releases)
        spent = gaussian_delta(multiplier=scale / total, epsilon=epsilon)
        return spent + (1 + math.exp(min(epsilon, 700.0))) * gap <= delta

    low = high = total
    while not kept(high):
        low, high = high, high * 2
        if not math.isfinite(high):
            raise InvalidArgument("granularity", "must be finer for this epsilon and delta")
    while low == high or kept(low):
        high = low
        low /= 2
        if low == 0:
            return high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    return high


def gaussian_scale(
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    releases: int = 1,
    dimension: int = 1,
    granularity: float = GRANULARITY,
) -> Calibration:
    """Return the smaller of the two scales for discrete noise, and which one it is."""
    analytic = analytic_gaussian_scale(
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity,
        releases=releases,
        dimension=dimension,
        granularity=granularity,
    )
    if _nano_rho_each(epsilon, delta, releases) > 0:
        zcdp = zcdp_gaussian_scale(
            epsilon=epsilon, delta=delta, sensitivity=sensitivity, releases=releases
        )
        if zcdp <= analytic:
            return Calibration(zcdp, "zcdp")
    return Calibration(analytic, "analytic")


def tree_levels(horizon: int) -> int:
    """Return how many nodes of a binary tree over `horizon` steps one step can enter."""
    if horizon < 1:
        raise InvalidArgument("horizon", "must be at least 1")
    return horizon.bit_length()


def tree_gaussian_sensitivity(*, levels: int, sensitivity: float) -> float:
    """Return sqrt(levels) * sensitivity: one step moves `levels` nodes by `sensitivity` each."""
    _check_levels(levels)
    return math.sqrt(levels) * sensitivity * _UP


def tree_laplace_sensitivity(*, levels: int, sensitivity: float) -> float:
    """Return levels * sensitivity, the same in L1."""
    _check_levels(levels)
    return levels * sensitivity * _UP


def published_privatizer_scale(*, levels: int, epsilon: float, delta: float) -> float:
    """Return the noise of the published federated-cluster privatizer, for comparison only.

    Variance 64 * levels * ln(2/delta) / epsilon**2 for every entry of a node's matrix, from the
    pseudocode of CDP-FCLUB-DC. It is 4.5 to 6 times the standard deviation that the analytic
    Gaussian mechanism needs for the same promise (`discreet.privacy.matrices` has the
    sensitivities).
    """
    _check_levels(levels)
    check_epsilon(epsilon)
    check_delta(delta)
    return math.sqrt(64 * levels * math.log(2 / delta)) / epsilon


def _check_levels(levels: int) -> None:
    if levels < 1:
        raise InvalidArgument("levels", "must be at least 1")
