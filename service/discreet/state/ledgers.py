"""A ledger: what a principal has spent, ever, in windows and by day. Pure.

`lua/ledger.lua` does the same in the store; one contract suite holds both to it.

*Windows.* Window n of length L is the time from n L to (n + 1) L on the store's clock, the same for
everybody. A ledger keeps one sum for each length that a limit has asked for, and every debit goes
into all of them. A window never moves back: while the clock says an earlier one than the ledger
does, the ledger's goes on. A window that begins in a ledger without one of that length begins with
all that was ever spent, because it is not known when that was. What was booked as unlimited stays
so in every window.

*Days.* What was spent on a day, by account and purpose (the recommender's name), is kept for
`KEPT_DAYS`, so that a person can be told. No limit depends on it.
"""

from enum import IntEnum
from typing import NamedTuple

from discreet.privacy.charges import UNLIMITED, Charge

NO_CHARGE = Charge()
MOST_WINDOWS = 8
"""Lengths of windows that one ledger keeps."""
DAY_SECONDS = 86_400
KEPT_DAYS = 35
"""Days for which spending is kept by day: a window of thirty, and a few more."""


class Account(IntEnum):
    """The two budgets of a principal."""

    ANSWERS = 0
    FEEDBACK = 1


class LedgerWindow(NamedTuple):
    """What was spent in window `number` of a length in seconds, by account."""

    seconds: int
    number: int
    answers: Charge = NO_CHARGE
    feedback: Charge = NO_CHARGE

    @property
    def ends_at(self) -> int:
        """When the next window begins, on the store's clock."""
        return (self.number + 1) * self.seconds


class Ledger(NamedTuple):
    """What a principal has ever spent, by account, and in the windows that limits asked for."""

    answers: Charge = NO_CHARGE
    feedback: Charge = NO_CHARGE
    windows: tuple[LedgerWindow, ...] = ()

    def window(self, seconds: int) -> LedgerWindow | None:
        """Return the window of this length, as it stands in the ledger."""
        for each in self.windows:
            if each.seconds == seconds:
                return each
        return None

    def spent(self, account: Account, seconds: int = 0) -> Charge:
        """Return what an account has spent, ever or in the window of this length."""
        if not seconds:
            return self.feedback if account else self.answers
        window = self.window(seconds)
        if window is None:
            return self.spent(account)
        return window.feedback if account else window.answers


class DaySpending(NamedTuple):
    """What an account spent on one thing on one day (days since the epoch), in so many debits."""

    day: int
    account: Account
    purpose: bytes
    uses: int
    charge: Charge


def turned(ledger: Ledger, seconds: int, now: float) -> Ledger:
    """Return the ledger at this moment, with a window of this length (0: none is wanted)."""
    windows = []
    for window in ledger.windows:
        number = int(now // window.seconds)
        if number > window.number:
            window = LedgerWindow(
                window.seconds, number, _unlimited(ledger.answers), _unlimited(ledger.feedback)
            )
        windows.append(window)
    if seconds and all(window.seconds != seconds for window in windows):
        began = LedgerWindow(seconds, int(now // seconds), ledger.answers, ledger.feedback)
        # One that is left out here would begin with everything again: nothing is gained by it.
        windows = [*windows[max(0, len(windows) - MOST_WINDOWS + 1) :], began]
    return ledger._replace(windows=tuple(windows))


def booked(ledger: Ledger, account: Account, charge: Charge) -> Ledger:
    """Return the ledger after a charge, which goes into every window."""
    if account is Account.ANSWERS:
        windows = [each._replace(answers=each.answers + charge) for each in ledger.windows]
        return Ledger(ledger.answers + charge, ledger.feedback, tuple(windows))
    windows = [each._replace(feedback=each.feedback + charge) for each in ledger.windows]
    return Ledger(ledger.answers, ledger.feedback + charge, tuple(windows))


def _unlimited(spent: Charge) -> Charge:
    """Return what a new window begins with: nothing, but for what was booked as exact.

    That is unlimited in epsilon and in rho. Gaussian noise has no epsilon of its own either, and
    is over with its window.
    """
    exact = spent.nano_rho == UNLIMITED
    return Charge(
        UNLIMITED if exact and spent.nano_epsilon == UNLIMITED else 0,
        UNLIMITED if exact else 0,
        UNLIMITED if spent.pico_delta == UNLIMITED else 0,
    )
