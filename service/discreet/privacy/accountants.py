"""When to stop: two composition rules as filters over integers. Prices are in `pricing`.

A principal's releases are chosen as the service goes along, so composition must hold for
costs that depend on earlier answers. Both rules are filters in the sense of Rogers, Roth, Ullman
and Vadhan ("Privacy odometers and filters: pay-as-you-go composition", NeurIPS 2016): stopping
*before* the sum passes a fixed limit is as private as the limit says, however adaptively the costs
were chosen. That paper proves it for sums of (epsilon, delta). For sums of rho it is the Renyi
filter of Feldman and Zrnic ("Individual privacy accounting via a Renyi filter", NeurIPS 2021),
applied at every order with the same rho; Whitehouse, Ramdas, Rogers and Wu ("Fully-adaptive
composition in differential privacy", ICML 2023) give the same filter for (approximate) zCDP. The
converse bookkeeping, an odometer that reads (epsilon, delta) off at a time chosen by the answers,
would cost more; so the rho limit is fixed in advance, converted once, and `spent` is a report.
Requests of one principal may overlap in time: filters survive concurrency (Haney, Shoemate, Tian,
Vadhan, Vyrros, Xu and Zhang, CCS 2023). So the ledger only adds and compares.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal, Protocol

from discreet.errors import InvalidArgument
from discreet.privacy.charges import (
    NANO,
    NEVER,
    PICO,
    UNLIMITED,
    Charge,
    Limit,
    decimal,
    round_down,
    round_up,
)
from discreet.privacy.conversions import check_delta, check_epsilon, zcdp_epsilon, zcdp_rho
from discreet.privacy.events import ApproximateRelease, Composed, PrivacyEvent, Repeated
from discreet.privacy.pricing import Cost, cost_of, float_above


@dataclass(frozen=True, slots=True)
class Budget:
    """An (epsilon, delta): what is promised, or what of it is spent or left.

    A promise must be finite and positive, which `Accountant.limit` checks; spending may be nothing
    and, when something without any privacy was released, infinite.
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if math.isnan(self.epsilon) or self.epsilon < 0:
            raise InvalidArgument("budget.epsilon", "must be a number that is not negative")
        if not 0 <= self.delta <= 1:
            raise InvalidArgument("budget.delta", "must lie in [0, 1)")


@dataclass(frozen=True, slots=True)
class Price:
    """What a release costs under both rules, as floats rounded up, for people to read."""

    epsilon: float
    delta: float
    rho: float


class Accountant(Protocol):
    """A composition rule. All methods are pure; none of them keeps a balance."""

    @property
    def name(self) -> Literal["basic", "zcdp"]:
        """The word that a configuration uses for this rule."""
        ...

    def price(self, event: PrivacyEvent) -> Price:
        """Return what the release costs. Raises `UnknownEvent`: nothing is free by omission."""
        ...

    def charge(self, event: PrivacyEvent) -> Charge:
        """Return the cost in every column of the ledger, rounded up."""
        ...

    def limit(self, budget: Budget) -> Limit:
        """Return the columns' limits for a promise, rounded down; never unlimited where enforced.

        A charge that saturates a column is therefore refused by every limit that enforces it.
        """
        ...

    def spent(self, total: Charge, budget: Budget) -> Budget:
        """Return what a ledger holding `total` has given away, never too little.

        Infinite only if a release without a finite price was booked.
        """
        ...

    def remaining(self, total: Charge, budget: Budget) -> Budget:
        """Return what of the promise is left, never too much."""
        ...


def _check_promise(budget: Budget) -> None:
    check_epsilon(budget.epsilon, name="budget.epsilon")
    check_delta(budget.delta, zero_allowed=True, name="budget.delta")


@lru_cache(maxsize=1024)
def _nano_epsilon(budget: Budget) -> int:
    return min(round_down(budget.epsilon, NANO), UNLIMITED - 1)


