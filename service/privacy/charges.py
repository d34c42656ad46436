"""Money: what a release costs and what a principal may spend, as integers that only add.

The ledger runs inside the store, where numbers are doubles. So amounts are integers below 2**53,
in which doubles are exact: nano-epsilon, nano-rho and pico-delta. Costs round up, limits round
down; the difference is never in the spender's favour.

Both compositions are booked side by side on every release, whichever of them is enforced, so
that changing `accounting` later starts from the truth.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

NANO = 10**9
PICO = 10**12
UNLIMITED = 2**53 - 1
"""Both "no limit on this column" and the most that a column can hold; sums saturate here."""


def round_up(amount: float | Fraction, units: int) -> int:
    """Return `amount` in integer units, rounded up; infinity becomes `UNLIMITED`.

    The float is taken at its exact binary value: 0.1 is a little above one tenth, and rounding
    0.1 * 10**9 up would charge 100,000,001 nano-units for it, so amounts within half a unit in the
    last place of a whole number of units count as that number.
    """
    if isinstance(amount, float):
        if math.isnan(amount) or amount < 0:
            raise ValueError("an amount is a number that is not negative")
        if math.isinf(amount):
            return UNLIMITED
        decimal = Fraction(repr(amount))  # the shortest decimal that reads back as this float
        amount = max(decimal, Fraction(amount)) if decimal * units % 1 else decimal
    return min(math.ceil(amount * units), UNLIMITED)


def round_down(amount: float | Fraction, units: int) -> int:
    """Return `amount` in integer units, rounded down, for limits."""
    if isinstance(amount, float):
        if math.isnan(amount) or amount < 0:
            raise ValueError("an amount is a number that is not negative")
        if math.isinf(amount):
            return UNLIMITED
        amount = Fraction(repr(amount))
    return min(math.floor(amount * units), UNLIMITED)


@dataclass(frozen=True, slots=True)
class Charge:
    """An amount in every column of the ledger: a cost, or the sum of costs so far."""

    nano_epsilon: int = 0
    nano_rho: int = 0
    pico_delta: int = 0

    def __add__(self, other: "Charge") -> "Charge":
        return Charge(
            min(self.nano_epsilon + other.nano_epsilon, UNLIMITED),
            min(self.nano_rho + other.nano_rho, UNLIMITED),
            min(self.pico_delta + other.pico_delta, UNLIMITED),
        )


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that each column may hold after a debit; `UNLIMITED` ones are booked only."""

    nano_epsilon: int = UNLIMITED
    nano_rho: int = UNLIMITED
    pico_delta: int = UNLIMITED

    def admits(self, total: Charge) -> bool:
        """Tell whether a ledger holding `total` is within this limit; the script mirrors it."""
        return (
            (self.nano_epsilon == UNLIMITED or total.nano_epsilon <= self.nano_epsilon)
            and (self.nano_rho == UNLIMITED or total.nano_rho <= self.nano_rho)
            and (self.pico_delta == UNLIMITED or total.pico_delta <= self.pico_delta)
        )
