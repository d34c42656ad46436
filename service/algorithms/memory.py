"""What a learner remembers between requests: facts that are final, or that only save reading.

Losing all of it costs reads and nothing else. It is bounded in bytes and used from one thread; only
the outlook is replaced from another, as one reference.
"""

from collections import OrderedDict

import numpy as np

from service.algorithms.cell import tallies
from service.algorithms.contract import Floats, Vector
from service.algorithms.outlook import Outlook
from service.algorithms.shortlist import Slots

MOST_BYTES = 32 * 2**20
MOST_CELLS = 4_096

_INHERITED_WEIGHT = 10.0


def posterior(*, counts: Floats, sums: Floats, prior: Floats) -> Floats:
    """Return a cell's means, starting from its parent's as if those had been seen a few times."""
    means: Floats = (sums + _INHERITED_WEIGHT * prior) / (counts + _INHERITED_WEIGHT)
    return means


class SplitCell:
    """A cell that has split: its statistics hardly change any more; its children start there."""

    __slots__ = ("_means", "_outlook", "_vector")

    def __init__(self, vector: Vector) -> None:
        self._vector = vector
        self._outlook: Outlook | None = None
        self._means: Floats | None = None

    def means(self, *, prior: Floats, outlook: Outlook) -> Floats:
        """Return the cell's means. `prior`, its parent's, changes with the outlook only."""
        if self._means is None or self._outlook is not outlook:
            counts, sums = tallies(self._vector, len(prior))
            self._means = posterior(counts=counts, sums=sums, prior=prior)
            self._outlook = outlook
        return self._means


class Memory:
    """The least recently used cells are forgotten first."""

    def __init__(self, *, arms: int, outlook: Outlook) -> None:
        self.outlook = outlook
        self.most_cells = max(64, min(MOST_CELLS, MOST_BYTES // (24 * arms + 256)))
        self.checked: Slots | None = None
        self._offered: Slots = np.zeros(0, dtype=np.intp)
        self._split: OrderedDict[bytes, SplitCell] = OrderedDict()
        self._whole: OrderedDict[bytes, None] = OrderedDict()

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

    def split(self, key: bytes) -> SplitCell | None:
        """Return a cell known to have split, or None."""
        cell = self._split.get(key)
        if cell is not None:
            self._split.move_to_end(key)
        return cell

    def note_split(self, key: bytes, vector: Vector) -> SplitCell:
        """Remember that a cell has split, which is final."""
        self._whole.pop(key, None)
        cell = self._split[key] = SplitCell(vector)
        if len(self._split) > self.most_cells:
            self._split.popitem(last=False)
        return cell

    def was_whole(self, key: bytes) -> bool:
        """Tell whether a cell had not split when it was last read."""
        return key in self._whole

    def note_whole(self, key: bytes) -> None:
        """Remember that a cell had not split, so that the next plan reads it alone."""
        self._whole[key] = None
        self._whole.move_to_end(key)
        if len(self._whole) > self.most_cells:
            self._whole.popitem(last=False)

    def __len__(self) -> int:
        return len(self._split) + len(self._whole)
