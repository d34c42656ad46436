"""Of many at once some may fail, and the watcher hears of it."""

from typing import Any

import pytest

from discreet.errors import DiscreetError, StoreUnavailable
from discreet.privacy.charges import Charge, Limit
from discreet.state.memory import MemoryStore
from discreet.state.ready import Ready
from discreet.state.stores import Account, Learned, Rows
from discreet.watching import MANY, watched
from tests.test_watching import Heard

pytestmark = pytest.mark.anyio

GONE = StoreUnavailable("the answer was lost")


class Losing(MemoryStore):
    """Answers as a store does whose connection went: every entry is an error."""

    def spend_each(self, **given: Any) -> "Ready[list[Account | DiscreetError]]":
        return Ready([GONE for _ in given["principals"]])

    def read_rows(self, **given: Any) -> Ready[Rows]:
        found = MemoryStore().read_rows(**given)
        assert isinstance(found, Ready)
        return Ready(Rows(found._value.sums, dict.fromkeys(range(len(given["addresses"])), GONE)))

    def learn_each(self, **given: Any) -> "Ready[list[Learned | DiscreetError]]":
        return Ready([GONE for _ in given["learnings"]])


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("spend_each", {"principals": [b"p"], "charge": Charge(1), "limit": Limit()}),
        ("read_rows", {"addresses": [b"a"], "fields": 1}),
        ("learn_each", {"learnings": [None]}),
    ],
)
async def test_entries_that_were_not_answered_are_a_failure_of_the_store(
    operation: str, arguments: dict[str, Any]
) -> None:
    heard = Heard()
    await getattr(watched(Losing(), heard), operation)(**arguments)
    assert (heard.stored_, heard.failed) == ([], [MANY[operation]])
