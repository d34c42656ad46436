"""People who come back: made-up clients with tastes of their own, some much keener than others."""

from dataclasses import dataclass

import numpy as np

from discreet.errors import InvalidArgument
from discreet.research.environments import ClusteredContexts

MOST_CLIENTS = 1_000_000

_KEENNESS = 0.5
"""The i-th keenest client comes in proportion to i**-0.5: enough for a few to use up a budget."""

_DAY_TO_DAY = 0.02
"""How far a client's context strays from one visit to the next."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One client, now. `luck` is uniform in [0, 1): whoever has less than the mean is pleased."""

    client: str
    context: tuple[float, ...]
    luck: float

    def reward(self, mean: float) -> float:
        """Return what this visitor says about an item of that true mean: 1.0 or 0.0."""
        return 1.0 if self.luck < mean else 0.0


class Crowd:
    """`clients` made-up people. Visit number n is the same for the same seed, whatever happens."""

    def __init__(self, *, contexts: ClusteredContexts, clients: int, name: str, seed: int) -> None:
        if not 1 <= clients <= MOST_CLIENTS:
            raise InvalidArgument("clients", f"must lie between 1 and {MOST_CLIENTS:,}")
        self._contexts = contexts
        self._name = name
        self._rng = np.random.default_rng(seed)
        self._homes = contexts.draw(self._rng, clients)
        reach = np.cumsum(np.arange(1, clients + 1) ** -_KEENNESS)
        self._reach = reach / reach[-1]

    def visit(self) -> Visit:
        """Return the next visit."""
        number = int(np.searchsorted(self._reach, self._rng.random(), side="right"))
        number = min(number, len(self._reach) - 1)
        context = self._contexts.around(self._homes[number], self._rng, _DAY_TO_DAY)
        # Four decimals are plenty for a taste and keep the bodies short.
        return Visit(
            client=f"{self._name}-{number}",
            context=tuple(round(float(x), 4) for x in context),
            luck=float(self._rng.random()),
        )
