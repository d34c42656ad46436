"""The ledger's examinations, against an independent accountant and against broken ones."""

import math
from fractions import Fraction

import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.rdp import RdpAccountant

from discreet.audit.mechanisms.ledgers import (
    DECISIONS,
    DELTA,
    book_if_admitted,
    count_decisions,
    epsilon_of_rho,
    examine_adaptive_spending,
    examine_decisions,
    examine_exact_release,
    examine_guard,
    examine_limit,
    examine_prices,
    examine_unknown,
    priced_events,
)
from discreet.errors import UnknownEvent
from discreet.privacy import events
from discreet.privacy.accountants import (
    BasicAccountant,
    Budget,
    EitherAccountant,
    ZCDPAccountant,
)
from discreet.privacy.charges import NEVER, Charge, Limit
from discreet.privacy.noise import require_production

RULE = ZCDPAccountant(release_delta=1e-9)
RULES = {rule.name: rule for rule in (BasicAccountant(), ZCDPAccountant(), EitherAccountant())}


@pytest.mark.parametrize("rho", [0.001, 0.02436, 0.5, 3.0])
def test_the_certified_conversion_is_tight(rho: float) -> None:
    """A Gaussian of multiplier 1/sqrt(2 rho) has exactly the divergences rho * alpha.

    The other accountant minimises the same bound over a fixed list of orders, so it may only be
    a little above.
    """
    orders = [1 + 10 ** (k / 50) for k in range(-100, 250)]
    oracle = RdpAccountant(orders)
    oracle.compose(GaussianDpEvent((2 * rho) ** -0.5))
    certified = float(epsilon_of_rho(Fraction(rho), Fraction(1, 10**6)))
    assert certified <= oracle.get_epsilon(1e-6) * (1 + 1e-9)
    assert certified == pytest.approx(oracle.get_epsilon(1e-6), rel=1e-3)


def test_no_order_gives_less_than_the_search_found() -> None:
    rho, delta = Fraction(1, 20), Fraction(1, 10**6)
    found = float(epsilon_of_rho(rho, delta))
    for k in range(1, 4000):
        alpha = 1 + k / 10
        value = float(rho) * alpha + math.log1p(-1 / alpha) - math.log(1e-6 * alpha) / (alpha - 1)
        assert found <= value + 1e-9


def test_every_decision_that_a_budget_pays_for_is_admitted_and_no_other() -> None:
    for name, epsilon in DECISIONS:
        assert examine_decisions(RULES[name], epsilon).holds


def test_decisions_are_counted_for_every_rule() -> None:
    assert {name for name, _ in DECISIONS} == set(RULES)


def test_one_unit_more_on_the_charge_is_one_decision_less() -> None:
    """At a budget of 1 the tenth decision fits to the last nano-unit."""

    class Dear(BasicAccountant):
        def charge(self, event: events.PrivacyEvent) -> Charge:
            return BasicAccountant.charge(self, event) + Charge(nano_epsilon=1)

    event, budget = events.ExponentialChoice(0.1), Budget(1.0, 1e-6)
    assert count_decisions(BasicAccountant(), event, budget) == 10
    assert count_decisions(Dear(), event, budget) == 9
    assert not examine_decisions(Dear(), 1.0).holds


def test_a_charge_short_by_one_unit_is_noticed() -> None:
    """Not every price ends on a whole unit, so one unit less is too little for some."""

    def short(event: events.PrivacyEvent) -> Charge:
        charged = RULE.charge(event)
        return Charge(charged.nano_epsilon - 1, charged.nano_rho, charged.pico_delta)

    assert examine_prices(RULE.charge).holds
    assert not examine_prices(short).holds


def test_every_kind_of_event_is_among_the_priced_ones() -> None:
    assert examine_unknown(RULE.charge).holds
    kinds = {type(event) for event, _, _ in priced_events()}
    assert events.TruncatedChoice in kinds
    assert events.ExactRelease not in kinds


def test_an_accountant_that_refuses_every_event_fails_the_examination() -> None:
    def refuse(event: events.PrivacyEvent) -> Charge:
        raise UnknownEvent("no")

    with pytest.raises(UnknownEvent):
        examine_unknown(refuse)


def test_a_full_ledger_is_worth_its_budget_and_hardly_less() -> None:
    for rule in RULES.values():
        found = examine_limit(rule, 2.0)
        assert found.holds
        assert found.measured > 2.0 - 1e-6


def test_a_limit_a_millionth_too_wide_is_noticed() -> None:
    class Wide(ZCDPAccountant):
        def limit(self, budget: Budget) -> Limit:
            rho = ZCDPAccountant.limit(self, budget).nano_rho
            return Limit(nano_epsilon=NEVER, nano_rho=rho + rho // 1_000_000)

    assert not examine_limit(Wide(), 2.0).holds


def test_no_rule_admits_the_data_themselves() -> None:
    assert examine_exact_release(tuple(RULES.values())).holds


def test_the_cleverest_spender_finds_a_limit_that_is_a_fifth_too_wide() -> None:
    """The bound is not tight for a handful of answers; that much more is beyond it."""

    class Wide(BasicAccountant):
        def limit(self, budget: Budget) -> Limit:
            return BasicAccountant.limit(self, Budget(1.2 * budget.epsilon, budget.delta))

    for rule, holds in ((BasicAccountant(), True), (Wide(), False)):
        budget = Budget(1.5, 0.01)
        found = examine_adaptive_spending(rule, book_if_admitted, budget=budget)
        assert found.holds == holds


def test_the_spender_who_may_ask_for_nothing_learns_nothing() -> None:
    found = examine_adaptive_spending(
        EitherAccountant(), lambda limit, total, charge: None, budget=Budget(1.5, DELTA)
    )
    assert found.measured == 0


def test_the_guard_lets_production_in_and_nothing_else() -> None:
    assert examine_guard(require_production).holds
    assert not examine_guard(lambda noise: noise).holds
