"""Broken prices, limits, guards and calibrations are caught; the shipped ones pass beside them."""

from discreet.audit.mechanisms.calibrations import (
    Scale,
    examine_gaussian_scale,
    examine_sensitivity,
    half_vector,
)
from discreet.audit.mechanisms.ledgers import (
    book_if_admitted,
    examine_adaptive_spending,
    examine_exact_release,
    examine_guard,
    examine_limit,
    examine_prices,
    examine_unknown,
)
from discreet.audit.mechanisms.ledgers_planted import (
    HONEST,
    by_inheritance,
    free_if_unknown,
    rounded_down,
    textbook_scale,
)
from discreet.privacy import events
from discreet.privacy.accountants import Budget, EitherAccountant
from discreet.privacy.calibration import analytic_gaussian_scale
from discreet.privacy.matrices import Neighbours, half_vector_sensitivity
from discreet.privacy.noise import require_production


def test_the_shipped_ledger_passes_where_the_broken_ones_fail() -> None:
    assert examine_prices(HONEST.charge).holds
    assert examine_unknown(HONEST.charge).holds
    assert examine_exact_release((HONEST,)).holds
    assert examine_limit(HONEST, 2.0).holds
    assert examine_guard(require_production).holds
    budget = Budget(1.5, 0.01)
    assert examine_adaptive_spending(EitherAccountant(), book_if_admitted, budget=budget).holds


def test_the_shipped_calibration_passes_where_the_broken_ones_fail() -> None:
    def shipped(epsilon: float, delta: float, releases: int) -> float:
        return analytic_gaussian_scale(
            epsilon=epsilon, delta=delta, sensitivity=1.0, releases=releases, granularity=2.0**-20
        )

    scale: Scale = shipped
    for epsilon, delta, releases in ((10.0, 1e-5, 1), (1.0, 1e-6, 10)):
        found = examine_gaussian_scale(scale, epsilon=epsilon, delta=delta, releases=releases)
        assert found.holds
    claimed = half_vector_sensitivity(Neighbours.REPLACE)
    assert examine_sensitivity(claimed, half_vector, Neighbours.REPLACE, starts=6).holds


def test_the_textbook_scale_is_fine_where_its_proof_holds() -> None:
    found = examine_gaussian_scale(textbook_scale, epsilon=0.5, delta=1e-5, releases=1)
    assert found.holds


def test_a_broken_price_differs_from_the_honest_one_only_where_it_is_broken() -> None:
    """Otherwise another of its faults might be the one that is caught."""
    whole = events.ExponentialChoice(1.0)
    assert free_if_unknown(whole) == by_inheritance(whole) == HONEST.charge(whole)
    third = events.RandomisedResponse(1 / 3)
    short = HONEST.charge(third).nano_epsilon - rounded_down(third).nano_epsilon
    assert short == 1
    exact = events.ExactRelease()
    assert rounded_down(exact) == free_if_unknown(exact) == HONEST.charge(exact)
