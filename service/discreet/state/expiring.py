"""A dictionary whose entries go at their own time, as keys with a time to live do in Redis."""

import heapq
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Expiring(Generic[K, V]):
    """Entries with a deadline on a clock that the owner chooses.

    Every write also drops what has expired, so memory is bounded by what is alive, and nothing
    ever sweeps the whole. The heap may hold deadlines of entries that were replaced or removed;
    they are recognised by the deadline that the entry has now.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._entries: dict[K, tuple[float, V]] = {}
        self._deadlines: list[tuple[float, int, K]] = []
        self._writes = 0  # breaks ties, so that keys themselves are never compared

    def get(self, key: K) -> V | None:
        """Return the value while it lives."""
        entry = self._entries.get(key)
        if entry is None or entry[0] <= self._clock():
            return None
        return entry[1]

    def put(self, key: K, value: V, ttl: float) -> None:
        """Set the value and a fresh time to live, in the clock's seconds."""
        now = self._clock()
        self._drop_expired(now)
        self._writes += 1
        self._entries[key] = (now + ttl, value)
        heapq.heappush(self._deadlines, (now + ttl, self._writes, key))

    def remove(self, key: K) -> None:
        """Remove the value if there is one."""
        self._entries.pop(key, None)

    def __contains__(self, key: K) -> bool:
        entry = self._entries.get(key)
        return entry is not None and entry[0] > self._clock()

    def __iter__(self) -> Iterator[K]:
        now = self._clock()
        return iter([key for key, (deadline, _) in self._entries.items() if deadline > now])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _drop_expired(self, now: float) -> None:
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= now:
            deadline, _, key = heapq.heappop(deadlines)
            entry = self._entries.get(key)
            if entry is not None and entry[0] == deadline:
                del self._entries[key]
