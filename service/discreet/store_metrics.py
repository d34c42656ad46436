"""A store that is measured: how long each operation took, and which were not answered."""

import inspect
from collections.abc import Awaitable, Callable, Generator
from time import perf_counter
from typing import Any, Protocol, cast

from discreet.errors import StoreUnavailable
from discreet.state.stores import Store

OPERATIONS = tuple(
    name
    for name, member in inspect.getmembers(Store, inspect.isfunction)
    if not name.startswith("_") and name not in ("open", "close", "superseded", "clock")
)
"""Every method of the protocol that goes to the store and back."""

ANSWER_EACH = frozenset({"spend", "learn"})
"""Operations that list the error of an entry in its place instead of raising it."""


class StoreObserver(Protocol):
    """Who is notified of each operation."""

    def stored(self, operation: str, seconds: float) -> None:
        """Note that the store answered, and how long that took."""

    def store_failed(self, operation: str) -> None:
        """Note that it did not answer, or not for every entry."""


class TimedAnswer:
    """An operation's answer, timed from the call to the moment when it is awaited and there."""

    __slots__ = ("_answer", "_began", "_observer", "_operation")

    def __init__(
        self, observer: StoreObserver, operation: str, began: float, answer: Awaitable[Any]
    ) -> None:
        self._observer = observer
        self._operation = operation
        self._began = began
        self._answer = answer

    def __await__(self) -> Generator[Any, None, Any]:
        try:
            result = yield from self._answer.__await__()
        except StoreUnavailable:
            self._observer.store_failed(self._operation)
            raise
        if self._operation in ANSWER_EACH and any(
            isinstance(entry, StoreUnavailable) for entry in result
        ):
            self._observer.store_failed(self._operation)
        else:
            self._observer.stored(self._operation, perf_counter() - self._began)
        return result


class MeasuredStore:
    """Passes every operation on, at once, and returns an answer that is timed."""

    def __init__(self, store: Store, observer: StoreObserver) -> None:
        self.open = store.open
        self.close = store.close
        self.superseded = store.superseded
        self.clock = store.clock
        for name in OPERATIONS:
            setattr(self, name, _timed(observer, name, getattr(store, name)))


def _timed(
    observer: StoreObserver, operation: str, call: Callable[..., Awaitable[Any]]
) -> Callable[..., Awaitable[Any]]:
    def issue(*arguments: Any, **named: Any) -> Awaitable[Any]:
        began = perf_counter()
        return TimedAnswer(observer, operation, began, call(*arguments, **named))

    return issue


def measured(store: Store, observer: StoreObserver) -> Store:
    """Return the same store, notifying `observer` of every operation."""
    return cast(Store, MeasuredStore(store, observer))
