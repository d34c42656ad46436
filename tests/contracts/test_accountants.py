"""Promises that every accountant keeps for every event, found by reflection.

A new kind of event fails here until it has a sample and a price.
"""

import inspect
import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.privacy import events
from discreet.privacy.accountants import Accountant, Budget, accountant
from discreet.privacy.charges import NANO, PICO, UNLIMITED, Charge
from discreet.privacy.events import PrivacyEvent

RULES: list[Accountant] = [
    accountant(name, release_delta=delta) for name in ("basic", "zcdp") for delta in (None, 1e-9)
]
SAMPLES: dict[type[PrivacyEvent], list[PrivacyEvent]] = {
    events.ExactRelease: [events.ExactRelease()],
    events.ExponentialChoice: [events.ExponentialChoice(e) for e in (1e-6, 0.1, 1 / 3, 50.0)],
    events.RandomisedResponse: [events.RandomisedResponse(e) for e in (1e-6, 0.1, 1 / 3, 50.0)],
    events.PermuteAndFlip: [events.PermuteAndFlip(0.7)],
    events.PureRelease: [events.PureRelease(0.7, "proof")],
    events.TruncatedChoice: [events.TruncatedChoice(2, 8.0, 0.1, 1000)],
    events.ApproximateRelease: [events.ApproximateRelease(0.7, 0.1, 1e-9, "proof")],
    events.LaplaceRelease: [events.LaplaceRelease(7.0, 3.0), events.LaplaceRelease(1e-300, 1e300)],
    events.GaussianRelease: [events.GaussianRelease(7.0, 3.0), events.GaussianRelease(1e9, 1e-9)],
    events.Repeated: [events.Repeated(events.ExponentialChoice(0.1), 12)],
    events.Composed: [
        events.Composed(()),
        events.Composed((events.ExponentialChoice(0.1), events.GaussianRelease(9.0, 1.0))),
    ],
}
EVENTS = [event for sample in SAMPLES.values() for event in sample]
BUDGETS = st.builds(
    Budget,
    epsilon=st.floats(min_value=1e-6, max_value=1e12),
    delta=st.floats(min_value=1e-12, max_value=0.5),
)


def test_every_kind_of_event_has_a_sample() -> None:
    kinds = {
        kind
        for _, kind in inspect.getmembers(events, inspect.isclass)
        if issubclass(kind, PrivacyEvent) and kind is not PrivacyEvent
    }
    assert kinds == set(SAMPLES)


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("event", EVENTS, ids=str)
class TestEveryPrice:
    def test_the_charge_covers_the_price_by_less_than_a_unit(
        self, rule: Accountant, event: PrivacyEvent
    ) -> None:
        price, charge = rule.price(event), rule.charge(event)
        for amount, units, charged in (
            (price.epsilon, NANO, charge.nano_epsilon),
            (price.rho, NANO, charge.nano_rho),
            (price.delta, PICO, charge.pico_delta),
        ):
            if math.isinf(amount):
                assert charged == UNLIMITED
            else:
                # A price is the float just above an exact rational.
                exact = Fraction(amount) * units
                ulp = Fraction(math.ulp(amount)) * units
                assert exact - ulp <= charged < exact + 1

    def test_pricing_is_repeatable(self, rule: Accountant, event: PrivacyEvent) -> None:
        assert rule.charge(event) == rule.charge(event)
        assert rule.price(event) == rule.price(event)

    def test_whatever_costs_something_is_charged(
        self, rule: Accountant, event: PrivacyEvent
    ) -> None:
        charge = rule.charge(event)
        assert (charge == Charge()) is (event == events.Composed(()))

    def test_composition_costs_the_sum(self, rule: Accountant, event: PrivacyEvent) -> None:
        once = rule.charge(event)
        five = rule.charge(events.Repeated(event, 5))
        assert five == rule.charge(events.Composed((event,) * 5))
        for column in ("nano_epsilon", "nano_rho", "pico_delta"):
            single, total = getattr(once, column), getattr(five, column)
            if single == UNLIMITED:
                assert total == UNLIMITED
            else:
                # Rounded once instead of five times.
                assert 5 * single - 5 < total <= 5 * single


@pytest.mark.parametrize("rule", RULES, ids=str)
class TestEveryFilter:
    @given(budget=BUDGETS)
    def test_no_limit_admits_what_is_infinite(self, rule: Accountant, budget: Budget) -> None:
        limit = rule.limit(budget)
        assert not limit.admits(rule.charge(events.ExactRelease()))
        hidden = events.Composed((events.ExponentialChoice(0.1), events.ExactRelease()))
        assert not limit.admits(rule.charge(hidden))

    @given(budget=BUDGETS, seed=st.integers(0, 2**32))
    def test_what_is_admitted_stays_within_the_promise(
        self, rule: Accountant, budget: Budget, seed: int
    ) -> None:
        rng = random.Random(seed)
        limit, total = rule.limit(budget), Charge()
        before = rule.spent(total, budget)
        assert before.epsilon == 0
        for _ in range(20):
            charge = rule.charge(events.ExponentialChoice(rng.uniform(1e-3, budget.epsilon)))
            if not limit.admits(total + charge):
                continue
            total = total + charge
            spent, left = rule.spent(total, budget), rule.remaining(total, budget)
            assert before.epsilon <= spent.epsilon <= budget.epsilon
            assert spent.delta <= budget.delta
            together = Fraction(repr(spent.epsilon)) + Fraction(repr(left.epsilon))
            assert together <= Fraction(repr(budget.epsilon))
            before = spent

    def test_spending_is_never_reported_below_what_was_booked(self, rule: Accountant) -> None:
        """The promise that holds is the smaller of the two statements, and never below both."""
        budget = Budget(8.0, 1e-6)
        charge = rule.charge(events.ExponentialChoice(0.1))
        total = Charge()
        for count in range(1, 90):
            total = total + charge
            spent = Fraction(repr(rule.spent(total, budget).epsilon))
            assert spent <= Fraction(count, 10)
            if rule.name == "basic":
                assert spent == Fraction(count, 10)
