"""The results of traffic, second by second, so that the end can be compared with the beginning."""

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

WINDOW_SECONDS = 10
"""How much of the beginning is compared with as much of the end; half of a shorter run."""

_MOST_REASONS = 20


@dataclass(slots=True)
class VisitTotals:
    """Additive results of some visits."""

    answers: int = 0
    degraded: int = 0
    reward: float = 0.0
    regret: float = 0.0
    personalised_regret: float = 0.0

    def add(self, other: "VisitTotals") -> None:
        """Add another's results to these."""
        self.answers += other.answers
        self.degraded += other.degraded
        self.reward += other.reward
        self.regret += other.regret
        self.personalised_regret += other.personalised_regret

    def means(self) -> dict[str, float | int]:
        """Return averages for one answer; zeros where there was none.

        `personalised_regret` is that of the answers that were not degraded.
        """
        count = max(self.answers, 1)
        personalised = max(self.answers - self.degraded, 1)
        return {
            "answers": self.answers,
            "mean_reward": round(self.reward / count, 4),
            "true_regret": round(self.regret / count, 4),
            "personalised_regret": round(self.personalised_regret / personalised, 4),
            "degraded_share": round(self.degraded / count, 4),
        }


class TrafficResults:
    """Filled by the driver, read by the progress bar and the report."""

    def __init__(self) -> None:
        self.seconds: dict[int, VisitTotals] = {}
        self.total = VisitTotals()
        self.feedback = 0
        self.errors: Counter[str] = Counter()
        self.gave_up: str | None = None
        self.interrupted = False
        self._began = time.monotonic()
        self._ended: float | None = None

    # The driver writes.

    def begin(self) -> None:
        """Start the clock."""
        self._began = time.monotonic()

    def add_answer(self, *, personalised: bool, reward: float, regret: float) -> None:
        """Count one recommendation, its reward and its true regret."""
        one = VisitTotals(
            answers=1,
            degraded=0 if personalised else 1,
            reward=reward,
            regret=regret,
            personalised_regret=regret if personalised else 0.0,
        )
        self.total.add(one)
        self.seconds.setdefault(int(self.elapsed()), VisitTotals()).add(one)

    def add_feedback(self) -> None:
        """Count feedback that the server accepted."""
        self.feedback += 1

    def add_error(self, reason: str) -> None:
        """Count a failure by its reason; only so many different reasons are kept."""
        known = reason in self.errors or len(self.errors) < _MOST_REASONS
        self.errors[reason if known else "other reasons"] += 1

    def give_up(self, reason: str) -> None:
        """Record why the traffic ends early; the first reason stays."""
        self.gave_up = self.gave_up or reason

    def finish(self, *, interrupted: bool) -> None:
        """Stop the clock."""
        self._ended = time.monotonic()
        self.interrupted = interrupted

    # Others read.

    def elapsed(self) -> float:
        """Return seconds since the beginning, up to the end."""
        return (time.monotonic() if self._ended is None else self._ended) - self._began

    def recent(self, seconds: int = 5) -> VisitTotals:
        """Return the results of the last few seconds."""
        now = int(self.elapsed())
        return self._between(now - seconds + 1, now)

    def window(self) -> int:
        """Return how many seconds `first` and `last` are about."""
        return max(1, min(WINDOW_SECONDS, (self._end() + 1) // 2))

    def first(self) -> VisitTotals:
        """Return the results of the first seconds."""
        return self._between(0, self.window() - 1)

    def last(self) -> VisitTotals:
        """Return the results of the last seconds."""
        return self._between(self._end() - self.window() + 1, max(self.seconds, default=0))

    def report(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        elapsed = self.elapsed()
        return {
            "seconds": round(elapsed, 3),
            "answers_per_second": round(self.total.answers / max(elapsed, 1e-9), 1),
            "feedback": self.feedback,
            "overall": self.total.means(),
            "window_seconds": self.window(),
            "first": self.first().means(),
            "last": self.last().means(),
            "errors": dict(self.errors),
            "gave_up": self.gave_up,
            "interrupted": self.interrupted,
        }

    def _end(self) -> int:
        """Return the last second with answers that had time for them: the last answers of a minute
        come just after it."""
        return max(0, min(max(self.seconds, default=0), int(self.elapsed() - 0.5)))

    def _between(self, first: int, last: int) -> VisitTotals:
        totals = VisitTotals()
        for second in range(first, last + 1):
            totals.add(self.seconds.get(second, VisitTotals()))
        return totals
