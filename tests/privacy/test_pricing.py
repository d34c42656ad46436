"""Prices, event by event, and that the wrong price would be noticed."""

import math
from dataclasses import dataclass
from fractions import Fraction

import pytest

from discreet.errors import UnknownEvent
from discreet.privacy import events
from discreet.privacy.conversions import zcdp_epsilon
from discreet.privacy.pricing import cost_of, float_above

TENTH = Fraction(1, 10)


def test_bounded_range_is_a_quarter_of_what_pure_privacy_costs() -> None:
    chosen = cost_of(events.ExponentialChoice(0.1), None)
    assert (chosen.epsilon, chosen.delta, chosen.rho) == (TENTH, 0, TENTH**2 / 8)


@pytest.mark.parametrize(
    "event",
    [
        events.RandomisedResponse(0.1),
        events.PermuteAndFlip(0.1),
        events.PureRelease(0.1, "a proof"),
        events.LaplaceRelease(scale=10.0, sensitivity=1.0),
    ],
)
def test_pure_releases_cost_half_the_square(event: events.PrivacyEvent) -> None:
    cost = cost_of(event, None)
    assert (cost.epsilon, cost.delta, cost.rho) == (TENTH, 0, TENTH**2 / 2)


def test_a_truncated_choice_costs_what_its_event_proves() -> None:
    event = events.TruncatedChoice(objects=3, sharpness=9.0, uniform_share=0.1, survivors=500)
    cost = cost_of(event, None)
    assert cost.epsilon == Fraction(repr(event.epsilon))
    assert cost.rho == cost.epsilon**2 / 2


def test_gaussian_noise_has_a_basic_price_only_at_a_delta() -> None:
    event = events.GaussianRelease(scale=4.0, sensitivity=2.0)
    without = cost_of(event, None)
    assert (without.epsilon, without.delta, without.rho) == (math.inf, 0, Fraction(1, 8))
    priced = cost_of(event, 1e-6)
    assert float(priced.epsilon) == zcdp_epsilon(rho=0.125, delta=1e-6)
    assert (priced.delta, priced.rho) == (Fraction(1, 10**6), Fraction(1, 8))


def test_the_basic_price_of_gaussian_noise_bounds_the_exact_one_of_the_discrete_sampler() -> None:
    # Sensitivity 1, steps of 1: sum the discrete Gaussian's own probabilities at that epsilon.
    scale, delta = 2.0, 1e-5
    cost = cost_of(events.GaussianRelease(scale=scale, sensitivity=1.0), delta)
    reach = range(-60, 61)
    total = math.fsum(math.exp(-z * z / (2 * scale**2)) for z in reach)
    mass = {z: math.exp(-z * z / (2 * scale**2)) / total for z in reach}

    def lost(epsilon: float) -> float:
        grown = math.exp(epsilon)
        return math.fsum(max(mass[z] - grown * mass.get(z - 1, 0.0), 0.0) for z in reach)

    assert lost(float(cost.epsilon)) <= delta
    assert lost(0.8 * float(cost.epsilon)) > delta, "a price 20% lower would be wrong"


def test_repetition_and_composition_add_up() -> None:
    parts = (
        events.ExponentialChoice(0.1),
        events.Repeated(events.LaplaceRelease(scale=3.0, sensitivity=1.0), 5),
        events.Composed((events.GaussianRelease(scale=1.0, sensitivity=1.0),) * 2),
    )
    cost = cost_of(events.Repeated(events.Composed(parts), 7), 1e-6)
    assert cost.rho == 7 * (TENTH**2 / 8 + 5 * Fraction(1, 18) + 2 * Fraction(1, 2))
    assert cost.delta == 14 * Fraction(1, 10**6)
    assert cost_of(events.Composed(()), None).epsilon == 0


def test_exactness_is_infinite_alone_and_in_company() -> None:
    for event in (
        events.ExactRelease(),
        events.Repeated(events.ExactRelease(), 3),
        events.Composed((events.ExponentialChoice(0.1), events.ExactRelease())),
        events.LaplaceRelease(scale=1e-300, sensitivity=1e300),
        events.GaussianRelease(scale=1e-300, sensitivity=1e300),
    ):
        cost = cost_of(event, 1e-6)
        assert cost.epsilon == cost.rho == math.inf


@dataclass(frozen=True, slots=True)
class Whisper(events.PrivacyEvent):
    """A release that nobody has priced."""


class GenerousChoice(events.ExponentialChoice):
    """A subclass might release more than what it inherits from."""


@pytest.mark.parametrize("stranger", [Whisper(), GenerousChoice(0.1), "a string", [1], None])
def test_an_unpriced_release_is_refused_not_free(stranger: object) -> None:
    for event in (
        stranger,
        events.Repeated(stranger, 2),  # type: ignore[arg-type]
        events.Composed((events.ExponentialChoice(0.1), stranger)),  # type: ignore[arg-type]
    ):
        if isinstance(stranger, list) and event is not stranger:
            continue  # not hashable inside a frozen event: refused by Python itself
        with pytest.raises(UnknownEvent):
            cost_of(event, None)  # type: ignore[arg-type]


def test_a_known_price_is_not_lent_to_a_lookalike() -> None:
    cost_of(events.ExponentialChoice(0.25), None)  # now remembered
    assert cost_of(events.PermuteAndFlip(0.25), None).rho == Fraction(1, 32)
    with pytest.raises(UnknownEvent):
        cost_of(GenerousChoice(0.25), None)


def test_floats_shown_to_people_are_not_below_the_truth() -> None:
    assert Fraction(float_above(Fraction(1, 3))) >= Fraction(1, 3)
    assert Fraction(float_above(TENTH)) >= TENTH
    assert float_above(math.inf) == math.inf
