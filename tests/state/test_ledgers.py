"""A ledger and its windows: what holds whatever the clock and the charges do."""

from hypothesis import given
from hypothesis import strategies as st

from discreet.privacy.charges import UNLIMITED, Charge
from discreet.state.ledgers import (
    MOST_WINDOWS,
    Account,
    Ledger,
    LedgerWindow,
    booked,
    turned,
)

STEPS = st.lists(
    st.tuples(
        st.integers(0, 1_000),  # the clock, which may go back
        st.sampled_from([0, 7, 30, 100]),  # the window that is asked for
        st.sampled_from(list(Account)),
        st.integers(0, 50),
    ),
    max_size=40,
)


@given(STEPS)
def test_a_window_holds_at_least_what_was_spent_in_it(
    steps: list[tuple[int, int, Account, int]],
) -> None:
    """Counted apart: a charge belongs to the latest window that the ledger had been seen in."""
    ledger, latest = Ledger(), dict.fromkeys((7, 30, 100), -1)
    truth: dict[tuple[int, int, Account], int] = {}
    for now, window, account, amount in steps:
        before = ledger
        ledger = booked(turned(ledger, window, now), account, Charge(amount))
        for length in latest:
            if before.window(length) is not None or window == length:
                latest[length] = max(latest[length], now // length)
            key = (length, latest[length], account)
            truth[key] = truth.get(key, 0) + amount
        for each in ledger.windows:
            for kind in Account:
                spent = ledger.spent(kind, each.seconds).nano_epsilon
                assert spent >= truth.get((each.seconds, each.number, kind), 0)
                assert spent <= ledger.spent(kind).nano_epsilon
            earlier = before.window(each.seconds)
            assert earlier is None or each.number >= earlier.number, "a window went back"


def test_a_window_begins_anew_and_ends_when_the_next_begins() -> None:
    ledger = booked(turned(Ledger(), 10, 25.0), Account.ANSWERS, Charge(5))
    assert ledger.windows == (LedgerWindow(10, 2, Charge(5)),)
    assert ledger.windows[0].ends_at == 30
    assert turned(ledger, 10, 29.999) == ledger
    assert turned(ledger, 10, 30.0).spent(Account.ANSWERS, 10) == Charge()
    assert turned(ledger, 10, 5.0) == ledger


def test_a_column_that_is_full_is_full_in_every_window() -> None:
    exact = Charge(UNLIMITED, UNLIMITED)
    ledger = booked(turned(Ledger(), 10, 0.0), Account.FEEDBACK, exact)
    later = turned(ledger, 10, 1e6)
    assert later.spent(Account.FEEDBACK, 10) == exact
    assert later.spent(Account.ANSWERS, 10) == Charge()


def test_without_a_window_of_a_length_everything_counts() -> None:
    ledger = Ledger(Charge(3), Charge(4))
    assert ledger.spent(Account.ANSWERS, 10) == Charge(3)
    assert turned(ledger, 10, 5.0).spent(Account.FEEDBACK, 10) == Charge(4)
    assert turned(ledger, 0, 5.0) == ledger


def test_a_ledger_keeps_a_few_windows() -> None:
    ledger = Ledger()
    for length in range(1, MOST_WINDOWS + 4):
        ledger = turned(ledger, length, 0.0)
    assert [each.seconds for each in ledger.windows] == list(range(4, MOST_WINDOWS + 4))
