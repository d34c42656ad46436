"""A store that is measured: how long each operation took, and which were not answered."""

import inspect
import logging
import math
from collections.abc import Awaitable, Callable, Generator
from time import monotonic, perf_counter
from typing import Any, Protocol, cast

from discreet.errors import StoreUnavailable
from discreet.state.stores import Store

log = logging.getLogger(__name__)

OPERATIONS = tuple(
    name
    for name, member in inspect.getmembers(Store, inspect.isfunction)
    if not name.startswith("_") and name not in ("open", "close", "superseded", "clock")
)
"""Every method of the protocol that goes to the store and back."""

ANSWER_EACH = frozenset({"spend", "learn", "write_pages"})
"""Operations that list the error of an entry in its place instead of raising it."""


class StoreObserver(Protocol):
    """Who is notified of each operation."""

    def stored(self, operation: str, seconds: float) -> None:
        """Note that the store answered, and how long that took."""

    def store_failed(self, operation: str) -> None:
        """Note that it did not answer, or not for every entry."""


class TimedAnswer:
    """An operation's answer, timed from the call to the moment when it is awaited and there."""

    __slots__ = ("_answer", "_began", "_failures", "_observer", "_operation")

    def __init__(
        self,
        observer: StoreObserver,
        failures: "FailureLog",
        operation: str,
        began: float,
        answer: Awaitable[Any],
    ) -> None:
        self._observer = observer
        self._failures = failures
        self._operation = operation
        self._began = began
        self._answer = answer

    def __await__(self) -> Generator[Any, None, Any]:
        try:
            result = yield from self._answer.__await__()
        except StoreUnavailable as error:
            self._failed(error)
            raise
        lost = None
        if self._operation in ANSWER_EACH:
            lost = next((one for one in result if isinstance(one, StoreUnavailable)), None)
        if lost is not None:
            self._failed(lost)
        else:
            self._observer.stored(self._operation, perf_counter() - self._began)
        return result

    def _failed(self, error: StoreUnavailable) -> None:
        self._observer.store_failed(self._operation)
        self._failures.note(self._operation, error)


class FailureLog:
    """Says in the log what the store did not answer, and why; at most once in a while.

    A store that is gone fails thousands of operations a second, for one reason.
    """

    def __init__(self, *, pause: float = 10.0, clock: Callable[[], float] = monotonic) -> None:
        self._pause = pause
        self._clock = clock
        self._said: dict[tuple[str, str], float] = {}
        self._unsaid: dict[tuple[str, str], int] = {}

    def note(self, operation: str, error: StoreUnavailable) -> None:
        """Write a warning with the cause, unless the same was written a moment ago."""
        kind = (operation, type(error.__cause__ or error).__name__)
        now = self._clock()
        if now - self._said.get(kind, -math.inf) < self._pause:
            self._unsaid[kind] = self._unsaid.get(kind, 0) + 1
            return
        self._said[kind] = now
        more = self._unsaid.pop(kind, 0)
        log.warning(
            "the store failed at %s: %s%s",
            operation,
            error,
            f" ({more} more since it was last said)" if more else "",
            exc_info=error,
        )


class MeasuredStore:
    """Passes every operation on, at once, and returns an answer that is timed."""

    def __init__(self, store: Store, observer: StoreObserver) -> None:
        self.open = store.open
        self.close = store.close
        self.superseded = store.superseded
        self.clock = store.clock
        failures = FailureLog()
        for name in OPERATIONS:
            setattr(self, name, _timed(observer, failures, name, getattr(store, name)))


def _timed(
    observer: StoreObserver,
    failures: FailureLog,
    operation: str,
    call: Callable[..., Awaitable[Any]],
) -> Callable[..., Awaitable[Any]]:
    def issue(*arguments: Any, **named: Any) -> Awaitable[Any]:
        began = perf_counter()
        return TimedAnswer(observer, failures, operation, began, call(*arguments, **named))

    return issue


def measured(store: Store, observer: StoreObserver) -> Store:
    """Return the same store, notifying `observer` of every operation."""
    return cast(Store, MeasuredStore(store, observer))
