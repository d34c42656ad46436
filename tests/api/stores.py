"""Stores that misbehave on demand."""

from collections.abc import Awaitable
from typing import Any, NoReturn

from discreet.errors import StoreUnavailable
from discreet.state.memory import MemoryStore
from discreet.store_metrics import OPERATIONS


class Failing:
    """An answer that never comes."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __await__(self) -> Any:
        yield from ()
        self._raise()

    def _raise(self) -> NoReturn:
        raise self._error


class MoodyStore(MemoryStore):
    """The memory store, which does what it is told to while `mood` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.mood: Exception | None = None
        self.calls: list[str] = []


def _moody(name: str) -> Any:
    def call(self: MoodyStore, *arguments: Any, **named: Any) -> Awaitable[Any]:
        self.calls.append(name)
        if self.mood is not None:
            return Failing(self.mood)
        answer: Awaitable[Any] = getattr(MemoryStore, name)(self, *arguments, **named)
        return answer

    return call


for _name in OPERATIONS:
    setattr(MoodyStore, _name, _moody(_name))

GONE = StoreUnavailable("the store at canary-host is gone", retry_after=2)
