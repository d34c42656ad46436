"""A watched store is the same store, and its watcher hears about every operation."""

import inspect

import pytest

from discreet.errors import StateOverflow, StoreUnavailable
from discreet.privacy.charges import Charge, Limit
from discreet.state.memory import MemoryStore
from discreet.state.stores import Account, Learned, Learning, Store
from discreet.watching import MANY, OPERATIONS, watched
from tests.api.stores import MoodyStore

pytestmark = pytest.mark.anyio


class Heard:
    def __init__(self) -> None:
        self.stored_: list[str] = []
        self.failed: list[str] = []

    def stored(self, operation: str, seconds: float) -> None:
        assert seconds >= 0
        self.stored_.append(operation)

    def store_failed(self, operation: str) -> None:
        self.failed.append(operation)


def test_every_operation_of_the_protocol_is_watched() -> None:
    methods = {
        name
        for name, value in inspect.getmembers(Store, inspect.isfunction)
        if not name.startswith("_")
    }
    assert methods == {*OPERATIONS, *MANY, "open", "close"}


async def test_answers_and_times_are_handed_on() -> None:
    heard, inner = Heard(), MemoryStore()
    store = watched(inner, heard)
    await store.open()
    assert await store.secret(name="s", proposal=b"x" * 32) == b"x" * 32
    assert await inner.secret(name="s", proposal=b"y" * 32) == b"x" * 32
    assert heard.stored_ == ["secret"]
    await store.close()


async def test_a_command_is_issued_when_it_is_called_not_when_it_is_awaited() -> None:
    inner = MoodyStore()
    answer = watched(inner, Heard()).ping()
    assert inner.calls == ["ping"]
    await answer


async def test_failures_are_heard_and_handed_on() -> None:
    heard, inner = Heard(), MoodyStore()
    store = watched(inner, heard)
    inner.mood = StoreUnavailable()
    with pytest.raises(StoreUnavailable):
        await store.ping()
    inner.mood = StateOverflow()
    with pytest.raises(StateOverflow):
        await store.ping()
    assert (heard.stored_, heard.failed) == ([], ["ping"])


async def test_answers_to_many_are_handed_on_with_their_errors() -> None:
    heard, inner = Heard(), MemoryStore()
    store = watched(inner, heard)
    accounts = await store.spend_each(principals=[b"p", b"p"], charge=Charge(1), limit=Limit(1))
    assert [account.granted for account in accounts if isinstance(account, Account)] == [
        True,
        False,
    ]
    assert (await store.read_rows(addresses=[b"a"], fields=2)).sums.tolist() == [[0, 0]]
    full = [Learning(b"a", [(0, 2**63 - 1)], claim, 1, 60) for claim in (b"c", b"d")]
    learned = await store.learn_each(learnings=full)
    assert [type(each) for each in learned] == [Learned, StateOverflow]
    assert heard.stored_ == ["spend", "read", "learn"]
    assert heard.failed == []
