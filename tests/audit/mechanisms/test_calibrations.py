"""Calibration's examinations, against closed formulas and known extremes."""

import math

import pytest
from scipy import stats

from discreet.audit.claims import AuditRun, Claim
from discreet.audit.mechanisms.calibrations import (
    claims,
    examine_gaussian_scale,
    examine_laplace_scale,
    examine_sensitivity,
    half_vector,
    summed_delta,
)
from discreet.privacy.calibration import analytic_gaussian_scale
from discreet.privacy.matrices import Neighbours


@pytest.mark.parametrize("claim", list(claims()), ids=lambda claim: claim.name)
def test_every_claim_holds_and_none_is_far_from_its_limit(claim: Claim) -> None:
    """Noise much wider than the promise needs would hide a fault of the calibration."""
    found = claim.examine(AuditRun(quick=True))
    assert found.holds
    least = 0.1 if claim.name.startswith("zcdp") else 0.99
    assert found.measured > least * found.claimed


@pytest.mark.parametrize(("multiplier", "epsilon"), [(4.0, 1.0), (0.8, 4.0), (30.0, 0.1)])
def test_the_summed_delta_is_the_closed_one(multiplier: float, epsilon: float) -> None:
    """Balle and Wang (2018), theorem 8."""
    half, shift = 0.5 / multiplier, epsilon * multiplier
    closed = stats.norm.cdf(half - shift) - math.exp(epsilon) * stats.norm.cdf(-half - shift)
    assert summed_delta(multiplier=multiplier, epsilon=epsilon) == pytest.approx(closed, rel=1e-7)


def test_one_per_cent_less_noise_is_noticed() -> None:
    def scale(epsilon: float, delta: float, releases: int) -> float:
        return factor * analytic_gaussian_scale(
            epsilon=epsilon, delta=delta, sensitivity=1.0, releases=releases, granularity=2.0**-20
        )

    for factor in (0.99, 1.0):
        found = examine_gaussian_scale(scale, epsilon=1.0, delta=1e-6, releases=4)
        assert found.holds == (factor == 1.0)


def test_laplace_noise_is_held_to_the_decimal() -> None:
    assert examine_laplace_scale(10.0, epsilon=0.1, releases=1).holds
    assert not examine_laplace_scale(math.nextafter(10.0, 0), epsilon=0.1, releases=1).holds


@pytest.mark.parametrize(
    ("neighbours", "sensitivity"),
    [(Neighbours.REPLACE, 3 / math.sqrt(2)), (Neighbours.ADD_REMOVE, math.sqrt(3))],
)
def test_the_search_reaches_the_extremes(neighbours: Neighbours, sensitivity: float) -> None:
    found = examine_sensitivity(sensitivity, half_vector, neighbours, starts=6)
    assert found.holds
    assert found.measured > 0.9999 * sensitivity
    assert not examine_sensitivity(0.99 * sensitivity, half_vector, neighbours, starts=6).holds
