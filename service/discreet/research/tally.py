"""What came of traffic, second by second, so that the last can be compared with the first."""

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

_MOST_REASONS = 20


@dataclass(slots=True)
class Sums:
    """Additive results of some visits."""

    answers: int = 0
    degraded: int = 0
    reward: float = 0.0
    regret: float = 0.0

    def add(self, other: "Sums") -> None:
        """Add another's results to these."""
        self.answers += other.answers
        self.degraded += other.degraded
        self.reward += other.reward
        self.regret += other.regret

    def means(self) -> dict[str, float | int]:
        """Return averages for one answer; zeros where there was none."""
        count = max(self.answers, 1)
        return {
            "answers": self.answers,
            "mean_reward": round(self.reward / count, 4),
            "true_regret": round(self.regret / count, 4),
            "degraded_share": round(self.degraded / count, 4),
        }


class Tally:
    """Filled by the driver, read by the progress bar and the report."""

    def __init__(self) -> None:
        self.seconds: dict[int, Sums] = {}
        self.total = Sums()
        self.feedback = 0
        self.faults: Counter[str] = Counter()
        self.gone: str | None = None
        self.interrupted = False
        self._began = time.monotonic()
        self._ended: float | None = None

    # The driver writes.

    def begin(self) -> None:
        """Start the clock."""
        self._began = time.monotonic()

    def answered(self, *, personalised: bool, reward: float, regret: float) -> None:
        """Note one recommendation, what it earned and what it truly gave up."""
        one = Sums(1, 0 if personalised else 1, reward, regret)
        self.total.add(one)
        self.seconds.setdefault(int(self.elapsed()), Sums()).add(one)

    def heard(self) -> None:
        """Note that the server accepted a feedback."""
        self.feedback += 1

    def fault(self, reason: str) -> None:
        """Note that something failed, and why; only so many different reasons are kept."""
        known = reason in self.faults or len(self.faults) < _MOST_REASONS
        self.faults[reason if known else "other reasons"] += 1

    def give_up(self, reason: str) -> None:
        """Note that there is no point in going on."""
        self.gone = self.gone or reason

    def finish(self, *, interrupted: bool) -> None:
        """Stop the clock."""
        self._ended = time.monotonic()
        self.interrupted = interrupted

    # Others read.

    def elapsed(self) -> float:
        """Return seconds since the beginning, up to the end."""
        return (time.monotonic() if self._ended is None else self._ended) - self._began

    def recent(self, seconds: int = 5) -> Sums:
        """Return the results of the last few seconds."""
        now = int(self.elapsed())
        return self._between(now - seconds + 1, now)

    def first_and_last(self) -> tuple[Sums, Sums]:
        """Return the results of the first and of the last sixth of the time."""
        last = max(self.seconds, default=0)
        share = max(1, round((last + 1) / 6))
        return self._between(0, share - 1), self._between(last - share + 1, last)

    def report(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        first, last = self.first_and_last()
        elapsed = self.elapsed()
        return {
            "seconds": round(elapsed, 3),
            "answers_per_second": round(self.total.answers / max(elapsed, 1e-9), 1),
            "feedback": self.feedback,
            "overall": self.total.means(),
            "first_sixth": first.means(),
            "last_sixth": last.means(),
            "faults": dict(self.faults),
            "gone": self.gone,
            "interrupted": self.interrupted,
        }

    def _between(self, first: int, last: int) -> Sums:
        sums = Sums()
        for second in range(first, last + 1):
            sums.add(self.seconds.get(second, Sums()))
        return sums
