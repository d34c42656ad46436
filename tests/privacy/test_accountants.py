"""Two filters with the numbers that design and papers give, through integer charges and limits."""

import math
from fractions import Fraction

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import rdp_privacy_accountant

from discreet.errors import InvalidArgument
from discreet.privacy import events
from discreet.privacy.accountants import (
    BasicAccountant,
    Budget,
    EitherAccountant,
    ZCDPAccountant,
    accountant,
)
from discreet.privacy.charges import NANO, NEVER, UNLIMITED, Charge
from discreet.privacy.conversions import zcdp_epsilon

DELTA = 1e-6


def admitted(name: str, event: events.PrivacyEvent, budget: Budget) -> tuple[int, Charge]:
    """Return how many such releases the filter lets through one by one, and what they cost."""
    rule = accountant(name)
    limit, charge = rule.limit(budget), rule.charge(event)
    total, count = Charge(), 0
    while limit.admits(total + charge):
        total, count = total + charge, count + 1
    return count, total


@pytest.mark.parametrize(("epsilon", "count"), [(1.0, 10), (2.0, 20), (8.0, 80)])
def test_decisions_under_basic_composition(epsilon: float, count: int) -> None:
    budget = Budget(epsilon, DELTA)
    assert admitted("basic", events.ExponentialChoice(0.1), budget)[0] == count
    assert admitted("basic", events.RandomisedResponse(0.1), budget)[0] == count


@pytest.mark.parametrize(("epsilon", "count"), [(1.0, 19), (2.0, 70), (8.0, 841)])
def test_decisions_under_zcdp(epsilon: float, count: int) -> None:
    """rho 0.02436, 0.08815 and 1.0524 hold 19.5, 70.5 and 841.9 decisions: whole ones count."""
    assert admitted("zcdp", events.ExponentialChoice(0.1), Budget(epsilon, DELTA))[0] == count
    # The last one that is refused really is one too many, says another accountant.
    orders = [1 + 10 ** (k / 400) for k in range(-700, 2000)]
    for decisions, within in ((count, True), (count + 1, False)):
        rdp = [decisions * 0.1**2 / 8 * order for order in orders]
        theirs, _ = rdp_privacy_accountant.compute_epsilon(orders, rdp, DELTA)
        assert (theirs <= epsilon) is within


def test_unbounded_range_gets_a_quarter_of_the_decisions() -> None:
    few, _ = admitted("zcdp", events.RandomisedResponse(0.1), Budget(8.0, DELTA))
    many, _ = admitted("zcdp", events.ExponentialChoice(0.1), Budget(8.0, DELTA))
    assert few == many // 4 == 210


@pytest.mark.parametrize("epsilon", [2.0, 4.0])
def test_what_the_filter_admits_keeps_the_promise_exactly(epsilon: float) -> None:
    """The true loss of all admitted randomised responses, composed numerically by another tool."""
    step, arms = 0.1, 2
    count, _ = admitted("zcdp", events.RandomisedResponse(step), Budget(epsilon, DELTA))
    other = 1 / (math.exp(step) + arms - 1)
    one = pld.from_randomized_response(noise_parameter=arms * other, num_buckets=arms)
    assert one.get_epsilon_for_delta(0.0) == pytest.approx(step, abs=1e-3)
    assert one.self_compose(count).get_epsilon_for_delta(DELTA) <= epsilon
    # Priced as if it were of bounded range, four times as many would break the promise.
    assert one.self_compose(4 * count).get_epsilon_for_delta(DELTA) > epsilon


def test_the_columns_that_each_rule_enforces() -> None:
    budget = Budget(1.0, DELTA)
    basic, zcdp = BasicAccountant().limit(budget), ZCDPAccountant().limit(budget)
    assert (basic.nano_epsilon, basic.nano_rho, basic.pico_delta) == (NANO, NEVER, 10**6)
    assert (zcdp.nano_epsilon, zcdp.pico_delta) == (NEVER, UNLIMITED)
    assert zcdp.nano_rho == 24_355_970
    either = EitherAccountant().limit(budget)
    assert (either.nano_epsilon, either.nano_rho) == (NANO, 24_355_970)


def test_both_rules_book_the_same_so_that_one_may_change_to_the_other() -> None:
    for event in (events.ExponentialChoice(0.3), events.GaussianRelease(5.0, 1.0)):
        for delta in (None, 1e-9):
            assert BasicAccountant(delta).charge(event) == ZCDPAccountant(delta).charge(event)


def test_pure_privacy_cannot_be_had_from_zcdp() -> None:
    with pytest.raises(InvalidArgument) as caught:
        ZCDPAccountant().limit(Budget(1.0, 0.0))
    assert caught.value.argument == "budget.delta"
    assert "basic" in caught.value.reason
    assert BasicAccountant().limit(Budget(1.0, 0.0)).pico_delta == 0


def test_a_gaussian_release_without_a_delta_is_unpayable_under_basic_composition() -> None:
    event = events.GaussianRelease(scale=100.0, sensitivity=1.0)
    assert BasicAccountant().charge(event).nano_epsilon == UNLIMITED
    assert admitted("basic", event, Budget(1e300, 0.9))[0] == 0
    assert admitted("zcdp", event, Budget(1.0, DELTA))[0] == 487
    rule = accountant("basic", release_delta=1e-8)
    charge = rule.charge(event)
    assert charge.pico_delta == 10_000
    assert Fraction(charge.nano_epsilon, NANO) >= zcdp_epsilon(rho=0.5e-4, delta=1e-8)


