"""The claims of the ledger: prices rounded up, limits rounded down, nothing free by omission.

The table of prices is written here a second time, in rationals, so that an accountant that prices
less than the theorems allow is found by comparison and not by reading.

That "admit if either rule admits" is a filter is checked against the worst spender there is: one
who picks the epsilon of the next randomised response after seeing all answers so far. Answers have
odds that are powers of 9/8, so every loss is a whole number of units and the delta of the best
strategy is found by dynamic programming, in rationals.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Protocol

from discreet.audit.claims import AuditRun, Claim, Finding, Method
from discreet.audit.enclosures import exp_interval, float_above, log_interval
from discreet.audit.scripted_noise import ConstantNoise
from discreet.errors import SeededNoiseRefused, UnknownEvent
from discreet.privacy import events
from discreet.privacy.accountants import (
    BasicAccountant,
    Budget,
    EitherAccountant,
    ZCDPAccountant,
)
from discreet.privacy.charges import NANO, NEVER, PICO, UNLIMITED, Charge, Limit
from discreet.privacy.events import PrivacyEvent
from discreet.privacy.noise import NoiseSource, SystemNoise, require_production

DELTA = 1e-6
EPSILONS = (1e-6, 0.01, 0.1, 1 / 3, 0.7, 1.0, 4.0, 20.0)

DECISIONS = {
    ("basic", 1.0): 10,
    ("basic", 2.0): 20,
    ("basic", 8.0): 80,
    ("zcdp", 1.0): 19,
    ("zcdp", 2.0): 70,
    ("zcdp", 8.0): 841,
    ("either", 1.0): 19,
    ("either", 2.0): 70,
    ("either", 8.0): 841,
}
"""How many exponential choices at epsilon 0.1 a budget (epsilon, 1e-6) pays for, by rule.

The rhos of these budgets, 0.02436, 0.08815 and 1.0524, hold 19.5, 70.5 and 841.9 of them.
"""


class CompositionRule(Protocol):
    """What the examinations use of an accountant."""

    @property
    def name(self) -> str: ...

    def charge(self, event: PrivacyEvent) -> Charge: ...

    def limit(self, budget: Budget) -> Limit: ...


@dataclass(frozen=True, slots=True)
class UnpricedEvent(PrivacyEvent):
    """A release that no accountant knows."""


@dataclass(frozen=True, slots=True)
class InheritedEvent(events.ExponentialChoice):
    """A release that inherits from a cheap one and may do more."""


def priced_events() -> Iterator[tuple[PrivacyEvent, Fraction, Fraction]]:
    """Yield events with the least epsilon and rho that the theorems allow, as rationals."""
    for epsilon in EPSILONS:
        exact = min(Fraction(epsilon), Fraction(repr(epsilon)))
        pure = (exact, exact**2 / 2)
        yield events.ExponentialChoice(epsilon), exact, exact**2 / 8
        yield events.RandomisedResponse(epsilon), *pure
        yield events.PermuteAndFlip(epsilon), *pure
        yield events.PureRelease(epsilon, "audit"), *pure
        yield events.Repeated(events.ExponentialChoice(epsilon), 3), 3 * exact, 3 * exact**2 / 8
        both = events.Composed((events.ExponentialChoice(epsilon), events.PermuteAndFlip(epsilon)))
        yield both, 2 * exact, exact**2 / 8 + exact**2 / 2
        ratio = Fraction(1 / epsilon) / 3
        yield events.LaplaceRelease(3.0, 1 / epsilon), ratio, ratio**2 / 2
        yield events.GaussianRelease(3.0, 1 / epsilon), Fraction(0), ratio**2 / 2
    votes = events.TruncatedChoice(3, 14.0, 0.05, 18)
    loss = Fraction(votes.epsilon)
    yield votes, loss, loss**2 / 2
    run = events.ApproximateRelease(0.7, 0.1, 1e-9, "audit")
    yield run, Fraction("0.7"), Fraction("0.1")


def examine_prices(charge: Callable[[PrivacyEvent], Charge]) -> Finding:
    """Measure the largest amount by which a charge falls short of its event's price."""
    short = Fraction(0)
    for event, epsilon, rho in priced_events():
        charged = charge(event)
        # A full column stands for infinity: no limit admits it.
        if charged.nano_epsilon < UNLIMITED:
            short = max(short, epsilon - Fraction(charged.nano_epsilon, NANO))
        if charged.nano_rho < UNLIMITED:
            short = max(short, rho - Fraction(charged.nano_rho, NANO))
    return Finding(0.0, float_above(short), holds=short <= 0)


