"""A circuit breaker: a peer that keeps failing is left out for a while, then tried once.

Closed, it lets every message pass. After `FAILURES` in a row it opens: none passes for a pause.
Then one may try; success closes it, failure opens it again for twice as long, up to the longest
pause.
"""

from collections.abc import Callable

FAILURES = 5
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0


class CircuitBreaker:
    """The state of one peer, for one worker. `clock` counts seconds and never goes back."""

    def __init__(
        self, *, clock: Callable[[], float], changed: Callable[[bool], None] | None = None
    ) -> None:
        self._clock = clock
        self._changed = changed
        self._failed = 0
        self._pause = 0.0
        self._until = 0.0
        self._trying = False
        self._before_success = (0, 0.0)

    @property
    def is_open(self) -> bool:
        """Whether the peer is being left out, or is on trial."""
        return self._pause > 0

    def admits(self) -> bool:
        """Tell whether a message may be sent now."""
        if not self.is_open:
            return True
        return not self._trying and self._clock() >= self._until

    def enter(self) -> bool:
        """Tell the same; whoever is admitted must report how it went."""
        if not self.admits():
            return False
        self._trying = self.is_open
        return True

    def succeeded(self) -> None:
        """Note that the peer answered."""
        self._before_success = (self._failed, self._pause)
        self._failed, self._pause, self._trying = 0, 0.0, False
        self._report(was_open=self._before_success[1] > 0)

    def failed(self) -> None:
        """Note that it did not."""
        was_open = self.is_open
        self._failed += 1
        if was_open:
            if not self._trying:
                return  # sent before the circuit opened, and only now given up
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        elif self._failed >= FAILURES:
            self._pause = FIRST_PAUSE
        else:
            return
        self._trying = False
        self._until = self._clock() + self._pause
        self._report(was_open=was_open)

    def disbelieved(self) -> None:
        """Note that the last answer cannot be used: it was no success, but one more failure."""
        was_open = self.is_open
        (failed, pause), self._before_success = self._before_success, (0, 0.0)
        self._failed = max(self._failed, failed)
        if pause > self._pause:
            self._pause, self._trying = pause, True
        self._report(was_open=was_open)
        self.failed()

    def abandoned(self) -> None:
        """Note that whoever was admitted went away without an answer: nobody is to blame."""
        self._trying = False

    def _report(self, *, was_open: bool) -> None:
        if self._changed is not None and self.is_open != was_open:
            self._changed(self.is_open)
