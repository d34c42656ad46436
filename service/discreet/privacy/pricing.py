"""What one release costs, exactly: a table from kinds of event to rationals.

| release               | basic epsilon       | rho (zCDP)                 | why |
|-----------------------|---------------------|----------------------------|-----|
| `ExponentialChoice`   | epsilon             | epsilon**2 / 8             | 1   |
| `RandomisedResponse`  | epsilon             | epsilon**2 / 2             | 2   |
| `PermuteAndFlip`      | epsilon             | epsilon**2 / 2             | 2   |
| `TruncatedChoice`     | epsilon             | epsilon**2 / 2             | 2   |
| `PureRelease`         | epsilon             | epsilon**2 / 2             | 2   |
| `LaplaceRelease`      | sensitivity / scale | epsilon**2 / 2             | 2   |
| `GaussianRelease`     | at `release_delta`  | (sensitivity/scale)**2 / 2 | 3   |
| `ApproximateRelease`  | epsilon, and delta  | rho, and delta             | 4   |
| `ExactRelease`        | infinite            | infinite                   |     |
| `Repeated`, `Composed`| sums                | sums                       |     |

1. Bounded range: a release whose log-likelihood ratio ranges over an interval of length epsilon
   satisfies epsilon**2/8-zCDP, by Hoeffding's lemma on the privacy loss (Cesar and Rogers,
   "Bounding, concentrating, and truncating", ALT 2021, after Dong, Durfee and Rogers, ICML 2020).
2. Any epsilon-DP release satisfies epsilon**2/2-zCDP (Bun and Steinke, TCC 2016, Proposition 1.4).
   The losses of these span up to 2*epsilon, so rule 1 does not apply to them.
3. Discrete and continuous Gaussian noise alike (Canonne, Kamath and Steinke, NeurIPS 2020). A
   finite basic price needs a delta: `release_delta` is what one such release may add to the delta
   column, and its basic epsilon is the zCDP conversion at that delta, which holds on any lattice.
   (The slightly smaller epsilon of Balle and Wang's curve holds for continuous noise; an event
   does not say how fine its lattice is.)
4. By its own proof. Its delta is the probability of an event outside which the bound holds; such
   events add up over releases, whichever rule adds up the rest. A zCDP ledger has to keep a part
   of its delta for them (`accountants.ZCDPAccountant.reserved_delta`).

Amounts are rationals, so that adding many of them loses nothing; rounding happens once, upwards,
when they become the ledger's integers.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

from discreet.errors import UnknownEvent
from discreet.privacy import events
from discreet.privacy.charges import UNLIMITED, decimal
from discreet.privacy.conversions import zcdp_epsilon

Amount = Fraction | float
"""An exact rational, or infinity: the only float that ever stands here."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a release adds to each column, before rounding."""

    epsilon: Amount
    delta: Amount
    rho: Amount


def _pure(epsilon: Fraction) -> Cost:
    return Cost(epsilon, Fraction(0), epsilon**2 / 2)


def _price_exact(event: events.ExactRelease, _: float | None) -> Cost:
    return Cost(math.inf, Fraction(0), math.inf)


def _price_exponential(event: events.ExponentialChoice, _: float | None) -> Cost:
    epsilon = decimal(event.epsilon)
    return Cost(epsilon, Fraction(0), epsilon**2 / 8)


class _EpsilonDP(Protocol):
    @property
    def epsilon(self) -> float: ...


def _price_pure(event: _EpsilonDP, _: float | None) -> Cost:
    return _pure(decimal(event.epsilon))


def _price_laplace(event: events.LaplaceRelease, _: float | None) -> Cost:
    return _pure(Fraction(event.sensitivity) / Fraction(event.scale))


def _price_gaussian(event: events.GaussianRelease, release_delta: float | None) -> Cost:
    rho = _bounded((Fraction(event.sensitivity) / Fraction(event.scale)) ** 2 / 2)
    if release_delta is None:
        return Cost(math.inf, Fraction(0), rho)
    epsilon = zcdp_epsilon(rho=float_above(rho), delta=release_delta)
    return Cost(_exactly(epsilon), decimal(release_delta), rho)


def _price_approximate(event: events.ApproximateRelease, _: float | None) -> Cost:
    return Cost(decimal(event.epsilon), decimal(event.delta), decimal(event.rho))


def _price_repeated(event: events.Repeated, release_delta: float | None) -> Cost:
    once = cost_of(event.event, release_delta)
    return Cost(once.epsilon * event.times, once.delta * event.times, once.rho * event.times)


def _price_composed(event: events.Composed, release_delta: float | None) -> Cost:
    costs = [cost_of(part, release_delta) for part in event.events]
    return Cost(
        _total(cost.epsilon for cost in costs),
        _total(cost.delta for cost in costs),
        _total(cost.rho for cost in costs),
    )


_PRICES: dict[type[events.PrivacyEvent], Callable[[Any, float | None], Cost]] = {
    events.ExactRelease: _price_exact,
    events.ExponentialChoice: _price_exponential,
    events.RandomisedResponse: _price_pure,
    events.PermuteAndFlip: _price_pure,
    events.PureRelease: _price_pure,
    events.TruncatedChoice: _price_pure,
    events.ApproximateRelease: _price_approximate,
    events.LaplaceRelease: _price_laplace,
    events.GaussianRelease: _price_gaussian,
    events.Repeated: _price_repeated,
    events.Composed: _price_composed,
}


def cost_of(event: events.PrivacyEvent, release_delta: float | None) -> Cost:
    """Price by the exact type: a subclass may release more than what it inherits from."""
    if type(event) not in _PRICES:
        raise UnknownEvent(f"no price is known for {type(event).__name__}; it cannot be released")
    return _cost_of(event, release_delta)


@lru_cache(maxsize=4096)
def _cost_of(event: events.PrivacyEvent, release_delta: float | None) -> Cost:
    cost = _PRICES[type(event)](event, release_delta)
    return Cost(_bounded(cost.epsilon), _bounded(cost.delta), _bounded(cost.rho))


def _bounded(amount: Amount) -> Amount:
    """Turn what no column could hold into infinity, which it will be charged as anyway."""
    return math.inf if amount > UNLIMITED else amount


def _total(amounts: Iterable[Amount]) -> Amount:
    return sum(amounts, start=Fraction(0))


def _exactly(amount: float) -> Amount:
    return amount if math.isinf(amount) else Fraction(amount)


def float_above(amount: Amount) -> float:
    """Return the nearest float that is not below `amount`."""
    nearest = float(amount)
    return nearest if nearest >= amount else math.nextafter(nearest, math.inf)