@dataclass(frozen=True, slots=True)
class _Spent:
    """Spending in the ledger's unit, `UNLIMITED` standing for infinity, as every report wants."""

    nano_epsilon: int
    delta: float

    def shown(self) -> Budget:
        infinite = self.nano_epsilon == UNLIMITED
        return Budget(math.inf if infinite else self.nano_epsilon / NANO, self.delta)

    def left_of(self, budget: Budget) -> Budget:
        if self.delta == 0:
            delta = budget.delta
        elif self.delta >= budget.delta:
            delta = 0.0
        else:
            delta = round_down(decimal(budget.delta) - decimal(self.delta), PICO) / PICO
        return Budget(max(_nano_epsilon(budget) - self.nano_epsilon, 0) / NANO, delta)


@dataclass(frozen=True, slots=True)
class _Pricing:
    """Both rules book the same amounts; they differ in which columns they enforce and report."""

    release_delta: float | None = None

    def __post_init__(self) -> None:
        if self.release_delta is not None:
            check_delta(self.release_delta, name="release_delta")

    def price(self, event: PrivacyEvent) -> Price:
        cost = self._cost(event)
        return Price(float_above(cost.epsilon), float_above(cost.delta), float_above(cost.rho))

    def charge(self, event: PrivacyEvent) -> Charge:
        return _rounded(self._cost(event))

    def _cost(self, event: PrivacyEvent) -> Cost:
        return cost_of(event, self.release_delta)


@lru_cache(maxsize=4096)
def _rounded(cost: Cost) -> Charge:
    return Charge(
        nano_epsilon=round_up(cost.epsilon, NANO),
        nano_rho=round_up(cost.rho, NANO),
        pico_delta=round_up(cost.delta, PICO),
    )


@dataclass(frozen=True, slots=True)
class BasicAccountant(_Pricing):
    """Epsilons add up, deltas add up."""

    name: ClassVar[Literal["basic", "zcdp"]] = "basic"

    def limit(self, budget: Budget) -> Limit:
        _check_promise(budget)
        return Limit(
            nano_epsilon=_nano_epsilon(budget),
            nano_rho=NEVER,
            pico_delta=round_down(budget.delta, PICO),
        )

    def spent(self, total: Charge, budget: Budget) -> Budget:
        return _booked(total).shown()

    def remaining(self, total: Charge, budget: Budget) -> Budget:
        return _booked(total).left_of(budget)


def _booked(total: Charge) -> _Spent:
    return _Spent(total.nano_epsilon, min(total.pico_delta / PICO, 1.0))


