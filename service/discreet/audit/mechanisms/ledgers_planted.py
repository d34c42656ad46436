"""Prices, limits, guards and calibrations broken on purpose."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from discreet.audit.claims import PlantedFault
from discreet.audit.mechanisms.calibrations import (
    examine_gaussian_scale,
    examine_sensitivity,
    half_vector,
)
from discreet.audit.mechanisms.ledgers import (
    examine_adaptive_spending,
    examine_exact_release,
    examine_guard,
    examine_limit,
    examine_prices,
    examine_unknown,
)
from discreet.errors import SeededNoiseRefused, UnknownEvent
from discreet.privacy import events
from discreet.privacy.accountants import Budget, EitherAccountant, ZCDPAccountant
from discreet.privacy.charges import NANO, NEVER, UNLIMITED, Charge, Limit
from discreet.privacy.events import PrivacyEvent
from discreet.privacy.matrices import Neighbours
from discreet.privacy.noise import NoiseSource

HONEST = ZCDPAccountant(release_delta=1e-9, reserved_delta=1e-9)


def rounded_down(event: PrivacyEvent) -> Charge:
    """Charge whole units only, as an integer conversion does when nobody thinks about it."""
    price = HONEST.price(event)
    if math.isinf(price.epsilon):
        return HONEST.charge(event)
    return Charge(min(int(price.epsilon * NANO), UNLIMITED), min(int(price.rho * NANO), UNLIMITED))


def free_if_unknown(event: PrivacyEvent) -> Charge:
    """Charge nothing for what has no price."""
    try:
        return HONEST.charge(event)
    except UnknownEvent:
        return Charge()


def by_inheritance(event: PrivacyEvent) -> Charge:
    """Charge a subclass like what it inherits from."""
    if isinstance(event, events.ExponentialChoice):
        return HONEST.charge(events.ExponentialChoice(event.epsilon))
    return HONEST.charge(event)


def bounded_range_for_all(event: PrivacyEvent) -> Charge:
    """Price every pure release as if its loss spanned epsilon only."""
    if isinstance(event, events.RandomisedResponse | events.PermuteAndFlip):
        return HONEST.charge(events.ExponentialChoice(event.epsilon))
    return HONEST.charge(event)


@dataclass(frozen=True, slots=True)
class GenerousLimit(ZCDPAccountant):
    """Turns (epsilon, delta) into rho by the rule for pure privacy, which forgets the tail."""

    def limit(self, budget: Budget) -> Limit:
        return Limit(nano_epsilon=NEVER, nano_rho=int(budget.epsilon**2 / 2 * NANO))


@dataclass(frozen=True, slots=True)
class OverflowIsUnlimited(ZCDPAccountant):
    """Takes a limit that fills its column for no limit at all, so that infinity fits in."""

    limits: Limit = field(default_factory=Limit)

    def limit(self, budget: Budget) -> Limit:
        return self.limits


@dataclass(frozen=True, slots=True)
class UnusedRuleUnlimited(ZCDPAccountant):
    """Leaves the rule that it does not use without a limit: then that one admits everything."""

    def limit(self, budget: Budget) -> Limit:
        return Limit(nano_rho=ZCDPAccountant.limit(self, budget).nano_rho)


def book_one_column(limit: Limit, total: Charge, charge: Charge) -> Charge | None:
    """Book a release under the rule that admits it, and not under the other."""
    by_epsilon = Charge(total.nano_epsilon + charge.nano_epsilon, total.nano_rho)
    if by_epsilon.nano_epsilon <= limit.nano_epsilon:
        return by_epsilon
    by_rho = Charge(total.nano_epsilon, total.nano_rho + charge.nano_rho)
    return by_rho if by_rho.nano_rho <= limit.nano_rho else None


def take_its_word(noise: NoiseSource) -> NoiseSource:
    """Let in whatever calls itself production."""
    if not noise.production:
        raise SeededNoiseRefused()
    return noise


def textbook_scale(epsilon: float, delta: float, releases: int) -> float:
    """Return sqrt(2 ln(1.25/delta)) / epsilon, whose proof ends at epsilon 1."""
    return math.sqrt(2 * releases * math.log(1.25 / delta)) / epsilon


def single_release_scale(epsilon: float, delta: float, releases: int) -> float:
    """Return the scale for one release, however many there will be."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def faults() -> Iterator[PlantedFault]:
    """Yield every broken rule with the examination that must notice it."""
    yield PlantedFault("charges rounded down", lambda _: examine_prices(rounded_down))
    yield PlantedFault(
        "every pure release priced as bounded range",
        lambda _: examine_prices(bounded_range_for_all),
    )
    yield PlantedFault("unknown event priced as free", lambda _: examine_unknown(free_if_unknown))
    yield PlantedFault(
        "unknown event priced by inheritance", lambda _: examine_unknown(by_inheritance)
    )
    yield PlantedFault(
        "exact release that fits an unlimited column",
        lambda _: examine_exact_release((OverflowIsUnlimited(),)),
    )
    yield PlantedFault(
        "budget converted as pure privacy", lambda _: examine_limit(GenerousLimit(), 2.0)
    )
    yield PlantedFault(
        "a rule that is not used, left without a limit",
        lambda _: examine_limit(UnusedRuleUnlimited(), 2.0),
    )
    yield PlantedFault(
        "releases booked under the rule that admits them only",
        lambda _: examine_adaptive_spending(
            EitherAccountant(), book_one_column, budget=Budget(1.5, 0.01)
        ),
    )
    yield PlantedFault("noise taken at its word", lambda _: examine_guard(take_its_word))
    yield PlantedFault(
        "textbook Gaussian scale beyond its proof",
        lambda _: examine_gaussian_scale(textbook_scale, epsilon=10.0, delta=1e-5, releases=1),
    )
    yield PlantedFault(
        "noise for one release, used for ten",
        lambda _: examine_gaussian_scale(
            single_release_scale, epsilon=1.0, delta=1e-6, releases=10
        ),
    )
    yield PlantedFault(
        "sensitivity of outer products without the cross terms",
        lambda _: examine_sensitivity(2.0, half_vector, Neighbours.REPLACE, starts=6),
    )
