"""Budgets: prices, limits and reports."""

import math

import pytest

from discreet.families.budgets import FREE, BudgetPolicy
from discreet.families.documents import WindowedBudgetDocument
from discreet.privacy.charges import NANO, Charge
from discreet.privacy.events import GaussianRelease, RandomisedResponse, Repeated
from discreet.state.ledgers import Account, Ledger, booked, turned

ONE = RandomisedResponse(0.1)


def admitted(policy: BudgetPolicy, charge: Charge) -> int:
    total, count = Charge(), 0
    while policy.limit.admits(total + charge):
        total, count = total + charge, count + 1
    return count


@pytest.mark.parametrize(
    ("epsilon", "delta", "expected"), [(8.0, 1e-6, 210), (8.0, 0.0, 80), (0.5, 1e-6, 5)]
)
def test_either_rule_admits(epsilon: float, delta: float, expected: int) -> None:
    policy = BudgetPolicy(epsilon=epsilon, delta=delta)
    assert admitted(policy, policy.charge((ONE,))) == expected


def test_gaussian_noise_is_admitted_by_rho_alone() -> None:
    policy = BudgetPolicy(epsilon=8.0, delta=1e-6)
    charge = policy.charge((GaussianRelease(6.41, math.sqrt(2)),))
    assert admitted(policy, charge) == 43


def test_nothing_released_is_free() -> None:
    assert BudgetPolicy(epsilon=1.0).charge(()) == FREE


def test_a_report_says_what_was_spent_and_what_is_left() -> None:
    policy = BudgetPolicy(epsilon=2.0, delta=1e-6)
    charge = policy.charge((Repeated(RandomisedResponse(0.5), 2),))
    report = policy.report(Ledger(charge), Account.ANSWERS, charge)
    assert report.resets_at is None
    assert report.epsilon == 1.0
    assert report.spent is not None
    assert report.spent.epsilon == 1.0
    assert report.remaining is not None
    assert report.remaining.epsilon == 1.0
    assert charge.nano_epsilon == NANO


def test_which_tenths_of_a_budget_a_charge_fills_up() -> None:
    policy = BudgetPolicy(epsilon=4.0)
    one = policy.charge((RandomisedResponse(1.0),))
    assert list(policy.reached(spent=one, charge=one)) == [0, 1, 2]
    assert list(policy.reached(spent=one + one, charge=one)) == [3, 4, 5]
    assert list(policy.reached(spent=one + one + one + one, charge=one)) == [8, 9, 10]
    assert list(policy.reached(spent=one, charge=FREE)) == []


def test_every_tenth_is_reached_once_however_a_budget_is_spent() -> None:
    policy = BudgetPolicy(epsilon=8.0, delta=1e-6)
    charge, total, reached = policy.charge((ONE,)), Charge(), []
    while policy.limit.admits(total + charge):
        total += charge
        reached += policy.reached(spent=total, charge=charge)
    # 210 answers by the rho rule: the last of them is within a hundredth of the end.
    assert reached == list(range(10))
    assert list(policy.reached(spent=total + charge, charge=charge)) == [10]


def test_a_window_is_reported_with_what_was_spent_in_it_and_its_end() -> None:
    policy = BudgetPolicy.of(WindowedBudgetDocument(epsilon=2.0, per="12h"))
    assert policy.window == 12 * 3_600
    charge = policy.charge((RandomisedResponse(0.5),))
    ledger = booked(turned(Ledger(), policy.window, 0.0), Account.ANSWERS, charge)
    later = turned(ledger, policy.window, 13 * 3_600.0)
    for found, spent, end in ((ledger, 0.5, 12), (later, 0.0, 24)):
        report = policy.report(found, Account.ANSWERS)
        assert report.spent is not None
        assert report.spent.epsilon == spent
        assert report.resets_at == end * 3_600
    assert policy.spent(later.answers).epsilon == 0.5