def test_a_few_decisions_are_reported_by_the_plain_sum_and_many_by_conversion() -> None:
    rule, budget = ZCDPAccountant(), Budget(1.0, DELTA)
    charge = rule.charge(events.ExponentialChoice(0.1))
    assert rule.spent(charge, budget) == Budget(0.1, 0.0)
    assert rule.remaining(charge, budget) == Budget(0.9, DELTA)
    total = Charge(19 * charge.nano_epsilon, 19 * charge.nano_rho)
    spent, left = rule.spent(total, budget), rule.remaining(total, budget)
    assert spent.delta == DELTA
    assert left.delta == 0
    assert spent.epsilon == pytest.approx(0.9866013, abs=1e-6)
    assert Fraction(repr(spent.epsilon)) + Fraction(repr(left.epsilon)) == 1


def test_what_cannot_be_priced_is_reported_as_infinite_and_leaves_nothing() -> None:
    for rule in (BasicAccountant(), ZCDPAccountant()):
        charge = rule.charge(events.ExactRelease())
        assert rule.spent(charge, Budget(1.0, DELTA)).epsilon == math.inf
        assert rule.remaining(charge, Budget(1.0, DELTA)).epsilon == 0


def test_a_basic_ledger_reports_its_deltas() -> None:
    rule, budget = BasicAccountant(1e-8), Budget(2.0, DELTA)
    charge = rule.charge(events.GaussianRelease(scale=50.0, sensitivity=1.0))
    assert rule.spent(charge, budget).delta == 1e-8
    assert rule.remaining(charge, budget).delta == 99e-8


@pytest.mark.parametrize(
    ("epsilon", "delta", "argument"),
    [
        (0.0, 0.1, "budget.epsilon"),
        (math.inf, 0.1, "budget.epsilon"),
        (1.0, 1.0, "budget.delta"),
    ],
)
def test_a_promise_must_mean_something(epsilon: float, delta: float, argument: str) -> None:
    for rule in (BasicAccountant(), ZCDPAccountant()):
        with pytest.raises(InvalidArgument) as caught:
            rule.limit(Budget(epsilon, delta))
        assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(-1.0, 0.1), (math.nan, 0.1), (1.0, -0.1), (1.0, 1.1), (1.0, math.nan)]
)
def test_a_budget_is_made_of_numbers_in_range(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidArgument):
        Budget(epsilon, delta)


def test_names() -> None:
    assert accountant("basic").name == "basic"
    assert accountant("zcdp").name == "zcdp"
    with pytest.raises(InvalidArgument) as caught:
        accountant("advanced")
    assert caught.value.argument == "accounting"
    with pytest.raises(InvalidArgument) as caught:
        accountant("basic", release_delta=0.0)
    assert caught.value.argument == "release_delta"


RUN = events.ApproximateRelease(0.5, 1e-3, 1e-8, "a run")


def test_a_release_with_a_delta_of_its_own_costs_both_under_basic_composition() -> None:
    assert BasicAccountant().charge(RUN) == Charge(500_000_000, 1_000_000, 10_000)
    # Ten by epsilon; by delta, 1e-8 each, no more than three.
    assert admitted("basic", RUN, Budget(5.0, 1e-6))[0] == 10
    assert admitted("basic", RUN, Budget(5.0, 3.5e-8))[0] == 3


def test_zcdp_keeps_a_part_of_its_delta_for_releases_that_have_their_own() -> None:
    plain, reserving = ZCDPAccountant(), accountant("zcdp", reserved_delta=5e-7)
    assert plain.charge(RUN).nano_rho == UNLIMITED
    assert plain.charge(events.Repeated(events.Composed((RUN,)), 2)).nano_rho == UNLIMITED
    assert reserving.charge(RUN) == BasicAccountant().charge(RUN)
    budget = Budget(2.0, 1e-6)
    limit = reserving.limit(budget)
    assert limit.pico_delta == 500_000
    # What is left for the conversion is the other half, a little less to be safe.
    whole = ZCDPAccountant().limit(Budget(2.0, 5e-7)).nano_rho
    assert whole - 2 <= limit.nano_rho <= whole
    # Fifty by delta, though rho alone would admit more than eighty.
    total, count = Charge(), 0
    while limit.admits(total + reserving.charge(RUN)):
        total, count = total + reserving.charge(RUN), count + 1
    assert count == 50 < limit.nano_rho // 1_000_000
    shown = reserving.spent(total, budget)
    assert zcdp_epsilon(rho=0.05, delta=5e-7) <= shown.epsilon < 2.0


def test_a_reserve_leaves_something_to_promise_with() -> None:
    with pytest.raises(InvalidArgument) as refusal:
        accountant("zcdp", reserved_delta=1e-6).limit(Budget(1.0, 1e-6))
    assert refusal.value.argument == "budget.delta"
    with pytest.raises(InvalidArgument) as refusal:
        accountant("zcdp", reserved_delta=1.0)
    assert refusal.value.argument == "reserved_delta"
