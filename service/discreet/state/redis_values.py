"""Blobs, pages, rosters and leases on Redis or Valkey; see `redis_store`, which adds the rest.

What replaces or appends is not repeatable: sent again after its answer was lost, it could undo
what somebody else wrote meanwhile, or report its own success as somebody else's.
"""

import struct
from collections.abc import Awaitable, Iterator, Sequence

from discreet.errors import DiscreetError
from discreet.state import checks, replies, scripts
from discreet.state.client import StoreCommand, Word
from discreet.state.debits import MOST_TOGETHER
from discreet.state.ready import Ready
from discreet.state.redis_commands import FencedCall, PendingAnswer, RedisCommands
from discreet.state.runs import packed_runs
from discreet.state.store_values import PageWrite, Stamp
from discreet.state.stores import Blob, Written

_GUARD = struct.Struct(">II")
"""Where a guard stands, and how long it is."""


class RedisValues(RedisCommands):
    """The part of `stores.Store` that holds values."""

    def load(self, *, keys: Sequence[bytes]) -> Awaitable[Sequence[Blob | None]]:
        blobs = [self._keys.blob(key) for key in checks.digests("keys", keys)]
        # Each by itself: a value of another type is an error here, and must not look absent. It may
        # be an erasure, or an answer that was paid for.
        return self._ask_all(replies.blob, [StoreCommand(key, (b"GET", key)) for key in blobs])

    def versions(self, *, keys: Sequence[bytes]) -> Awaitable[Sequence[int]]:
        blobs = [self._keys.blob(key) for key in checks.digests("keys", keys)]
        last = replies.VERSION_BYTES - 1
        commands = [StoreCommand(key, (b"GETRANGE", key, 0, last)) for key in blobs]
        return self._ask_all(replies.version, commands)

    def save(
        self, *, key: bytes, content: bytes, expected: int | None = None
    ) -> Awaitable[int | None]:
        blob = self._keys.blob(checks.digest("key", key))
        arguments: list[Word] = [checks.blob("content", content)]
        if checks.expected(expected) is not None:
            arguments.append(expected or 0)
        call = self._known(scripts.SAVE_BLOB, (blob,), *arguments)
        return self._ask(replies.saved, blob, call, repeatable=False)

    def stamp(self, *, key: bytes) -> Awaitable[Stamp]:
        blob = self._keys.blob(checks.digest("key", key))
        call = self._known(scripts.STAMP_BLOB, (blob,))
        return self._ask(replies.stamped, blob, call, repeatable=False)

    def erase(self, *, keys: Sequence[bytes]) -> Awaitable[None]:
        commands = []
        for key in checks.digests("keys", keys):
            blob = self._keys.blob(key)
            commands.append(
                StoreCommand(blob, (b"UNLINK", blob, self._keys.page(key), self._keys.stream(key)))
            )
        return PendingAnswer(self._ask_all(replies.nothing, commands), replies.nothing)

    def read_page(self, *, page: bytes, start: int = 0, end: int | None = None) -> Awaitable[bytes]:
        key = self._keys.page(checks.digest("page", page))
        start, end = checks.span(start, end)
        if end <= start:
            return Ready(b"")  # the server would read "up to -1" as "up to the end"
        return self._ask(bytes, key, (b"GETRANGE", key, start, end - 1))

    def write_page(
        self,
        *,
        page: bytes,
        writes: Sequence[tuple[int, bytes]],
        guard: tuple[int, bytes] | None = None,
    ) -> Awaitable[Written]:
        key = self._keys.page(checks.digest("page", page))
        offset, wanted = checks.guard(guard)
        runs, contents = packed_runs(checks.writes(writes))
        call = self._known(scripts.WRITE_PAGE, (key,), offset, wanted, runs, contents)
        return self._ask(replies.written, key, call, repeatable=False)

    def read_pages(
        self, *, pages: Sequence[bytes], head: int, starts: Sequence[int]
    ) -> Awaitable[Sequence[tuple[bytes, bytes]]]:
        checks.starts(pages, head, starts)
        keys = list(map(self._keys.page, pages))
        commands = []
        for some in self._together(len(keys)):
            call = scripts.READ_PAGES.call(keys[some], head, *starts[some])
            commands.append(StoreCommand(keys[some.start], call))
        return PendingAnswer(self._ask_all(replies.heads_and_rests, commands), replies.joined)

    def write_pages(
        self, writes: Sequence[PageWrite]
    ) -> Awaitable[Sequence[Written | DiscreetError]]:
        calls = []
        for some in self._together(len(writes)):
            keys: list[bytes] = []
            words: list[Word] = [checks.MOST_PAGE]
            for each in writes[some]:
                page, start, content, guards, long = checks.page_write(each)
                keys.append(self._keys.page(page))
                packed = [_GUARD.pack(at, len(wanted)) + wanted for at, wanted in guards]
                words += (b"".join(packed), b"" if long is None else long, start, content)
            call = self._known(scripts.WRITE_PAGES, keys, *words)
            calls.append(FencedCall(StoreCommand(keys[0], call, repeatable=False), (), len(keys)))
        return self._ask_fenced(replies.written, calls)

    def _together(self, pages: int) -> Iterator[slice]:
        """Cut pages as far as one call may touch them: in a cluster, each is on its own slot."""
        most = MOST_TOGETHER if self._client.one_server else 1
        return (slice(start, min(start + most, pages)) for start in range(0, pages, most))

    def enrol(self, *, roster: bytes, names: Sequence[bytes]) -> Awaitable[Sequence[int]]:
        key = self._keys.roster(checks.digest("roster", roster))
        call = self._known(scripts.ENROL, (key,), *checks.digests("names", names))
        return self._ask(list, key, call)

    def number_of(
        self, *, roster: bytes, names: Sequence[bytes]
    ) -> Awaitable[Sequence[int | None]]:
        key = self._keys.roster(checks.digest("roster", roster))
        if not checks.digests("names", names):
            return Ready([])  # the server wants at least one
        return self._ask(replies.numbers, key, (b"HMGET", key, *names))

    def roster_size(self, *, roster: bytes) -> Awaitable[int]:
        key = self._keys.roster(checks.digest("roster", roster))
        return self._ask(int, key, (b"HLEN", key))

    def remove_roster(self, *, roster: bytes) -> Awaitable[None]:
        key = self._keys.roster(checks.digest("roster", roster))
        return self._ask(replies.nothing, key, (b"UNLINK", key))

    def hold(self, *, lease: bytes, holder: bytes, seconds: float) -> Awaitable[bool]:
        key = self._keys.lease(checks.digest("lease", lease))
        checks.digest("holder", holder)
        call = self._known(scripts.HOLD, (key,), holder, checks.lasting(seconds))
        return self._ask(bool, key, call)

    def let_go(self, *, lease: bytes, holder: bytes) -> Awaitable[None]:
        key = self._keys.lease(checks.digest("lease", lease))
        checks.digest("holder", holder)
        return self._ask(replies.nothing, key, scripts.LET_GO.call((key,), holder))
