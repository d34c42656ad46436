"""The terms on which somebody is protected: how losses add up, and how much there may be."""

from dataclasses import dataclass
from functools import lru_cache

from discreet.privacy.accountants import Budget, accountant
from discreet.privacy.charges import NANO, Charge
from discreet.privacy.events import Composed, PrivacyEvent

FREE = Charge()
_MOST_PRICES = 1_024
_MOST_REPORTS = 4_096


@dataclass(frozen=True, slots=True)
class PrivacyReport:
    """What an answer cost, and where the ledger that paid for it stands after it.

    All None when the recommender protects nobody.
    """

    epsilon: float | None
    spent: Budget | None
    remaining: Budget | None


UNPROTECTED = PrivacyReport(None, None, None)


class Terms:
    """A budget under one way of accounting. `limit` is what a ledger may hold.

    `reserved_delta` is for releases that have a delta of their own, under zCDP.
    """

    def __init__(self, *, accounting: str, budget: Budget, reserved_delta: float = 0.0) -> None:
        self.accountant = accountant(accounting, reserved_delta=reserved_delta)
        self.budget = budget
        self.limit = self.accountant.limit(budget)
        self._prices: dict[tuple[PrivacyEvent, ...], Charge] = {}
        # Ledgers grow by the same few amounts, so that most of them stand where another stood.
        self._report = lru_cache(maxsize=_MOST_REPORTS)(self._compute_report)

    def charge(self, events: tuple[PrivacyEvent, ...]) -> Charge:
        """Return what these releases cost together; plans repeat, so their prices are kept."""
        known = self._prices.get(events)
        if known is None:
            known = self.accountant.charge(Composed(events)) if events else FREE
            if len(self._prices) < _MOST_PRICES:
                self._prices[events] = known
        return known

    def report(self, *, spent: Charge, charge: Charge = FREE) -> PrivacyReport:
        """Return how a ledger stands that has just been charged `charge`."""
        return self._report(spent, charge)

    def _compute_report(self, spent: Charge, charge: Charge) -> PrivacyReport:
        return PrivacyReport(
            epsilon=charge.nano_epsilon / NANO,
            spent=self.accountant.spent(spent, self.budget),
            remaining=self.accountant.remaining(spent, self.budget),
        )
