"""How the parts of the Redis store send commands and read what comes back."""

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Generic, TypeVar

from discreet.errors import DiscreetError
from discreet.state import replies
from discreet.state.client import StoreClient, StoreCommand, Word
from discreet.state.keys import StoreKeys

T = TypeVar("T")


class PendingAnswer(Generic[T]):
    """What replies come to, worked out where it is awaited; the commands are on their way."""

    __slots__ = ("_read", "_replies")

    def __init__(self, given: Awaitable[list[Any]], read: Callable[[list[Any]], T]) -> None:
        self._replies = given
        self._read = read

    def __await__(self) -> Generator[Any, None, T]:
        return self._read((yield from self._replies.__await__()))


class RedisCommands:
    """A client, the keys of a namespace, and three ways to ask."""

    def __init__(self, client: StoreClient, keys: StoreKeys) -> None:
        self._client = client
        self._keys = keys

    def _ask(
        self,
        read: Callable[[Any], T],
        key: bytes,
        words: Sequence[Word],
        *,
        repeatable: bool = True,
    ) -> Awaitable[T]:
        """Send one command; raise its error."""
        sent = self._client.send([StoreCommand(key, words, repeatable)])
        return PendingAnswer(sent, lambda found: _unless_failed(read, found[0]))

    def _ask_all(
        self, read: Callable[[Any], T], commands: Sequence[StoreCommand]
    ) -> Awaitable[list[T]]:
        """Send many commands; raise the error of the first that failed."""
        sent = self._client.send(commands)
        return PendingAnswer(sent, lambda found: [_unless_failed(read, reply) for reply in found])

    def _ask_each(
        self, read: Callable[[Any], T], commands: Sequence[StoreCommand]
    ) -> Awaitable[list[T | DiscreetError]]:
        """Send many commands; list the error of each that failed in its place."""
        sent = self._client.send(commands)
        return PendingAnswer(sent, lambda found: [replies.outcome(read, reply) for reply in found])


def _unless_failed(read: Callable[[Any], T], reply: Any) -> T:
    found = replies.outcome(read, reply)
    if isinstance(found, DiscreetError):
        raise found
    return found
