"""What the ledger charges, read back as rationals: never below the loss, and the same column."""

from fractions import Fraction

import pytest

from discreet.audit.prices import (
    SAMPLED_DELTA,
    epsilon_charged,
    promise_for_samples,
    rho_charged,
)
from discreet.privacy.conversions import gaussian_delta
from discreet.privacy.events import (
    ExponentialChoice,
    GaussianRelease,
    LaplaceRelease,
    RandomisedResponse,
)


def test_a_decimal_epsilon_is_charged_to_the_digit() -> None:
    assert epsilon_charged(RandomisedResponse(0.1)) == Fraction(1, 10)
    assert rho_charged(RandomisedResponse(0.1)) == Fraction(1, 200)
    assert rho_charged(ExponentialChoice(0.1)) == Fraction(1, 800)


def test_a_third_is_charged_rounded_up_by_less_than_a_unit() -> None:
    over = epsilon_charged(LaplaceRelease(3.0, 1.0)) - Fraction(1, 3)
    assert 0 <= over < Fraction(1, 10**9)


def test_samples_of_a_pure_release_are_held_to_its_epsilon() -> None:
    assert promise_for_samples(RandomisedResponse(0.7)) == (0.7, 0.0)


@pytest.mark.parametrize("scale", [0.5, 1.0, 4.0])
def test_samples_of_gaussian_noise_are_held_to_a_promise_that_is_true(scale: float) -> None:
    """The exact delta of the noise at that epsilon is at most the delta that is allowed."""
    epsilon, delta = promise_for_samples(GaussianRelease(scale, 1.0))
    assert delta == SAMPLED_DELTA
    exact = gaussian_delta(multiplier=scale, epsilon=epsilon)
    assert 0 < exact <= delta