def examine_unknown(charge: Callable[[PrivacyEvent], Charge]) -> Finding:
    """Count events that should have been refused, or should cost something, and do not."""
    loose = 0
    for stranger in (UnpricedEvent(), InheritedEvent(0.1), events.Repeated(UnpricedEvent(), 2)):
        try:
            charge(stranger)
        except UnknownEvent:
            continue
        loose += 1
    for event, _, _ in priced_events():
        charged = charge(event)
        loose += charged.nano_rho == 0 or charged.nano_epsilon == 0
    known = {type(event) for event, _, _ in priced_events()} | {events.ExactRelease}
    kinds = {
        kind
        for kind in vars(events).values()
        if isinstance(kind, type) and issubclass(kind, PrivacyEvent) and kind is not PrivacyEvent
    }
    # A kind of release that this audit does not price is one that nobody has checked.
    loose += len(kinds - known)
    return Finding(0.0, float(loose), holds=loose == 0)


def examine_exact_release(rules: tuple[CompositionRule, ...]) -> Finding:
    """Count budgets that would pay for a release of the data themselves."""
    admitted = 0
    for rule in rules:
        for budget in (Budget(1.0, DELTA), Budget(1e12, 0.5)):
            total = rule.charge(events.ExactRelease())
            admitted += rule.limit(budget).admits(total)
            admitted += rule.limit(budget).admits(Charge() + total)
    return Finding(0.0, float(admitted), holds=admitted == 0)


def count_decisions(rule: CompositionRule, event: PrivacyEvent, budget: Budget) -> int:
    """Debit until the limit refuses, as the store's script does."""
    charge, limit, total, paid = rule.charge(event), rule.limit(budget), Charge(), 0
    while limit.admits(total + charge):
        total, paid = total + charge, paid + 1
    return paid


def examine_decisions(rule: CompositionRule, epsilon: float) -> Finding:
    """Compare how many decisions a budget admits with how many it must admit, no more, no fewer."""
    expected = DECISIONS[rule.name, epsilon]
    paid = count_decisions(rule, events.ExponentialChoice(0.1), Budget(epsilon, DELTA))
    return Finding(float(expected), float(paid), holds=paid == expected)


