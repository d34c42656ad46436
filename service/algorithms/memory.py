"""What a learner remembers between requests: facts that are final, or that only save reading.

Losing all of it costs reads and nothing else. It is bounded in bytes and used from one thread; only
the outlook is replaced from another, as one reference.
"""

from collections import OrderedDict

import numpy as np

from service.algorithms.cell import tallies
from service.algorithms.contract import Floats, Vector
from service.algorithms.mixture import Odds
from service.algorithms.outlook import Outlook
from service.algorithms.shortlist import Slots

MOST_BYTES = 64 * 2**20
MOST_SPLIT = 2**16
MOST_WHOLE = 2**17

_INHERITED_WEIGHT = 10.0


def posterior(*, counts: Floats, sums: Floats, prior: Floats) -> Floats:
    """Return a cell's means, starting from its parent's as if those had been seen a few times."""
    means: Floats = (sums + _INHERITED_WEIGHT * prior) / (counts + _INHERITED_WEIGHT)
    return means


class SplitCell:
    """A cell that has split: its statistics hardly change any more; its children start there."""

    __slots__ = ("_means", "_outlook", "_sums", "_weights")

    def __init__(self, vector: Vector, arms: int) -> None:
        counts, self._sums = tallies(vector, arms)
        self._weights = counts + _INHERITED_WEIGHT
        self._outlook: Outlook | None = None
        self._means: Floats = self._sums

    def means(self, prior: Floats, outlook: Outlook) -> Floats:
        """Return the cell's means. `prior`, its parent's, changes with the outlook only."""
        if self._outlook is not outlook:
            # `posterior`, with what never changes worked out before.
            self._means = (self._sums + _INHERITED_WEIGHT * prior) / self._weights
            self._outlook = outlook
        return self._means


class Memory:
    """The cells noted first are forgotten first: one that is still in use is soon noted again."""

    def __init__(self, *, arms: int, outlook: Outlook) -> None:
        self.outlook = outlook
        self._arms = arms
        self.most_split = max(64, min(MOST_SPLIT, MOST_BYTES // (24 * arms + 512)))
        self.checked: Slots | None = None
        self._offered: Slots = np.zeros(0, dtype=np.intp)
        self.split: OrderedDict[bytes, SplitCell] = OrderedDict()
        """Cells known to have split, which is final, by their names on their routes."""
        self.whole: OrderedDict[bytes, None] = OrderedDict()
        """Keys of cells that had not split when they were last read."""
        self.odds: dict[int, tuple[Outlook, Odds]] = {}
        """What is public about answers from the whole catalogue, by level, under one outlook."""

    def note_offered(self, available: Slots) -> None:
        """Remember a choice of arms that was found in order, and the widest one lately."""
        self.checked = available
        if len(available) > len(self._offered):
            self._offered = available

    def take_offered(self) -> Slots:
        """Return the widest choice since the last call, and begin anew."""
        offered, self._offered = self._offered, np.zeros(0, dtype=np.intp)
        self.checked = None  # or the whole catalogue would never be noted again
        return offered

    def note_split(self, *, name: bytes, key: bytes, vector: Vector) -> SplitCell:
        """Remember that a cell has split."""
        self.whole.pop(key, None)
        cell = self.split[name] = SplitCell(vector, self._arms)
        if len(self.split) > self.most_split:
            self.split.popitem(last=False)
        return cell

    def note_whole(self, key: bytes) -> None:
        """Remember that a cell had not split, so that the next plan reads it alone."""
        if key not in self.whole:
            self.whole[key] = None
            if len(self.whole) > MOST_WHOLE:
                self.whole.popitem(last=False)

    def __len__(self) -> int:
        return len(self.split) + len(self.whole)
