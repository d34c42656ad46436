"""What all lists together have cost, at every service, in integers that only grow.

Services may compare notes, and a history is one person's whoever is told of it. So the amounts of
all lists to all services add up, and it is this sum that the limit stops.

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
from collections.abc import Mapping
from dataclasses import dataclass

from discreet.errors import InvalidArgument
from discreet.hub.database import get_shared, get_value, set_shared
from discreet.hub.errors import HubRefusal
from discreet.privacy.accountants import BasicAccountant, Budget
from discreet.privacy.charges import NANO, Charge
from discreet.privacy.events import ExactRelease, PrivacyEvent

DEFAULT_LIMIT = 2.0
MOST_LIMIT = 50.0

_ACCOUNTANT = BasicAccountant()


@dataclass(frozen=True, slots=True)
class ServiceTotal:
    """What was spent on lists to one service, and what went there unprotected."""

    lists: int
    total: Charge
    openly: tuple[str, ...]

    @property
    def epsilon(self) -> float:
        """The sum over its lists, for items that were never open."""
        return self.total.nano_epsilon / NANO


NOTHING_SPENT = ServiceTotal(0, Charge(), ())


@dataclass(frozen=True, slots=True)
class LedgerTotals:
    """What was spent on lists to all services, the limit, and what was sent openly."""

    limit: float
    services: Mapping[str, ServiceTotal]

    @property
    def lists(self) -> int:
        """How many lists there were."""
        return sum(each.lists for each in self.services.values())

    @property
    def total(self) -> Charge:
        """The sum over all lists to all services."""
        total = Charge()
        for each in self.services.values():
            total += each.total
        return total

    @property
    def openly(self) -> tuple[str, ...]:
        """The categories that went to any service as they were."""
        return tuple(dict.fromkeys(name for each in self.services.values() for name in each.openly))

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
    """Return what was spent so far, by service."""
    found: dict[str, ServiceTotal] = {}
    rows = work.execute(
        "SELECT service, nano_epsilon, nano_rho, pico_delta, openly FROM shared.ledger "
        "ORDER BY number"
    )
    for service, epsilon, rho, delta, names in rows:
        before = found.get(service, NOTHING_SPENT)
        found[service] = ServiceTotal(
            before.lists + 1,
            before.total + Charge(epsilon, rho, delta),
            tuple(dict.fromkeys((*before.openly, *json.loads(names)))),
        )
    return LedgerTotals(float(get_shared(work, "limit", DEFAULT_LIMIT)), found)


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
    amounts = (charge.nano_epsilon, charge.nano_rho, charge.pico_delta)
    made = work.execute(
        "INSERT INTO shared.ledger (service, made, nano_epsilon, nano_rho, pico_delta, openly) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (get_value(work, "service"), now, *amounts, json.dumps(openly)),
    )
    assert made.lastrowid is not None
    return made.lastrowid


def set_limit(work: sqlite3.Connection, limit: float) -> None:
    """Set the most that all lists together may cost."""
    if not 0 < limit <= MOST_LIMIT:
        raise InvalidArgument("limit", f"must be above 0 and at most {MOST_LIMIT:g}")
    set_shared(work, "limit", limit)
