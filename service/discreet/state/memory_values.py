"""Blobs, pages, rosters and leases in memory; see `memory`, which adds the rest."""

import math
from collections.abc import Awaitable, Callable, Sequence

from discreet.errors import DiscreetError, StateOverflow
from discreet.state import checks
from discreet.state.expiring import Expiring
from discreet.state.ready import Ready
from discreet.state.store_values import STAMP_BYTES, PageWrite, Stamp
from discreet.state.stores import Blob, Written


class MemoryValues:
    """The part of `stores.Store` that holds values; `clock` decides when a lease has ended."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._blobs: dict[bytes, Blob] = {}
        self._pages: dict[bytes, bytearray] = {}
        self._rosters: dict[bytes, dict[bytes, int]] = {}
        self._leases: Expiring[bytes, bytes] = Expiring(clock)
        self._now = clock

    def load(self, *, keys: Sequence[bytes]) -> Awaitable[Sequence[Blob | None]]:
        return Ready([self._blobs.get(key) for key in checks.digests("keys", keys)])

    def versions(self, *, keys: Sequence[bytes]) -> Awaitable[Sequence[int]]:
        blobs = (self._blobs.get(key) for key in checks.digests("keys", keys))
        return Ready([0 if blob is None else blob.version for blob in blobs])

    def save(
        self, *, key: bytes, content: bytes, expected: int | None = None
    ) -> Awaitable[int | None]:
        checks.digest("key", key)
        checks.blob("content", content)
        standing = self._blobs.get(key)
        version = standing.version if standing else 0
        if checks.expected(expected) not in (None, version):
            return Ready(None)
        self._blobs[key] = Blob(version=version + 1, content=content)
        return Ready(version + 1)

    def stamp(self, *, key: bytes) -> Awaitable[Stamp]:
        now = math.floor(self._now() * 1000) / 1000
        content = math.ceil(now).to_bytes(STAMP_BYTES, "little")

        async def stamped() -> Stamp:
            version = await self.save(key=key, content=content)
            assert version is not None, "nobody else's version was expected"
            return Stamp(version, now)

        return stamped()

    def read_page(self, *, page: bytes, start: int = 0, end: int | None = None) -> Awaitable[bytes]:
        start, end = checks.span(start, end)
        return Ready(bytes(self._pages.get(checks.digest("page", page), b"")[start:end]))

    def write_page(
        self,
        *,
        page: bytes,
        writes: Sequence[tuple[int, bytes]],
        guard: tuple[int, bytes] | None = None,
    ) -> Awaitable[Written]:
        checks.digest("page", page)
        checks.writes(writes)
        offset, wanted = checks.guard(guard)
        held = self._pages.get(page) or bytearray()
        found = bytes(held[offset : offset + len(wanted)])
        if found != wanted:
            return Ready(Written(done=False, length=len(held), found=found))
        for start, content in writes:
            if content:
                held.extend(bytes(max(0, start - len(held))))
                held[start : start + len(content)] = content
        if held:
            self._pages[page] = held
        return Ready(Written(done=True, length=len(held), found=found))

    def read_pages(
        self, *, pages: Sequence[bytes], head: int, starts: Sequence[int]
    ) -> Awaitable[Sequence[tuple[bytes, bytes]]]:
        checks.starts(pages, head, starts)
        held = [self._pages.get(page, b"") for page in pages]
        return Ready(
            [
                (bytes(page[:head]), bytes(page[start:]))
                for page, start in zip(held, starts, strict=True)
            ]
        )

    def write_pages(
        self, writes: Sequence[PageWrite]
    ) -> Awaitable[Sequence[Written | DiscreetError]]:
        for each in writes:
            checks.page_write(each)
        return Ready([self._written(each) for each in writes])

    def _written(self, write: PageWrite) -> Written | DiscreetError:
        page, start, content, guards, long = write
        held = self._pages.get(page) or bytearray()
        found = b"".join(bytes(held[at : at + len(wanted)]) for at, wanted in guards)
        if long not in (None, len(held)) or found != b"".join(wanted for _, wanted in guards):
            return Written(done=False, length=len(held), found=found)
        try:
            checks.page_end(start + len(content))
        except StateOverflow as overflow:
            return overflow
        if content:
            held.extend(bytes(max(0, start - len(held))))
            held[start : start + len(content)] = content
            self._pages[page] = held
        return Written(done=True, length=len(held), found=found)

    def erase(self, *, keys: Sequence[bytes]) -> Awaitable[None]:
        for key in checks.digests("keys", keys):
            self._blobs.pop(key, None)
            self._pages.pop(key, None)
        return Ready(None)

    def enrol(self, *, roster: bytes, names: Sequence[bytes]) -> Awaitable[Sequence[int]]:
        checks.digest("roster", roster)
        checks.digests("names", names)
        numbers = self._rosters.setdefault(roster, {})
        return Ready([numbers.setdefault(name, len(numbers)) for name in names])

    def number_of(
        self, *, roster: bytes, names: Sequence[bytes]
    ) -> Awaitable[Sequence[int | None]]:
        numbers = self._rosters.get(checks.digest("roster", roster), {})
        return Ready([numbers.get(name) for name in checks.digests("names", names)])

    def roster_size(self, *, roster: bytes) -> Awaitable[int]:
        return Ready(len(self._rosters.get(checks.digest("roster", roster), ())))

    def remove_roster(self, *, roster: bytes) -> Awaitable[None]:
        self._rosters.pop(checks.digest("roster", roster), None)
        return Ready(None)

    def hold(self, *, lease: bytes, holder: bytes, seconds: float) -> Awaitable[bool]:
        checks.digest("lease", lease)
        checks.digest("holder", holder)
        lasting = checks.lasting(seconds)
        if self._leases.get(lease) not in (None, holder):
            return Ready(False)
        self._leases.put(lease, holder, lasting / 1000)
        return Ready(True)

    def let_go(self, *, lease: bytes, holder: bytes) -> Awaitable[None]:
        checks.digest("holder", holder)
        if self._leases.get(checks.digest("lease", lease)) == holder:
            self._leases.remove(lease)
        return Ready(None)
