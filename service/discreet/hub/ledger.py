"""What all drawings together have cost, in integers that only grow.

Two kinds of items are told apart, and the difference is public: it depends on the controls and the
catalogue alone.

- For an item that was never open, the amounts of all drawings add up (basic composition): that sum
  is the total that the page shows, and the sum that the limit stops.
- An item whose categories all stood at "all" in some drawing was sent as it was. No epsilon bounds
  that. The ledger says so beside the sum, by category, and never again leaves it out.

A drawing is booked by the commit that stores it, before anyone sees it, and stays booked whether or
not it is sent: choosing among drawings would otherwise release more than was paid for.
"""

import json
import sqlite3
from dataclasses import dataclass

from discreet.errors import InvalidArgument
from discreet.hub.database import fact, keep_fact
from discreet.hub.refusals import Refused
from discreet.privacy.accountants import BasicAccountant, Budget
from discreet.privacy.charges import NANO, Charge
from discreet.privacy.events import ExactRelease, PrivacyEvent

DEFAULT_LIMIT = 2.0
MOST_LIMIT = 50.0

_ACCOUNTANT = BasicAccountant()


@dataclass(frozen=True, slots=True)
class Account:
    """Where the ledger stands."""

    drawings: int
    total: Charge
    limit: float
    openly: tuple[str, ...]

    @property
    def epsilon(self) -> float:
        """The sum of all drawings, for items that were never open."""
        return _ACCOUNTANT.spent(self.total, Budget(self.limit)).epsilon


def charge_of(event: PrivacyEvent | None) -> Charge:
    """Return what a drawing costs the items that are not open in it.

    An `ExactRelease` is a drawing whose items are all open or hidden: the others lose nothing by
    it, and for the open ones `openly` speaks, since no finite amount would.
    """
    if event is None or isinstance(event, ExactRelease):
        return Charge()
    return _ACCOUNTANT.charge(event)


def account(work: sqlite3.Connection) -> Account:
    """Return where the ledger stands."""
    total, drawings = Charge(), 0
    openly: dict[str, None] = {}
    rows = work.execute("SELECT nano_epsilon, nano_rho, pico_delta, openly FROM ledger")
    for epsilon, rho, delta, names in rows:
        total += Charge(epsilon, rho, delta)
        drawings += 1
        openly.update(dict.fromkeys(json.loads(names)))
    return Account(drawings, total, float(fact(work, "limit", DEFAULT_LIMIT)), tuple(openly))


def book(work: sqlite3.Connection, charge: Charge, *, openly: tuple[str, ...], now: str) -> int:
    """Book a drawing and return its number. Raises `Refused` if it would pass the limit."""
    standing = account(work)
    limit = _ACCOUNTANT.limit(Budget(standing.limit))
    if not limit.admits(standing.total + charge):
        raise Refused(
            f"This drawing would bring the total to ε "
            f"{(standing.total + charge).nano_epsilon / NANO:.3g}, above the limit of ε "
            f"{standing.limit:g} that you set. What was drawn before can still be sent."
        )
    made = work.execute(
        "INSERT INTO ledger (made, nano_epsilon, nano_rho, pico_delta, openly) "
        "VALUES (?, ?, ?, ?, ?)",
        (now, charge.nano_epsilon, charge.nano_rho, charge.pico_delta, json.dumps(openly)),
    )
    assert made.lastrowid is not None
    return made.lastrowid


def set_limit(work: sqlite3.Connection, limit: float) -> None:
    """Set the most that all drawings together may cost."""
    if not 0 < limit <= MOST_LIMIT:
        raise InvalidArgument("limit", f"must be above 0 and at most {MOST_LIMIT:g}")
    keep_fact(work, "limit", limit)
