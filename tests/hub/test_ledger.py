"""The ledger: amounts add up, nothing passes the limit, and what was open stays named."""

import pytest

from discreet.errors import InvalidArgument
from discreet.hub import ledger
from discreet.hub.database import Database
from discreet.hub.errors import HubRefusal
from discreet.privacy.charges import NANO, Charge
from discreet.privacy.events import ExactRelease, PureRelease

HALF = ledger.charge_of(PureRelease(0.5, "test"))


def test_a_price_is_that_of_the_items_that_are_not_open() -> None:
    assert HALF.nano_epsilon == NANO // 2
    assert ledger.charge_of(None) == ledger.charge_of(ExactRelease()) == Charge()


def test_lists_add_up_and_the_limit_stops(database: Database) -> None:
    with database.transaction() as work:
        ledger.set_limit(work, 1.0)
        assert [ledger.book(work, HALF, openly=(), now="now") for _ in range(2)] == [1, 2]
        totals = ledger.totals(work)
        assert (totals.lists, totals.epsilon, totals.limit) == (2, 1.0, 1.0)
        with pytest.raises(HubRefusal, match="above the limit of ε 1 that you set"):
            ledger.book(work, Charge(nano_epsilon=1), openly=(), now="now")
        # What costs nothing always can be.
        assert ledger.book(work, Charge(), openly=("Drama",), now="now") == 3


def test_categories_that_were_open_are_named_for_ever(database: Database) -> None:
    with database.transaction() as work:
        for openly in (("Drama",), (), ("Crime", "Drama")):
            ledger.book(work, Charge(), openly=openly, now="now")
        assert ledger.totals(work).openly == ("Drama", "Crime")


@pytest.mark.parametrize("limit", [0.0, -1.0, 51.0])
def test_limits_have_limits(database: Database, limit: float) -> None:
    with database.transaction() as work:
        with pytest.raises(InvalidArgument, match="limit"):
            ledger.set_limit(work, limit)
        assert ledger.totals(work).limit == ledger.DEFAULT_LIMIT
