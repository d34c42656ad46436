"""Budgets under either accounting: prices, reports, and that keeping them changes nothing."""

import pytest

from discreet.families.budgets import FREE, Terms
from discreet.privacy.accountants import Budget, accountant
from discreet.privacy.charges import Charge
from discreet.privacy.events import Composed, RandomisedResponse

EVENTS = (RandomisedResponse(0.5),)


@pytest.mark.parametrize("accounting", ["basic", "zcdp"])
def test_prices_and_reports_are_the_accountants_own(accounting: str) -> None:
    budget = Budget(epsilon=8.0, delta=1e-6)
    terms = Terms(accounting=accounting, budget=budget)
    own = accountant(accounting)
    charge = own.charge(Composed(EVENTS))
    assert terms.limit == own.limit(budget)
    spent = FREE
    for _ in range(3):
        spent = spent + charge
        for _ in range(2):  # the second time from memory
            assert terms.charge(EVENTS) == charge
            report = terms.report(spent=spent, charge=charge)
            assert report.spent == own.spent(spent, budget)
            assert report.remaining == own.remaining(spent, budget)
            assert report.epsilon == pytest.approx(0.5, rel=1e-8)


def test_nothing_released_is_free() -> None:
    terms = Terms(accounting="basic", budget=Budget(epsilon=1.0, delta=0.0))
    assert terms.charge(()) == Charge() == FREE
    assert terms.report(spent=FREE).epsilon == 0.0
