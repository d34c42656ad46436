"""How much a client's answers, or feedback, may cost: a budget, its limit and its reports."""

from dataclasses import dataclass
from functools import lru_cache

from discreet.families.documents import WindowedBudgetDocument
from discreet.privacy.accountants import BasicAccountant, Budget, EitherAccountant
from discreet.privacy.charges import NANO, UNLIMITED, Charge
from discreet.privacy.events import Composed, PrivacyEvent
from discreet.state.stores import NO_CHARGE, Account, Ledger

FREE = NO_CHARGE
_MOST_PRICES = 1_024
_MOST_REPORTS = 4_096
TENTHS = 10


def rho_of(charge: Charge) -> float | None:
    """Return a charge in rho, or None if it is exact: booked as unlimited."""
    return None if charge.nano_rho == UNLIMITED else charge.nano_rho / NANO


@dataclass(frozen=True, slots=True)
class PrivacyReport:
    """What something cost, and where the account that paid for it stands after it.

    All None where nothing is protected. `resets_at` is when the budget's window ends, in seconds
    since the epoch: the same for everybody. None if the budget is for ever.
    """

    epsilon: float | None
    spent: Budget | None
    remaining: Budget | None
    resets_at: int | None = None


UNPROTECTED = PrivacyReport(None, None, None)


class BudgetPolicy:
    """One account's budget. `limit` is what a ledger may hold; prices are of events.

    A release is admitted if the sum of epsilons or the sum of rhos admits it
    (`accountants.EitherAccountant`); if the account is `pure`, by the sum of epsilons alone.
    `reserved_delta` is the part of the budget's delta that is kept for releases which have a delta
    of their own. With a `window` in seconds the limit is for what is spent in one window, else for
    ever.

    Feedback needs one sum that admits everything. What it costs differs between the two worlds that
    must look alike, so that one might be admitted by epsilon and the other by rho; then neither sum
    bounds how far they are apart. Gaussian noise has no epsilon, so rho alone admits it. Laplace
    noise has both, and its account is pure. `decisions.ledger_groups` keeps them apart. Answers
    cost the same in both worlds.
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float = 0.0,
        reserved_delta: float = 0.0,
        window: int = 0,
        pure: bool = False,
    ) -> None:
        self.budget = Budget(epsilon=epsilon, delta=delta)
        self.window = window
        self.pure = pure
        self._rule = BasicAccountant() if pure else EitherAccountant(reserved_delta)
        self.limit = self._rule.limit(self.budget)
        self._prices: dict[tuple[PrivacyEvent, ...], Charge] = {}
        # Ledgers grow by the same few amounts, so that most of them stand where another stood.
        self._report = lru_cache(maxsize=_MOST_REPORTS)(self._compute_report)
        self._reached = lru_cache(maxsize=_MOST_REPORTS)(self._compute_reached)

    @classmethod
    def of(cls, document: WindowedBudgetDocument, *, pure: bool = False) -> "BudgetPolicy":
        """Return the policy of a document's budget."""
        return cls(
            epsilon=document.epsilon, delta=document.delta, window=document.seconds, pure=pure
        )

    def charge(self, events: tuple[PrivacyEvent, ...]) -> Charge:
        """Return what these releases cost together; they repeat, so their prices are kept."""
        known = self._prices.get(events)
        if known is None:
            known = self._rule.charge(Composed(events)) if events else FREE
            if len(self._prices) < _MOST_PRICES:
                self._prices[events] = known
        return known

    def report(self, ledger: Ledger, account: Account, charge: Charge = FREE) -> PrivacyReport:
        """Return how an account stands that has just been charged `charge`.

        The ledger must come from a debit under this policy, perhaps of nothing: then its window is
        the one of that moment.
        """
        if not self.window:
            return self._report(ledger.feedback if account else ledger.answers, charge, None)
        window = ledger.window(self.window)
        ends_at = None if window is None else window.ends_at
        return self._report(ledger.spent(account, self.window), charge, ends_at)

    def spent(self, charge: Charge) -> Budget:
        """Return what charges that sum to this have given away, at the budget's delta."""
        return self._rule.spent(charge, self.budget)

    def reached(self, *, spent: Charge, charge: Charge) -> range:
        """Return which tenths of the budget `charge`, the last part of `spent`, has filled up.

        0 is among them if it was the first payment, 10 if the budget is spent now.
        """
        return self._reached(spent, charge)

    def _compute_reached(self, spent: Charge, charge: Charge) -> range:
        return range(self._tenths(spent, charge), self._tenths(spent, FREE))

    def _tenths(self, spent: Charge, less: Charge) -> int:
        """Return the tenths that are filled up without the part `less`, and one more if any of the
        budget is spent. As either sum may admit a release, the smaller share counts."""
        epsilon, rho = spent.nano_epsilon - less.nano_epsilon, spent.nano_rho - less.nano_rho
        if epsilon <= 0 and rho <= 0:
            return 0
        limit = self.limit
        shares = [
            TENTHS * part // whole
            for part, whole in ((epsilon, limit.nano_epsilon), (rho, limit.nano_rho))
            if whole > 0
        ]
        return 1 + min([TENTHS, *shares])

    def _compute_report(
        self, spent: Charge, charge: Charge, resets_at: int | None
    ) -> PrivacyReport:
        return PrivacyReport(
            epsilon=charge.nano_epsilon / NANO,
            spent=self._rule.spent(spent, self.budget),
            remaining=self._rule.remaining(spent, self.budget),
            resets_at=resets_at,
        )
