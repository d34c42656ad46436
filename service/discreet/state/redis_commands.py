"""How the parts of the Redis store send commands and read what comes back."""

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from discreet.errors import DiscreetError, StoreFenced
from discreet.state import replies, scripts
from discreet.state.client import StoreClient, StoreCommand, Word
from discreet.state.fence import EMPTIED, MEANINGS, StoreFence
from discreet.state.keys import StoreKeys

T = TypeVar("T")

_MOST_VALUES = 64
"""That are read by one command: others have their turn in between."""


class PendingAnswer(Generic[T]):
    """What replies come to, worked out where it is awaited; the commands are on their way."""

    __slots__ = ("_read", "_replies")

    def __init__(self, given: Awaitable[list[Any]], read: Callable[[list[Any]], T]) -> None:
        self._replies = given
        self._read = read

    def __await__(self) -> Generator[Any, None, T]:
        return self._read((yield from self._replies.__await__()))


class FencedCall(NamedTuple):
    """A call of a fenced script: the shards whose fences it looks at, in their order, and how many
    entries it has, each answered by as many values."""

    command: StoreCommand
    shards: Sequence[int]
    entries: int = 1


class RedisCommands:
    """A client, the keys of a namespace, its fence, and five ways to ask.

    All of them raise `StoreFenced` at the call once the store is known to have lost something.
    """

    def __init__(
        self, client: StoreClient, keys: StoreKeys, fence: StoreFence | None = None
    ) -> None:
        self._client = client
        self._keys = keys
        self._fence = fence or StoreFence(keys)

    def _known(
        self,
        script: scripts.LuaScript,
        keys: Sequence[bytes],
        *arguments: Word,
        beside: bool = False,
    ) -> tuple[Word, ...]:
        """Return the call of a script that writes to the store that we know, and to no other.

        `beside` says that its keys lie where the identity does. In a cluster others do not, and
        nothing is compared for them: what is emptied there is noticed a moment later.
        """
        identity = self._fence.marks.identity
        if identity is None or not (beside or self._client.one_server):
            return script.call(keys, *arguments, b"")
        return script.call((*keys, self._keys.identity), *arguments, identity)

    def _written(self, key: bytes, *words: Word) -> tuple[Word, ...]:
        """Return the call that runs one command on the store that we know."""
        return self._known(scripts.WRITE, (key,), *words)

    def _ask(
        self,
        read: Callable[[Any], T],
        key: bytes,
        words: Sequence[Word],
        *,
        repeatable: bool = True,
    ) -> Awaitable[T]:
        """Send one command; raise its error."""
        self._fence.require_open()
        sent = self._client.send([StoreCommand(key, words, repeatable)])
        return PendingAnswer(sent, lambda found: self._answered(read, found[0]))

    def _ask_all(
        self, read: Callable[[Any], T], commands: Sequence[StoreCommand]
    ) -> Awaitable[list[T]]:
        """Send many commands; raise the error of the first that failed."""
        self._fence.require_open()
        sent = self._client.send(commands)
        return PendingAnswer(sent, lambda found: [self._answered(read, reply) for reply in found])

    def _ask_values(
        self, read: Callable[[Any], T], keys: Sequence[bytes]
    ) -> Awaitable[Sequence[T]]:
        """Read the values of keys, many in one command where all are on one server; raise the
        error of the first that failed."""
        if not self._client.one_server or len(keys) < 2:
            return self._ask_all(read, [StoreCommand(key, (b"GET", key)) for key in keys])
        some = [keys[at : at + _MOST_VALUES] for at in range(0, len(keys), _MOST_VALUES)]

        def each(values: list[Any]) -> list[T]:
            return [_unless_failed(read, value) for value in values]

        commands = [StoreCommand(part[0], (b"MGET", *part)) for part in some]
        return PendingAnswer(self._ask_all(each, commands), replies.joined)

    def _ask_each(
        self, read: Callable[[Any], T], commands: Sequence[StoreCommand]
    ) -> Awaitable[list[T | DiscreetError]]:
        """Send many commands; list the error of each that failed in its place."""
        self._fence.require_open()
        sent = self._client.send(commands)
        return PendingAnswer(sent, lambda found: [replies.outcome(read, reply) for reply in found])

    def _ask_fenced(
        self, read: Callable[[Any], T], calls: Sequence[FencedCall]
    ) -> Awaitable[list[T | DiscreetError]]:
        """Call fenced scripts; list what became of each entry, its error in its place."""
        self._fence.require_open()
        sent = self._client.send([call.command for call in calls])

        # What a function's types are said to be in a string is not worked out at every call.
        def noted(found: "list[Any]") -> "list[T | DiscreetError]":
            outcomes: list[T | DiscreetError] = []
            for (_, shards, entries), reply in zip(calls, found, strict=True):
                if isinstance(reply, StoreFenced):
                    outcomes += [self._tripped(reply)] * entries
                elif isinstance(reply, DiscreetError):
                    outcomes += [reply] * entries
                else:
                    outcomes += self._entries(read, reply, shards, entries)
            return outcomes

        return PendingAnswer(sent, noted)

    def _entries(
        self, read: Callable[[Any], T], reply: list[Any], shards: Sequence[int], entries: int
    ) -> list[T | DiscreetError]:
        end = len(reply) - len(shards)
        width = end // entries
        for shard, writes in zip(shards, reply[end:], strict=True):
            self._fence.marks.note(shard, writes)
        parts = [reply[start : start + width] for start in range(0, end, width)]
        try:
            return [read(part) for part in parts]
        except Exception:  # one of them, or more: each is read by itself
            return [replies.outcome(read, part) for part in parts]

    def _answered(self, read: Callable[[Any], T], reply: Any) -> T:
        """Return what a reply means, or raise its error."""
        if isinstance(reply, StoreFenced):
            raise self._tripped(reply)
        return _unless_failed(read, reply)

    def _tripped(self, refusal: StoreFenced) -> StoreFenced:
        """Use the store no more, because a script has refused to run on it."""
        meaning = MEANINGS.get(str(refusal))
        return refusal if meaning is None else self._break(meaning)

    def _break(self, reason: str) -> StoreFenced:
        """Use the store no more, and say so in it: others may know less than we do."""
        if self._fence.reason is None and not reason.startswith(EMPTIED):
            # Nobody waits for it. An empty store stays empty.
            key = self._keys.identity
            words = (reason.encode(), self._fence.marks.identity or b"")
            self._client.send([StoreCommand(key, scripts.MARK_BROKEN.call((key,), *words))])
        return self._fence.trip(reason)


def _unless_failed(read: Callable[[Any], T], reply: Any) -> T:
    found = replies.outcome(read, reply)
    if isinstance(found, DiscreetError):
        raise found
    return found
