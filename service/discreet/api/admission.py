"""How much one worker does at a time, and what becomes of the rest.

A worker that takes on everything answers everybody late. This one takes on what it can finish soon
and refuses the rest with 429, before anything is looked at, counted or debited.

*How much is soon* is learned: the number of requests in flight may grow while they are answered
quickly, the more quickly the faster, and shrinks as soon as they are not (`target_seconds`, on
average), whatever it is that is slow: this processor, large catalogues, the store. Calls beside the
request path have room of their own, so that an operator gets in; health and metrics are always
answered.

*Refusing must stay cheap.* Whoever asks again at once, against Retry-After, would keep a worker
busy with refusals. So refusals leave at a bounded pace: the more of them wait, the later they are
sent, two seconds at most. What is admitted waits for none of them.

*Batches* are long work. Only a few are read at the same time, and they do not count in the average.
"""

import logging
from collections.abc import Callable
from time import monotonic

log = logging.getLogger(__name__)

MOST_BATCHES = 4
_FEWEST = 64
"""A busy machine answers a few dozen a little late, rather than none of them."""
_FIRST = 128
_MOST_BESIDE = 32
"""Requests that are not on the request path: whoever mends an overload gets in."""
_WINDOW_SECONDS = 0.1
_REFUSALS_PER_SECOND = 500
_LONGEST_WAIT = 2.0
_SAY_SECONDS = 10.0
_GOLDEN = 0.618
"""Multiples of it, less their whole parts, lie evenly between 0 and 1."""


class Admission:
    """Admits requests of one worker. `most` bounds what is learned; `clock` is in seconds."""

    def __init__(
        self,
        *,
        most: int = 512,
        target_seconds: float = 0.03,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.in_flight = 0
        self.batches = 0
        self.beside = 0
        self.bound: float = min(_FIRST, most)
        """How many may be in flight now."""
        self._most = most
        self._fewest = min(_FEWEST, most)
        self._target = target_seconds
        self._clock = clock
        self._window = clock()
        self._answers = 0
        self._seconds = 0.0
        self._was_full = False
        self._next_refusal = 0.0
        self._said = -_SAY_SECONDS
        self._unsaid = 0
        self._spread = 0.0

    def enter(self) -> bool:
        """Take a request on, if there is room; whoever was let in has to `leave`."""
        if self.in_flight >= self.bound:
            self._was_full = True
            return False
        self.in_flight += 1
        return True

    def leave(self, seconds: float | None = None) -> None:
        """Finish a request that took so long; None if that says nothing about others."""
        self.in_flight -= 1
        if seconds is None:
            return
        self._answers += 1
        self._seconds += seconds
        now = self._clock()
        if now - self._window >= _WINDOW_SECONDS:
            self._learn(self._seconds / self._answers)
            self._window = now
            self._answers, self._seconds, self._was_full = 0, 0.0, False

    def enter_batch(self) -> bool:
        """Take on a batch, if there is room; whoever was let in has to `leave_batch`."""
        if self.batches >= MOST_BATCHES:
            return False
        self.batches += 1
        return True

    def leave_batch(self) -> None:
        """Finish a batch."""
        self.batches -= 1

    def enter_beside(self) -> bool:
        """Take on what is not on the request path, if there is room; then `leave_beside`."""
        if self.beside >= _MOST_BESIDE:
            return False
        self.beside += 1
        return True

    def leave_beside(self) -> None:
        """Finish what is not on the request path."""
        self.beside -= 1

    def _learn(self, mean: float) -> None:
        if mean > self._target:
            self.bound = max(self._fewest, self.bound * max(0.5, self._target / mean))
        elif self._was_full:
            # Twice as many take twice as long, so there is room for this many at half the target.
            more = min(2.0, max(1.1, self._target / (2 * mean))) if mean > 0 else 2.0
            self.bound = min(self._most, self.bound * more + 1)

    def refusal_delay(self) -> float:
        """Note a refusal; return after how many seconds it should be sent."""
        now = self._clock()
        self._unsaid += 1
        if now - self._said >= _SAY_SECONDS:
            log.warning(
                "too many requests: %d refused with 429, at most %d in flight",
                self._unsaid,
                self.bound,
            )
            self._said, self._unsaid = now, 0
        due = max(now, self._next_refusal)
        if due - now >= _LONGEST_WAIT:
            # Not all at the same moment: they would come back at the same moment.
            self._spread = (self._spread + _GOLDEN) % 1.0
            return _LONGEST_WAIT * (1 + self._spread) / 2
        self._next_refusal = due + 1 / _REFUSALS_PER_SECOND
        return due - now