@dataclass(frozen=True, slots=True)
class ZCDPAccountant(_Pricing):
    """Rhos add up; the promise (epsilon, delta) is turned into one limit on their sum.

    `reserved_delta` is the part of the promised delta that is kept for releases which have a delta
    of their own (`ApproximateRelease`): their deltas may sum to no more than that, and the rhos
    are converted at the rest. Why that holds: let B be the event, of probability at most the sum of
    the deltas, that some release's bound fails. Outside B the moments of the summed losses are
    bounded as for rho-zCDP, and the conversion needs nothing else, so P(S) <= P(B) + P(S, not B)
    <= reserved + exp(epsilon) Q(S) + rest. Without a reserve their price is infinite.
    """

    reserved_delta: float = 0.0
    name: ClassVar[Literal["basic", "zcdp"]] = "zcdp"

    def __post_init__(self) -> None:
        # Named because `super()` needs the class that slots replace.
        _Pricing.__post_init__(self)
        check_delta(self.reserved_delta, zero_allowed=True, name="reserved_delta")

    def _cost(self, event: PrivacyEvent) -> Cost:
        cost = _Pricing._cost(self, event)
        if self.reserved_delta == 0 and _has_own_delta(event):
            return replace(cost, rho=math.inf)
        return cost

    def limit(self, budget: Budget) -> Limit:
        _check_promise(budget)
        if budget.delta == 0:
            raise InvalidArgument(
                "budget.delta",
                "must be greater than 0 with zcdp accounting, which cannot promise pure privacy; "
                "give a delta such as 1e-6 or use basic accounting",
            )
        rho = zcdp_rho(epsilon=budget.epsilon, delta=self._converted_at(budget))
        nano_rho = min(round_down(rho, NANO), UNLIMITED - 1)
        # Without a reserve a release with a delta of its own has an infinite rho, and is refused.
        own = round_down(self.reserved_delta, PICO) if self.reserved_delta else UNLIMITED
        return Limit(nano_epsilon=NEVER, nano_rho=nano_rho, pico_delta=own)

    def _converted_at(self, budget: Budget) -> float:
        """Return the delta that is left for the conversion of rho, rounded down."""
        if self.reserved_delta == 0:
            return budget.delta
        rest = decimal(budget.delta) - decimal(self.reserved_delta)
        if rest <= 0:
            raise InvalidArgument("budget.delta", "must be above what is reserved of it")
        return math.nextafter(float(rest), 0.0)

    def spent(self, total: Charge, budget: Budget) -> Budget:
        return self._spent(total, budget).shown()

    def remaining(self, total: Charge, budget: Budget) -> Budget:
        return self._spent(total, budget).left_of(budget)

    def _spent(self, total: Charge, budget: Budget) -> _Spent:
        """Return the smaller of the two statements that hold for the total at the budget's delta.

        A few releases cost less as a plain sum of epsilons than after conversion from rho; both
        columns are booked, and both bounds are true. Divisions and products round to nearest, so
        each is nudged up by more than it can have lost.
        """
        booked = _booked(total)
        converted = UNLIMITED
        if total.nano_rho < UNLIMITED:
            rho = total.nano_rho / NANO * (1 + 2.0**-51)
            epsilon = zcdp_epsilon(rho=rho, delta=self._converted_at(budget))
            converted = min(math.ceil(epsilon * NANO * (1 + 2.0**-51)), UNLIMITED)
        if booked.nano_epsilon <= converted and booked.delta <= budget.delta:
            return booked
        return _Spent(converted, budget.delta)


@dataclass(frozen=True, slots=True)
class EitherAccountant:
    """Admits what the sum of epsilons or the sum of rhos admits: never worse than one of them.

    `charges.Limit` has the proof. At epsilon 0.1 a draw, a budget of (8, 1e-6) admits 210 of them
    by rho and 80 by epsilon. An exact accounting of randomised response would admit 238; that
    difference is left on the table for a filter that only adds and compares.
    """

    reserved_delta: float = 0.0
    name: ClassVar[str] = "either"

    @property
    def _rho_rule(self) -> ZCDPAccountant:
        return ZCDPAccountant(None, self.reserved_delta)

    def price(self, event: PrivacyEvent) -> Price:
        return self._rho_rule.price(event)

    def charge(self, event: PrivacyEvent) -> Charge:
        return self._rho_rule.charge(event)

    def limit(self, budget: Budget) -> Limit:
        pure = BasicAccountant().limit(budget)
        if budget.delta == 0:
            return pure
        converted = self._rho_rule.limit(budget)
        return Limit(
            pure.nano_epsilon, converted.nano_rho, min(pure.pico_delta, converted.pico_delta)
        )

    def spent(self, total: Charge, budget: Budget) -> Budget:
        rule = self._rho_rule if budget.delta else BasicAccountant()
        return rule.spent(total, budget)

    def remaining(self, total: Charge, budget: Budget) -> Budget:
        rule = self._rho_rule if budget.delta else BasicAccountant()
        return rule.remaining(total, budget)


def _has_own_delta(event: PrivacyEvent) -> bool:
    if isinstance(event, Repeated):
        return _has_own_delta(event.event)
    if isinstance(event, Composed):
        return any(map(_has_own_delta, event.events))
    return isinstance(event, ApproximateRelease)


def accountant(
    name: str, *, release_delta: float | None = None, reserved_delta: float = 0.0
) -> Accountant:
    """Return the accountant that a configuration's `accounting` names."""
    if name == BasicAccountant.name:
        return BasicAccountant(release_delta)
    if name == ZCDPAccountant.name:
        return ZCDPAccountant(release_delta, reserved_delta)
    raise InvalidArgument("accounting", "must be 'basic' or 'zcdp'")
