"""A circuit breaker: a peer that keeps failing is left out for a while, then tried once.

Closed, it lets everybody pass. After `failures` in a row it opens: nobody passes for a pause. Then
one may try; success closes it, failure opens it again for twice as long, up to the longest pause.
"""

from collections.abc import Callable

FAILURES = 5
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0


class Circuit:
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

    @property
    def is_open(self) -> bool:
        """Whether the peer is being left out, or is on trial."""
        return self._pause > 0

    def admits(self) -> bool:
        """Tell whether a question may be asked now."""
        if not self.is_open:
            return True
        return not self._trying and self._clock() >= self._until

    def enter(self) -> bool:
        """Take a pass, if there is one; whoever took it must report how it went."""
        if not self.admits():
            return False
        self._trying = self.is_open
        return True

    def succeeded(self) -> None:
        """Note that the peer answered as it should."""
        was_open = self.is_open
        self._failed, self._pause, self._trying = 0, 0.0, False
        if was_open and self._changed is not None:
            self._changed(False)

    def failed(self) -> None:
        """Note that it did not."""
        self._failed += 1
        if self.is_open:
            if not self._trying:
                return  # asked before the circuit opened, and only now given up
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        elif self._failed >= FAILURES:
            self._pause = FIRST_PAUSE
            if self._changed is not None:
                self._changed(True)
        else:
            return
        self._trying = False
        self._until = self._clock() + self._pause

    def abandoned(self) -> None:
        """Note that whoever took a pass went away without an answer: nobody is to blame."""
        self._trying = False
