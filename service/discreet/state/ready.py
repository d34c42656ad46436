"""Answers that are there already: what a store in memory returns where Redis returns a future."""

from collections.abc import Generator
from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")


class Ready(Generic[T]):
    """An answer that is there already: awaiting it neither suspends nor needs an event loop."""

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def __await__(self) -> Generator[None, None, T]:
        yield from ()  # a generator is what `await` asks for; this one never suspends
        return self._value


class Failed:
    """An error that is there already; raised where it is awaited, as a real store would."""

    __slots__ = ("_error",)

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __await__(self) -> Generator[None, None, NoReturn]:
        yield from ()
        raise self._error
