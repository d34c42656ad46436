"""Samples added up in plain numbers, between two flushes."""

from bisect import bisect_left
from typing import Any

from prometheus_client import Histogram

from discreet.families.budgets import TENTHS
from discreet.families.observer import AnswerOutcome
from discreet.privacy.charges import UNLIMITED, Charge

DURATIONS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class DecisionTotals:
    """What one recommender's decisions added since the last flush."""

    __slots__ = (
        "answers",
        "dirty",
        "exhausted",
        "items",
        "nano_epsilon",
        "nano_rho",
        "reached",
    )

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin again at nothing."""
        self.answers: dict[AnswerOutcome, int] = {}
        self.items = 0
        self.nano_epsilon = 0
        self.nano_rho = 0
        self.reached = [0] * (TENTHS + 1)
        self.exhausted = 0
        self.dirty = False

    def charge(self, charge: Charge, times: int = 1) -> None:
        """Add a charge. What a ledger books as unlimited is left out of the sum: exact answers
        have no bound at all."""
        if charge.nano_epsilon != UNLIMITED:
            self.nano_epsilon += times * charge.nano_epsilon
        if charge.nano_rho != UNLIMITED:
            self.nano_rho += times * charge.nano_rho


class DurationSamples:
    """One histogram's samples since the last flush, by bucket."""

    __slots__ = ("_child", "_counts", "_sum", "dirty")

    def __init__(self, child: Histogram) -> None:
        self._child = child
        self._counts = [0] * (len(DURATIONS) + 1)
        self._sum = 0.0
        self.dirty = False

    def add(self, seconds: float) -> None:
        """Add one sample."""
        self._counts[bisect_left(DURATIONS, seconds)] += 1
        self._sum += seconds
        self.dirty = True

    def flush(self) -> None:
        """Write what was added. `observe` takes one sample at a time, so its parts are used."""
        child: Any = self._child
        child._sum.inc(self._sum)
        for bucket, count in enumerate(self._counts):
            if count:
                child._buckets[bucket].inc(count)
                self._counts[bucket] = 0
        self._sum = 0.0
        self.dirty = False
