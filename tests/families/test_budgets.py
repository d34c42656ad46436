"""Budgets: prices, limits and reports."""

import math

import pytest

from discreet.families.budgets import FREE, BudgetPolicy
from discreet.families.documents import WindowedBudgetDocument
from discreet.privacy.charges import NANO, Charge
from discreet.privacy.events import GaussianRelease, LaplaceRelease, RandomisedResponse, Repeated
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


def test_a_pure_account_admits_by_epsilon_alone() -> None:
    policy = BudgetPolicy(epsilon=8.0, delta=1e-6, pure=True)
    assert admitted(policy, policy.charge((LaplaceRelease(10.0, 1.0),))) == 80
    spent = policy.spent(policy.charge((Repeated(LaplaceRelease(10.0, 1.0), 40),)))
    assert (spent.epsilon, spent.delta) == (4.0, 0.0)


def test_why_feedback_is_not_admitted_by_either_rule() -> None:
    """The mean of two ledgers pays for what their records move. Let one world have 80 records in
    one release, and the other 210 in releases of their own: each would be admitted, by another sum,
    and the mean is within neither limit."""
    either = BudgetPolicy(epsilon=8.0, delta=1e-6)
    one = either.charge((LaplaceRelease(10.0, 1.0),))
    together = Charge(80 * one.nano_epsilon, 80**2 * one.nano_rho)
    apart = Charge(210 * one.nano_epsilon, 210 * one.nano_rho)
    mean = Charge(*((a + b) // 2 for a, b in zip(together, apart, strict=True)))
    assert either.limit.admits(together)
    assert either.limit.admits(apart)
    assert not either.limit.admits(mean)
    pure = BudgetPolicy(epsilon=8.0, delta=1e-6, pure=True)
    assert pure.limit.admits(together)
    assert not pure.limit.admits(apart)


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
