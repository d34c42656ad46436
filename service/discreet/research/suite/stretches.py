"""Visits in the order in which they come, a stretch at a time.

A world gives its visits in stretches of `STRETCH` rounds, the same ones for the same seed however
many are asked for. Every learner meets the same contexts with the same luck: an item pleases if the
visitor's luck is below the item's mean, so learners that choose alike are rewarded alike.

Two kinds of stretch. In a `KnownStretch` the truth is known, and an answer is worth its item's true
mean. A `LoggedStretch` is a log of uniformly random choices: an answer counts where it is the
logged item, only then is its reward known, and only then may a learner learn from it. Those rows
are distributed as if the learner had been live (rejection, see
`discreet.research.simulate.choosing`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from discreet.research.worlds.environments import Floats

STRETCH = 1_000
BLOCK = 250
"""Rounds whose results are added up: a quarter of a stretch, so that every quarter of a run of
whole stretches is a whole number of them."""

Places = npt.NDArray[np.intp]


class Stretch(Protocol):
    """So many visits: contexts, and the places of the items on offer (ascending)."""

    @property
    def contexts(self) -> Floats:
        """Return a row a visit."""
        ...

    @property
    def offered(self) -> Places:
        """Return the places of the items that may be answered during this stretch."""
        ...

    @property
    def means(self) -> Floats | None:
        """Return the true mean of every item on offer, in that order; None if unknown."""
        ...

    def rewards(self, rows: Places, items: Places) -> Floats:
        """Return what these visitors say about these items; NaN where nobody knows."""
        ...

    def worth(self, items: Places) -> tuple[Floats, Floats]:
        """Return what every answer is worth, and how much it counts."""
        ...

    def fixed(self) -> Floats:
        """Return what every item on offer would be worth in every round."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class KnownStretch:
    """A stretch of a world whose truth is known."""

    contexts: Floats
    offered: Places
    means: Floats
    luck: Floats

    def rewards(self, rows: Places, items: Places) -> Floats:
        """Return 1 where the luck is below the mean, else 0."""
        columns = np.searchsorted(self.offered, items)
        pleased: Floats = (self.luck[rows] < self.means[rows, columns]).astype(np.float64)
        return pleased

    def worth(self, items: Places) -> tuple[Floats, Floats]:
        """Return the true means: what a reward is on average, without its luck."""
        columns = np.searchsorted(self.offered, items)
        return self.means[np.arange(len(items)), columns], np.ones(len(items))

    def fixed(self) -> Floats:
        """Return the means."""
        return self.means


@dataclass(frozen=True, slots=True, eq=False)
class LoggedStretch:
    """Rows of a log: `items` were drawn uniformly, and earned `earned`."""

    contexts: Floats
    offered: Places
    items: Places
    earned: Floats

    @property
    def means(self) -> None:
        """A log does not know them."""
        return None

    def rewards(self, rows: Places, items: Places) -> Floats:
        """Return the logged reward where the answer is what was logged."""
        return np.where(self.items[rows] == items, self.earned[rows], np.nan)

    def worth(self, items: Places) -> tuple[Floats, Floats]:
        """Count the rows whose item was answered."""
        counted = (self.items == items).astype(np.float64)
        return counted * self.earned, counted

    def fixed(self) -> Floats:
        """Return the unbiased estimate of one round: items times reward, where it was logged."""
        shown = self.items[:, None] == self.offered[None, :]
        estimates: Floats = shown * (self.earned * len(self.offered))[:, None]
        return estimates


class SuiteWorld(Protocol):
    """A world of the suite."""

    @property
    def dimensions(self) -> int:
        """Return how many numbers from 0 to 1 a context has."""
        ...

    @property
    def items(self) -> int:
        """Return how many items are on offer at a time."""
        ...

    def stretches(self, *, rounds: int, seed: int) -> Iterator[Stretch]:
        """Yield the stretches of so many rounds; places are stable over all of them."""
        ...
