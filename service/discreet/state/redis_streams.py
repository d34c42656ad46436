"""Streams on Redis or Valkey; see `redis_store`, which adds the rest.

A line's number begins with the server's own time, so that what is too old is found by number.
"""

from collections.abc import Awaitable, Sequence
from typing import Any

from discreet.state import checks, replies
from discreet.state.client import StoreCommand, Word
from discreet.state.ready import Ready
from discreet.state.redis_commands import PendingAnswer
from discreet.state.redis_fence import RedisFence

_FIELD = b"line"


class RedisStreams(RedisFence):
    """The part of `stores.Store` that holds streams."""

    def append_stream(self, *, stream: bytes, lines: Sequence[bytes], keep: int) -> Awaitable[None]:
        key = self._keys.stream(checks.digest("stream", stream))
        oldest = self._oldest(keep)
        commands = [
            StoreCommand(
                key,
                self._written(key, b"XADD", key, b"MINID", oldest, b"*", _FIELD, line),
                repeatable=False,
            )
            for line in (checks.document("line", each) for each in lines)
        ]
        # Nobody may be there to remove the last lines.
        commands.append(StoreCommand(key, (b"EXPIRE", key, keep)))
        return PendingAnswer(self._ask_all(replies.nothing, commands), replies.nothing)

    def trim_stream(self, *, stream: bytes, keep: int) -> Awaitable[None]:
        key = self._keys.stream(checks.digest("stream", stream))
        return self._ask(replies.nothing, key, (b"XTRIM", key, b"MINID", self._oldest(keep)))

    def read_stream(
        self, *, stream: bytes, after: bytes = b"", most: int = 1_000
    ) -> Awaitable[Sequence[tuple[bytes, bytes]]]:
        key = self._keys.stream(checks.digest("stream", stream))
        start = b"(" + after if after else b"-"
        return self._ask(_lines, key, (b"XRANGE", key, start, b"+", b"COUNT", most))

    def remove_from_stream(self, *, stream: bytes, numbers: Sequence[bytes]) -> Awaitable[None]:
        key = self._keys.stream(checks.digest("stream", stream))
        if not numbers:
            return Ready(None)  # the server wants at least one
        words: tuple[Word, ...] = (b"XDEL", key, *numbers)
        return self._ask(replies.nothing, key, words)

    def _oldest(self, keep: int) -> int:
        return max(0, int((self.clock() - checks.ttl("keep", keep)) * 1_000))


def _lines(reply: Any) -> list[tuple[bytes, bytes]]:
    return [(number, fields[1]) for number, fields in reply]
