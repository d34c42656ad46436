"""What all lists together have cost, in integers that only grow.

Two kinds of items are told apart, and the difference is public: it depends on the controls and the
catalogue alone.

- For an item that was never open, the amounts of all lists add up (basic composition): that sum is
  the total that the page shows, and the sum that the limit stops.
- An item whose categories all stood at "all" for some list was in it as it was. No epsilon bounds
  that. The ledger says so beside the sum, by category, for ever.

A list is booked by the commit that stores it, before anyone sees it, and stays booked whether or
not it is sent: choosing among lists would otherwise reveal more than was paid for.
"""

import json
import sqlite3
from dataclasses import dataclass

from discreet.errors import InvalidArgument
from discreet.hub.database import get_value, set_value
from discreet.hub.errors import HubRefusal
from discreet.privacy.accountants import BasicAccountant, Budget
from discreet.privacy.charges import NANO, Charge
from discreet.privacy.events import ExactRelease, PrivacyEvent

DEFAULT_LIMIT = 2.0
MOST_LIMIT = 50.0

_ACCOUNTANT = BasicAccountant()


@dataclass(frozen=True, slots=True)
class LedgerTotals:
    """What was spent on how many lists, the limit, and the categories that were sent openly."""

    lists: int
    total: Charge
    limit: float
    openly: tuple[str, ...]

    @property
    def epsilon(self) -> float:
        """The sum over all lists, for items that were never open."""
        return _ACCOUNTANT.spent(self.total, Budget(self.limit)).epsilon


def charge_of(event: PrivacyEvent | None) -> Charge:
    """Return what a list costs the items that are not open in it.

    An `ExactRelease` is a list whose items are all open or hidden: the others lose nothing by it,
    and for the open ones `openly` speaks, since no finite amount would.
    """
    if event is None or isinstance(event, ExactRelease):
        return Charge()
    return _ACCOUNTANT.charge(event)


def totals(work: sqlite3.Connection) -> LedgerTotals:
    """Return what was spent so far."""
    total, lists = Charge(), 0
    openly: dict[str, None] = {}
    rows = work.execute("SELECT nano_epsilon, nano_rho, pico_delta, openly FROM ledger")
    for epsilon, rho, delta, names in rows:
        total += Charge(epsilon, rho, delta)
        lists += 1
        openly.update(dict.fromkeys(json.loads(names)))
    return LedgerTotals(lists, total, float(get_value(work, "limit", DEFAULT_LIMIT)), tuple(openly))


def book(work: sqlite3.Connection, charge: Charge, *, openly: tuple[str, ...], now: str) -> int:
    """Book a list and return its number. Raises `HubRefusal` if it would pass the limit."""
    before = totals(work)
    limit = _ACCOUNTANT.limit(Budget(before.limit))
    after = before.total + charge
    if not limit.admits(after):
        raise HubRefusal(
            f"This list would bring the total to ε {after.nano_epsilon / NANO:.3g}, above the "
            f"limit of ε {before.limit:g} that you set. The last list can still be sent."
        )
    made = work.execute(
        "INSERT INTO ledger (made, nano_epsilon, nano_rho, pico_delta, openly) "
        "VALUES (?, ?, ?, ?, ?)",
        (now, charge.nano_epsilon, charge.nano_rho, charge.pico_delta, json.dumps(openly)),
    )
    assert made.lastrowid is not None
    return made.lastrowid


def set_limit(work: sqlite3.Connection, limit: float) -> None:
    """Set the most that all lists together may cost."""
    if not 0 < limit <= MOST_LIMIT:
        raise InvalidArgument("limit", f"must be above 0 and at most {MOST_LIMIT:g}")
    set_value(work, "limit", limit)
