"""Synthetic users who come back: each with a taste of their own, some much more often."""

from dataclasses import dataclass

import numpy as np

from discreet.errors import InvalidArgument
from discreet.research.worlds.environments import ClusteredContexts

MOST_CLIENTS = 1_000_000

_FREQUENCY_EXPONENT = 0.5
"""The i-th most frequent client comes in proportion to i**-0.5: a few use up a budget."""

_VISIT_SPREAD = 0.02
"""How far a client's context differs from one visit to the next."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One visit. `luck` is uniform in [0, 1): below an item's mean it is a reward of 1."""

    client: str
    context: tuple[float, ...]
    luck: float

    def reward(self, mean: float) -> float:
        """Return this visitor's reward for an item of that true mean: 1.0 or 0.0."""
        return 1.0 if self.luck < mean else 0.0


class Crowd:
    """`clients` synthetic users. Visit number n is the same for the same seed, whatever happens."""

    def __init__(self, *, contexts: ClusteredContexts, clients: int, name: str, seed: int) -> None:
        if not 1 <= clients <= MOST_CLIENTS:
            raise InvalidArgument("clients", f"must lie between 1 and {MOST_CLIENTS:,}")
        self._contexts = contexts
        self._name = name
        self._rng = np.random.default_rng(seed)
        self._homes = contexts.draw(self._rng, clients)
        reach = np.cumsum(np.arange(1, clients + 1) ** -_FREQUENCY_EXPONENT)
        self._reach = reach / reach[-1]

    def visit(self) -> Visit:
        """Return the next visit."""
        number = int(np.searchsorted(self._reach, self._rng.random(), side="right"))
        number = min(number, len(self._reach) - 1)
        context = self._contexts.around(self._homes[number], self._rng, _VISIT_SPREAD)
        # Four decimals are enough and keep the bodies short.
        return Visit(
            client=f"{self._name}-{number}",
            context=tuple(round(float(x), 4) for x in context),
            luck=float(self._rng.random()),
        )
