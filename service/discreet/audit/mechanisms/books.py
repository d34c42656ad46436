"""The claims of the ledger: prices rounded up, limits rounded down, nothing free by omission.

The table of prices is written here a second time, in rationals, so that an accountant that prices
less than the theorems allow is found by comparison and not by reading.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import SeededNoiseRefused, UnknownEvent
from discreet.privacy import events
from discreet.privacy.accountants import Accountant, BasicAccountant, Budget, ZCDPAccountant
from discreet.audit.mechanisms.claims import Bench, Check, Finding, Method
from discreet.audit.mechanisms.enclosures import float_above, log_interval
from discreet.audit.mechanisms.scripted import Hum
from discreet.privacy.charges import NANO, PICO, UNLIMITED, Charge
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
}
"""How many exponential choices at epsilon 0.1 a budget (epsilon, 1e-6) pays for, by rule.

The rhos of these budgets, 0.02436, 0.08815 and 1.0524, hold 19.5, 70.5 and 841.9 of them.
"""


@dataclass(frozen=True, slots=True)
class Unheard(PrivacyEvent):
    """A release that no accountant has been told about."""


@dataclass(frozen=True, slots=True)
class Inherited(events.ExponentialChoice):
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
    for stranger in (Unheard(), Inherited(0.1), events.Repeated(Unheard(), 2)):
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


def examine_exact_release(accountants: tuple[Accountant, ...]) -> Finding:
    """Count budgets that would pay for a release of the data themselves."""
    admitted = 0
    for rule in accountants:
        for budget in (Budget(1.0, DELTA), Budget(1e12, 0.5)):
            total = rule.charge(events.ExactRelease())
            admitted += rule.limit(budget).admits(total)
            admitted += rule.limit(budget).admits(Charge() + total)
    return Finding(0.0, float(admitted), holds=admitted == 0)


def count_decisions(rule: Accountant, event: PrivacyEvent, budget: Budget) -> int:
    """Debit until the limit refuses, as the store's script does."""
    charge, limit, total, paid = rule.charge(event), rule.limit(budget), Charge(), 0
    while limit.admits(total + charge):
        total, paid = total + charge, paid + 1
    return paid


def examine_decisions(rule: Accountant, epsilon: float) -> Finding:
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


def examine_limit(rule: Accountant, epsilon: float) -> Finding:
    """Turn a full ledger back into an epsilon, with certified logarithms, and compare."""
    limit, delta = rule.limit(Budget(epsilon, DELTA)), Fraction(repr(DELTA))
    if limit.nano_rho == UNLIMITED:
        spent = Fraction(limit.nano_epsilon, NANO)
    else:
        spent = epsilon_of_rho(Fraction(limit.nano_rho, NANO), delta)
    within = limit.pico_delta == UNLIMITED or Fraction(limit.pico_delta, PICO) <= delta
    claimed = Fraction(repr(epsilon))
    return Finding(float(claimed), float_above(spent), holds=spent <= claimed and within)


class Boastful(SystemNoise):
    """A subclass that calls itself production and could answer anything."""


class Disguised(Hum):
    """A constant that calls itself production."""

    production = True


def examine_guard(guard: Callable[[NoiseSource], NoiseSource]) -> Finding:
    """Count noise sources that are let through and should not be, or the other way round."""
    wrong = 0
    for source in (Hum(), Disguised(), Boastful()):
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


def book_checks() -> Iterator[Check]:
    """Prices, limits, refusals and the guard at the door."""
    basic, zcdp = BasicAccountant(release_delta=1e-9), ZCDPAccountant(release_delta=1e-9)
    yield Check("charges: largest shortfall", Method.EXACT, lambda _: examine_prices(basic.charge))
    yield Check(
        "charges: unknown or free releases", Method.EXACT, lambda _: examine_unknown(zcdp.charge)
    )
    yield Check(
        "charges: budgets that admit the data themselves",
        Method.EXACT,
        lambda _: examine_exact_release((basic, zcdp)),
    )
    for rule in (basic, zcdp):
        for epsilon in (1.0, 2.0, 8.0):

            def full(_: Bench, rule: Accountant = rule, epsilon: float = epsilon) -> Finding:
                return examine_limit(rule, epsilon)

            def decisions(_: Bench, rule: Accountant = rule, epsilon: float = epsilon) -> Finding:
                return examine_decisions(rule, epsilon)

            yield Check(
                f"{rule.name} ledger, budget {epsilon:g}: epsilon when full", Method.EXACT, full
            )
            yield Check(
                f"{rule.name} ledger, budget {epsilon:g}: decisions at epsilon 0.1",
                Method.EXACT,
                decisions,
            )
    yield Check(
        "noise that a server must refuse", Method.EXACT, lambda _: examine_guard(require_production)
    )
