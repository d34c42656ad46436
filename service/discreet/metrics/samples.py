"""Samples added up in plain numbers, between two flushes."""

from bisect import bisect_left
from typing import Any

from prometheus_client import Histogram

from discreet.families.observer import Answer, Heard

DURATIONS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Tally:
    """What one recommender's decisions added since the last flush."""

    __slots__ = (
        "answers",
        "dirty",
        "exhausted",
        "heard",
        "items",
        "nano_epsilon",
        "nano_rho",
        "regret",
        "reward",
    )

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin again at nothing."""
        self.answers: dict[Answer, int] = {}
        self.heard: dict[Heard, int] = {}
        self.items = 0
        self.nano_epsilon = 0
        self.nano_rho = 0
        self.regret = 0.0
        self.reward = 0.0
        self.exhausted = 0
        self.dirty = False


class Durations:
    """One histogram's samples since the last flush, by bucket."""

    __slots__ = ("_child", "_counts", "_sum", "dirty")

    def __init__(self, child: Histogram) -> None:
        self._child = child
        self._counts = [0] * (len(DURATIONS) + 1)
        self._sum = 0.0
        self.dirty = False

    def add(self, seconds: float) -> None:
        """Note one sample."""
        self._counts[bisect_left(DURATIONS, seconds)] += 1
        self._sum += seconds
        self.dirty = True

    def flush(self) -> None:
        """Write what was noted. `observe` takes one sample at a time, so its parts are used."""
        child: Any = self._child
        child._sum.inc(self._sum)
        for bucket, count in enumerate(self._counts):
            if count:
                child._buckets[bucket].inc(count)
                self._counts[bucket] = 0
        self._sum = 0.0
        self.dirty = False
