"""A measured store is the same store, and its observer is notified of every operation."""

import inspect
from typing import Any

import pytest

from discreet.errors import StateOverflow, StoreUnavailable
from discreet.logs import describe
from discreet.privacy.charges import NEVER, Charge, Limit
from discreet.state.memory import MemoryStore
from discreet.state.ready import Failed, Ready
from discreet.state.stores import Debit, Debited, Learned, Store
from discreet.store_metrics import OPERATIONS, FailureLog, measured
from tests.state.places import record

pytestmark = pytest.mark.anyio

GONE = StoreUnavailable("the answer was lost")


class Noted:
    def __init__(self) -> None:
        self.answered: list[str] = []
        self.failed: list[str] = []

    def stored(self, operation: str, seconds: float) -> None:
        assert seconds >= 0
        self.answered.append(operation)

    def store_failed(self, operation: str) -> None:
        self.failed.append(operation)


class FailingStore(MemoryStore):
    """Notes when it is called, and answers what it is told to."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer
        self.called = False

    def ping(self) -> Any:
        self.called = True
        return self.answer

    def spend(self, debits: Any) -> Any:
        return self.answer

    learn = spend


def test_every_operation_of_the_protocol_is_measured() -> None:
    public = [name for name, _ in inspect.getmembers(Store, inspect.isfunction) if name[0] != "_"]
    assert sorted(public) == sorted([*OPERATIONS, "open", "close", "superseded", "clock"])
    assert {"spend", "learn", "freeze", "versions", "ping", "remove_roster"} <= set(OPERATIONS)


async def test_answers_and_times_are_passed_on() -> None:
    noted, inner = Noted(), MemoryStore()
    store = measured(inner, noted)
    await store.open()
    assert await store.secret(name="s", proposal=b"x" * 32) == b"x" * 32
    assert await inner.secret(name="s", proposal=b"y" * 32) == b"x" * 32
    assert list(await store.forget_markers(b"p")) == []
    assert noted.answered == ["secret", "forget_markers"]
    await store.close()


async def test_a_command_is_issued_when_it_is_called_not_when_it_is_awaited() -> None:
    inner = FailingStore(Ready(None))
    answer = measured(inner, Noted()).ping()
    assert inner.called
    await answer


@pytest.mark.parametrize(("error", "failed"), [(GONE, ["ping"]), (StateOverflow(), [])])
async def test_failures_are_noted_and_raised(error: Exception, failed: list[str]) -> None:
    noted = Noted()
    with pytest.raises(type(error)):
        await measured(FailingStore(Failed(error)), noted).ping()
    assert (noted.answered, noted.failed) == ([], failed)


async def test_answers_to_many_are_passed_on_with_their_errors() -> None:
    noted = Noted()
    store = measured(MemoryStore(), noted)
    debit = Debit(b"p", Charge(1), Limit(1, NEVER))
    found = await store.spend([debit, debit])
    assert [each.granted for each in found if isinstance(each, Debited)] == [True, False]
    learned = await store.learn([record((0, 2**63 - 1), claim=claim) for claim in (b"c", b"d")])
    assert [type(each) for each in learned] == [Learned, StateOverflow]
    assert (noted.answered, noted.failed) == (["spend", "learn"], [])


@pytest.mark.parametrize("operation", ["spend", "learn"])
async def test_an_entry_that_was_not_answered_is_a_failure_of_the_store(operation: str) -> None:
    noted = Noted()
    store = measured(FailingStore(Ready([None, GONE])), noted)
    assert await getattr(store, operation)([]) == [None, GONE]
    assert (noted.answered, noted.failed) == ([], [operation])


async def test_a_failure_is_said_with_its_cause_and_not_a_thousand_times(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lost = StoreUnavailable("no answer in 2 s")
    lost.__cause__ = ConnectionResetError(104, "Connection reset by peer")
    store = measured(FailingStore(Ready([lost])), Noted())
    for _ in range(1_000):
        await store.spend([])
    (line,) = caplog.records
    assert (line.levelname, line.getMessage()) == (
        "WARNING",
        "the store failed at spend: no answer in 2 s",
    )
    assert line.exc_info is not None
    assert line.exc_info[1] is lost
    shown = describe(lost)
    assert [each["message"] for each in shown] == ["no answer in 2 s", "Connection reset by peer"]


def test_what_was_not_said_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    failures = FailureLog(pause=10.0, clock=lambda: now[0])
    for _ in range(4):
        failures.note("learn", GONE)
    failures.note("spend", GONE)
    now[0] = 10.0
    failures.note("learn", GONE)
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "the store failed at learn: the answer was lost",
        "the store failed at spend: the answer was lost",
        "the store failed at learn: the answer was lost (3 more since it was last said)",
    ]
