"""How often a key may ask: so many requests a second, and ten seconds' worth at once.

What counts is the number of requests, and of entries in a batch; never what they are about. So a
refusal says nothing about a client or a context. A batch may overdraw what is left, once: then the
key waits until that is made up for.

Every worker counts by itself, so that no request pays a round trip for it.
"""

import math
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from discreet.decisions.grants import KeyGrant
from discreet.errors import RateExceeded

BURST_SECONDS = 10.0
MOST_KEYS = 100_000
"""Keys that a worker remembers; the one that was not used for longest is forgotten first."""
_LONGEST_WAIT = 3_600


class KeyRates:
    """The rates of every key in one worker: the key's own, or the default for its kind.

    None is without a bound.
    """

    def __init__(
        self,
        *,
        operators: float | None = None,
        devices: float | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._operators = operators
        self._devices = devices
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By key: the requests that were left, at a moment."""

    def take(self, grant: KeyGrant, requests: int = 1) -> None:
        """Count requests of a key, or raise `RateExceeded` and count nothing."""
        rate = grant.rate
        if rate is None:
            rate = self._operators if grant.client is None else self._devices
            if rate is None:
                return
        now, most = self._clock(), max(1.0, rate * BURST_SECONDS)
        left, since = self._left.pop(grant.id, (most, now))
        left = min(most, left + (now - since) * rate)
        refused = left < 1.0
        self._left[grant.id] = (left if refused else left - requests, now)
        if len(self._left) > MOST_KEYS:
            self._left.popitem(last=False)
        if refused:
            raise RateExceeded(min(_LONGEST_WAIT, max(1, math.ceil((1.0 - left) / rate))))
