"""The store, watched: how long each operation took, and which were not answered."""

from collections.abc import Awaitable, Callable, Generator
from time import perf_counter
from typing import Any, Protocol, cast

from discreet.errors import StoreUnavailable
from discreet.state.stores import Rows, Store

OPERATIONS = (
    "spend",
    "balance",
    "forget_markers",
    "read",
    "learn",
    "index_cell",
    "cells",
    "count_cells",
    "remove_cells",
    "claim_event",
    "answer_event",
    "find_event",
    "forget_event",
    "post_letter",
    "letters",
    "discard_letter",
    "count_letters",
    "load",
    "save",
    "read_page",
    "write_page",
    "append_page",
    "erase",
    "enrol",
    "number_of",
    "roster_size",
    "strike_roster",
    "hold",
    "let_go",
    "epoch",
    "registry",
    "put_document",
    "remove_document",
    "secret",
    "ping",
)


MANY = {"spend_each": "spend", "read_rows": "read", "learn_each": "learn"}
"""Operations on many at once are told as what they are: one round trip of debits, say."""


class Watcher(Protocol):
    """Who is told about each operation."""

    def stored(self, operation: str, seconds: float) -> None:
        """Note that the store answered."""

    def store_failed(self, operation: str) -> None:
        """Note that it did not."""


class Watched:
    """An operation's answer, timed from the call to the moment when it is awaited and there."""

    __slots__ = ("_answer", "_began", "_operation", "_watcher")

    def __init__(
        self, watcher: Watcher, operation: str, began: float, answer: Awaitable[Any]
    ) -> None:
        self._watcher = watcher
        self._operation = operation
        self._began = began
        self._answer = answer

    def __await__(self) -> Generator[Any, None, Any]:
        try:
            result = yield from self._answer.__await__()
        except StoreUnavailable:
            self._watcher.store_failed(self._operation)
            raise
        if self._lacks_something(result):
            self._watcher.store_failed(self._operation)
        else:
            self._watcher.stored(self._operation, perf_counter() - self._began)
        return result

    def _lacks_something(self, result: Any) -> bool:
        return False


class WatchedMany(Watched):
    """The answers to many; one that is missing among them is told as a failure."""

    __slots__ = ()

    def _lacks_something(self, result: Any) -> bool:
        many = result.failed.values() if isinstance(result, Rows) else result
        return any(isinstance(one, StoreUnavailable) for one in many)


class _WatchedStore:
    """Passes every operation on, at once, and hands back an answer that is timed."""

    def __init__(self, store: Store, watcher: Watcher) -> None:
        self._store = store
        for name in OPERATIONS:
            setattr(self, name, _watched(Watched, watcher, name, getattr(store, name)))
        for name, operation in MANY.items():
            setattr(self, name, _watched(WatchedMany, watcher, operation, getattr(store, name)))

    async def open(self) -> None:
        await self._store.open()

    async def close(self) -> None:
        await self._store.close()


def _watched(
    kind: type[Watched], watcher: Watcher, operation: str, call: Callable[..., Awaitable[Any]]
) -> Callable[..., Awaitable[Any]]:
    def issue(**arguments: Any) -> Awaitable[Any]:
        began = perf_counter()
        return kind(watcher, operation, began, call(**arguments))

    return issue


def watched(store: Store, watcher: Watcher) -> Store:
    """Return the same store, telling `watcher` about every operation."""
    return cast(Store, _WatchedStore(store, watcher))
