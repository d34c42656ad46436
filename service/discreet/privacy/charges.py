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
from typing import NamedTuple

from discreet.errors import InvalidArgument

NANO = 10**9
PICO = 10**12
UNLIMITED = 2**53 - 1
"""Both "no limit on this column" and the most that a column can hold; sums saturate here."""
NEVER = -1
"""The limit of a rule that is not in use: no total is within it."""


def decimal(amount: float | Fraction) -> Fraction:
    """Return the number that a person wrote: the shortest decimal that reads back as this float.

    0.1 is stored a little above one tenth. Taking that binary value at its word would charge
    100,000,001 nano-units for it, and a budget of 1 would end after nine decisions. So a parameter
    means its decimal, and a mechanism that is given a float must keep the decimal's promise.
    """
    return amount if isinstance(amount, Fraction) else Fraction(repr(float(amount)))


def _check(amount: float | Fraction) -> None:
    if amount != amount or amount < 0:
        raise InvalidArgument("amount", "must be a number that is not negative")


def round_up(amount: float | Fraction, units: int) -> int:
    """Return `amount` in integer units, rounded up, for costs; infinity becomes `UNLIMITED`.

    A float that prints as a whole number of units is that number; any other is taken at the
    larger of its decimal and its binary value.
    """
    _check(amount)
    if amount == math.inf:
        return UNLIMITED
    exact = decimal(amount)
    if exact * units % 1:
        exact = max(exact, Fraction(amount))
    return min(math.ceil(exact * units), UNLIMITED)


def round_down(amount: float | Fraction, units: int) -> int:
    """Return `amount` in integer units, rounded down, for limits; infinity becomes `UNLIMITED`."""
    _check(amount)
    if amount == math.inf:
        return UNLIMITED
    exact = decimal(amount)
    if exact * units % 1:
        exact = min(exact, Fraction(amount))
    return min(math.floor(exact * units), UNLIMITED)


def _check_column(name: str, amount: int) -> None:
    if isinstance(amount, bool) or not isinstance(amount, int) or not 0 <= amount <= UNLIMITED:
        raise InvalidArgument(name, "must be an integer from 0 to 2**53 - 1")


class _Columns(NamedTuple):
    nano_epsilon: int
    nano_rho: int
    pico_delta: int


class Charge(_Columns):
    """An amount in every column of the ledger: a cost, or the sum of costs so far.

    A tuple, because every answer looks up several things by what was charged.
    """

    __slots__ = ()

    def __new__(cls, nano_epsilon: int = 0, nano_rho: int = 0, pico_delta: int = 0) -> "Charge":
        """Refuse a column that no ledger can hold."""
        _check_column("nano_epsilon", nano_epsilon)
        _check_column("nano_rho", nano_rho)
        _check_column("pico_delta", pico_delta)
        return super().__new__(cls, nano_epsilon, nano_rho, pico_delta)

    def __add__(self, other: "Charge") -> "Charge":  # type: ignore[override]
        return Charge(
            min(self.nano_epsilon + other.nano_epsilon, UNLIMITED),
            min(self.nano_rho + other.nano_rho, UNLIMITED),
            min(self.pico_delta + other.pico_delta, UNLIMITED),
        )


@dataclass(frozen=True, slots=True)
class Limit:
    """What a ledger may hold after a debit: within the epsilon rule, or within the rho rule.

    A total is admitted if its delta is within `pico_delta` and its epsilon is within
    `nano_epsilon` *or* its rho is within `nano_rho`. `NEVER` turns a rule off, `UNLIMITED` admits
    everything.

    Why "either" is a valid filter. Sums only grow, so a rule that has failed stays failed. If the
    last admitted total is within the epsilon rule, the privacy loss is at most that epsilon, for
    certain. Otherwise it is within the rho rule, and then every total before it was too: up to the
    end the run is one that the rho rule alone would have admitted. So the outcomes on which the
    loss exceeds epsilon all belong to the rho-filtered run, whose share of them is at most delta.
    """

    nano_epsilon: int = UNLIMITED
    nano_rho: int = UNLIMITED
    pico_delta: int = UNLIMITED

    def __post_init__(self) -> None:
        for name in ("nano_epsilon", "nano_rho"):
            if getattr(self, name) != NEVER:
                _check_column(name, getattr(self, name))
        _check_column("pico_delta", self.pico_delta)

    def admits(self, total: Charge) -> bool:
        """Tell whether a ledger holding `total` is within this limit; the scripts mirror it."""
        return total.pico_delta <= self.pico_delta and (
            total.nano_epsilon <= self.nano_epsilon or total.nano_rho <= self.nano_rho
        )
