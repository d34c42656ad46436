"""What a worker remembers, up to so much of it. Looked at several times for every question."""

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """Values by name, whose sizes sum to at most `most`: the longest unused go first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = 0
        self._held: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def get(self, name: K) -> V | None:
        """Return what is remembered under a name."""
        held = self._held.get(name)
        if held is None:
            return None
        self._held.move_to_end(name)
        return held[0]

    def put(self, name: K, value: V, size: int = 1) -> None:
        """Remember a value in place of what there was, unless it is too large for all of this."""
        held = self._held.get(name)
        if held is not None and held[0] is value and held[1] == size:
            self._held.move_to_end(name)
            return
        self.drop(name)
        if size > self.most:
            return
        self._held[name] = value, size
        self.size += size
        while self.size > self.most:
            self.size -= self._held.popitem(last=False)[1][1]

    def drop(self, name: K) -> None:
        """Forget a value."""
        held = self._held.pop(name, None)
        if held is not None:
            self.size -= held[1]

    def clear(self) -> None:
        """Forget everything."""
        self._held.clear()
        self.size = 0