def epsilon_of_rho(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon for which rho-zCDP implies (epsilon, delta)-DP, certainly.

    Canonne, Kamath and Steinke (2020), for every alpha > 1:
    epsilon = rho*alpha + ln(1 - 1/alpha) - ln(delta*alpha)/(alpha - 1). Orders are searched by a
    crude descent; whichever is used, the bound is true, because the logarithms are enclosed.
    """

    def bound(alpha: Fraction) -> Fraction:
        gain = log_interval(1 - 1 / alpha).high
        tail = log_interval(delta * alpha).low
        return rho * alpha + gain - tail / (alpha - 1)

    x, step = Fraction(1), Fraction(2)
    best = bound(1 + x)
    while step > 1 + Fraction(1, 2**20):
        for candidate in (x * step, x / step):
            candidate = Fraction(round(candidate * 2**40), 2**40)
            if (value := bound(1 + candidate)) < best:
                x, best = candidate, value
                break
        else:
            step = 1 + (step - 1) / 2
    return best


def examine_limit(rule: CompositionRule, epsilon: float) -> Finding:
    """Turn a ledger that is full under each rule back into an epsilon, and take the larger.

    Logarithms are certified. A rule whose limit is the largest that a column holds is no limit.
    """
    limit, delta = rule.limit(Budget(epsilon, DELTA)), Fraction(repr(DELTA))
    claimed = Fraction(repr(epsilon))
    if UNLIMITED in (limit.nano_epsilon, limit.nano_rho):
        return Finding(float(claimed), math.inf, holds=False)
    spent = Fraction(0)
    if limit.nano_epsilon != NEVER:
        spent = Fraction(limit.nano_epsilon, NANO)
    if limit.nano_rho != NEVER:
        spent = max(spent, epsilon_of_rho(Fraction(limit.nano_rho, NANO), delta))
    within = limit.pico_delta == UNLIMITED or Fraction(limit.pico_delta, PICO) <= delta
    return Finding(float(claimed), float_above(spent), holds=spent <= claimed and within)


Book = Callable[[Limit, Charge, Charge], Charge | None]
"""(limit, total, charge) -> the total after the charge, or None if it is refused."""

_ODDS = Fraction(9, 8)
_UNIT = "0.117783036"
"""A decimal just above ln(9/8)."""
_UNITS = (1, 5)


def book_if_admitted(limit: Limit, total: Charge, charge: Charge) -> Charge | None:
    """Book as the stores do."""
    after = total + charge
    return after if limit.admits(after) else None


def examine_adaptive_spending(rule: CompositionRule, book: Book, *, budget: Budget) -> Finding:
    """Compare the delta of the cleverest adaptive spender with the budget's.

    With L the loss so far, a strategy is worth E[max(0, 1 - exp(epsilon - L))]: the delta that its
    answers have at epsilon. The spender stops, or asks for a randomised response of any of a few
    epsilons that the ledger still admits.
    """
    limit = rule.limit(budget)
    charges = {
        units: rule.charge(events.RandomisedResponse(float(units * Fraction(_UNIT))))
        for units in _UNITS
    }
    growth = exp_interval(Fraction(repr(budget.epsilon))).low

    @cache
    def worth(total: Charge, loss: int) -> Fraction:
        best = max(Fraction(0), 1 - growth / _ODDS**loss)
        for units, charge in charges.items():
            after = book(limit, total, charge)
            if after is not None:
                truth = _ODDS**units / (_ODDS**units + 1)
                found = truth * worth(after, loss + units) + (1 - truth) * worth(
                    after, loss - units
                )
                # Rounded up to a few words: exact fractions would grow with every answer.
                best = max(best, Fraction(math.ceil(found * 2**96), 2**96))
        return best

    measured = worth(Charge(), 0)
    claimed = Fraction(repr(budget.delta))
    return Finding(float(claimed), float_above(measured), holds=measured <= claimed)


class SubclassedNoise(SystemNoise):
    """A subclass that calls itself production and could answer anything."""


class DisguisedNoise(ConstantNoise):
    """A constant that calls itself production."""

    production = True


def examine_guard(guard: Callable[[NoiseSource], NoiseSource]) -> Finding:
    """Count noise sources that are let through and should not be, or the other way round."""
    wrong = 0
    for source in (ConstantNoise(), DisguisedNoise(), SubclassedNoise()):
        try:
            guard(source)
        except SeededNoiseRefused:
            continue
        wrong += 1
    try:
        guard(SystemNoise())
    except SeededNoiseRefused:
        wrong += 1
    return Finding(0.0, float(wrong), holds=wrong == 0)


def claims() -> Iterator[Claim]:
    """Yield the claims of prices, limits, refusals and the guard at the door."""
    basic, zcdp = BasicAccountant(release_delta=1e-9), ZCDPAccountant(release_delta=1e-9)
    either = EitherAccountant()
    rules: tuple[CompositionRule, ...] = (basic, zcdp, either)
    yield Claim("charges: largest shortfall", Method.EXACT, lambda _: examine_prices(basic.charge))
    yield Claim(
        "charges: unknown or free releases", Method.EXACT, lambda _: examine_unknown(zcdp.charge)
    )
    yield Claim(
        "charges: budgets that admit the data themselves",
        Method.EXACT,
        lambda _: examine_exact_release(rules),
    )
    for rule in rules:
        for epsilon in (1.0, 2.0, 8.0):

            def full(
                _: AuditRun, rule: CompositionRule = rule, epsilon: float = epsilon
            ) -> Finding:
                return examine_limit(rule, epsilon)

            def decisions(
                _: AuditRun, rule: CompositionRule = rule, epsilon: float = epsilon
            ) -> Finding:
                return examine_decisions(rule, epsilon)

            yield Claim(
                f"{rule.name} ledger, budget {epsilon:g}: epsilon when full", Method.EXACT, full
            )
            yield Claim(
                f"{rule.name} ledger, budget {epsilon:g}: decisions at epsilon 0.1",
                Method.EXACT,
                decisions,
            )
    yield Claim(
        "either ledger, the cleverest adaptive spender: delta",
        Method.EXACT,
        lambda _: examine_adaptive_spending(either, book_if_admitted, budget=Budget(1.5, 0.01)),
    )
    yield Claim(
        "noise that a server must refuse", Method.EXACT, lambda _: examine_guard(require_production)
    )
