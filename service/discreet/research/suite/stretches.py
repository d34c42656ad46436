"""Visits in the order in which they come, a stretch at a time.

A world gives its visits in stretches of `STRETCH` rounds, the same ones for the same seed however
many are asked for. Every learner meets the same contexts with the same luck: an item pleases if the
visitor's luck is below the item's mean, so learners that choose alike are rewarded alike. An answer
is worth its item's true mean: what a reward is on average, without its luck.
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


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """So many visits: a row a visit.

    `offered` are the places of the items that may be answered (ascending), and `means` has a column
    for each of them, in that order.
    """

    contexts: Floats
    offered: Places
    means: Floats
    luck: Floats

    def rewards(self, rows: Places, items: Places) -> Floats:
        """Return 1 where the luck is below the mean, else 0."""
        columns = np.searchsorted(self.offered, items)
        pleased: Floats = (self.luck[rows] < self.means[rows, columns]).astype(np.float64)
        return pleased

    def worth(self, items: Places) -> Floats:
        """Return the true mean of every round's answer."""
        worth: Floats = self.means[np.arange(len(items)), np.searchsorted(self.offered, items)]
        return worth


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
