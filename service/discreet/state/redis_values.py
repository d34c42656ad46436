"""Blobs, pages, rosters and leases on Redis or Valkey; see `redis_store`, which adds the rest.

What replaces or appends is not repeatable: sent again after its answer was lost, it could undo
what somebody else wrote meanwhile, or report its own success as somebody else's.
"""

from collections.abc import Awaitable, Sequence

from discreet.state import checks, replies, scripts
from discreet.state.connection import Connection
from discreet.state.ready import Ready
from discreet.state.runs import packed_runs
from discreet.state.scripts import packed
from discreet.state.stores import Blob, Written


class RedisValues(Connection):
    """The part of `stores.Store` that holds values."""

    def load(self, *, keys: Sequence[bytes]) -> Awaitable[Sequence[Blob | None]]:
        blobs = [self._keys.blob(key) for key in checks.digests("keys", keys)]
        return self._send_all([(packed(b"GET", blob), blob) for blob in blobs], replies.blob)

    def save(
        self, *, key: bytes, content: bytes, expected: int | None = None
    ) -> Awaitable[int | None]:
        blob = self._keys.blob(checks.digest("key", key))
        arguments: list[bytes | int] = [checks.blob("content", content)]
        if checks.expected(expected) is not None:
            arguments.append(expected or 0)
        payload = scripts.SAVE_BLOB.call((blob,), *arguments)
        return self._send(payload, blob, replies.version, repeatable=False)

    def read_page(self, *, page: bytes, start: int = 0, end: int | None = None) -> Awaitable[bytes]:
        key = self._keys.page(checks.digest("page", page))
        start, end = checks.span(start, end)
        if end <= start:
            return Ready(b"")  # the server would read "up to -1" as "up to the end"
        return self._send(packed(b"GETRANGE", key, start, end - 1), key, bytes)

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
        payload = scripts.WRITE_PAGE.call((key,), offset, wanted, runs, contents)
        return self._send(payload, key, replies.written, repeatable=False)

    def append_page(
        self, *, page: bytes, content: bytes, expected: int | None = None
    ) -> Awaitable[int | None]:
        key = self._keys.page(checks.digest("page", page))
        arguments: list[bytes | int] = [checks.blob("content", content), checks.MOST_PAGE]
        if checks.expected(expected) is not None:
            arguments.append(expected or 0)
        payload = scripts.APPEND_PAGE.call((key,), *arguments)
        return self._send(payload, key, replies.length, repeatable=False)

    def erase(self, *, keys: Sequence[bytes]) -> Awaitable[None]:
        commands = []
        for key in checks.digests("keys", keys):
            blob = self._keys.blob(key)
            commands.append((packed(b"UNLINK", blob, self._keys.page(key)), blob))
        return self._send_together(commands)

    def enrol(self, *, roster: bytes, names: Sequence[bytes]) -> Awaitable[Sequence[int]]:
        key = self._keys.roster(checks.digest("roster", roster))
        payload = scripts.ENROL.call((key,), *checks.digests("names", names))
        return self._send(payload, key, list)

    def number_of(
        self, *, roster: bytes, names: Sequence[bytes]
    ) -> Awaitable[Sequence[int | None]]:
        key = self._keys.roster(checks.digest("roster", roster))
        if not checks.digests("names", names):
            return Ready([])  # the server wants at least one
        return self._send(packed(b"HMGET", key, *names), key, replies.numbers)

    def roster_size(self, *, roster: bytes) -> Awaitable[int]:
        key = self._keys.roster(checks.digest("roster", roster))
        return self._send(packed(b"HLEN", key), key, int)

    def strike_roster(self, *, roster: bytes) -> Awaitable[None]:
        key = self._keys.roster(checks.digest("roster", roster))
        return self._send(packed(b"UNLINK", key), key, replies.nothing)

    def hold(self, *, lease: bytes, holder: bytes, seconds: float) -> Awaitable[bool]:
        key = self._keys.lease(checks.digest("lease", lease))
        payload = scripts.HOLD.call(
            (key,), checks.digest("holder", holder), checks.lasting(seconds)
        )
        return self._send(payload, key, bool)

    def let_go(self, *, lease: bytes, holder: bytes) -> Awaitable[None]:
        key = self._keys.lease(checks.digest("lease", lease))
        payload = scripts.LET_GO.call((key,), checks.digest("holder", holder))
        return self._send(payload, key, replies.nothing)
