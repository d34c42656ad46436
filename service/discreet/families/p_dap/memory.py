"""What a learner remembers between requests: facts that are final, or that only save reading.

Losing all of it costs reads and nothing else. It is bounded in bytes and used from one thread; only
the outlook is replaced from another, as one reference.
"""

from collections import OrderedDict
from collections.abc import Callable

import numpy as np

from discreet.families.p_dap.cell import tallies
from discreet.families.p_dap.contract import Address, Floats, Vector
from discreet.families.p_dap.mixture import Odds
from discreet.families.p_dap.outlook import Outlook
from discreet.families.shortlist import Slots

MOST_BYTES = 64 * 2**20
MOST_SPLIT = 2**16
MOST_WHOLE = 2**17

_INHERITED_WEIGHT = 10.0


def posterior(*, counts: Floats, sums: Floats, prior: Floats) -> Floats:
    """Return a cell's means, starting from its parent's as if those had been seen a few times."""
    means: Floats = (sums + _INHERITED_WEIGHT * prior) / (counts + _INHERITED_WEIGHT)
    return means


class SplitCell:
    """A cell that has split: its statistics hardly change any more; its children start there.

    A chain of `posterior`s from the overall means down to here is one line in them,
    offset + gain * means, and that line never changes. So it is worked out once, from the
    parent's, and what the children inherit under an outlook costs the same at any depth.
    """

    __slots__ = ("_gain", "_offset")

    def __init__(self, *, counts: Floats, sums: Floats, above: "SplitCell | Floats | None") -> None:
        """`above` is the parent, or its means where it was forgotten, or None in the whole cube."""
        weights = counts + _INHERITED_WEIGHT
        share = _INHERITED_WEIGHT / weights
        self._offset: Floats = sums / weights
        self._gain: Floats = share
        if isinstance(above, SplitCell):
            self._offset += share * above._offset
            self._gain = share * above._gain
        elif above is not None:
            self._offset += share * above
            self._gain = np.zeros_like(share)

    def means(self, outlook: Outlook) -> Floats:
        """Return the cell's means."""
        means: Floats = self._offset + self._gain * outlook.means
        return means


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
        self.reach = 0
        """No cell of this level or deeper was ever noted to have split."""
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

    def deepest_split(self, name_of: Callable[[int], bytes]) -> tuple[int, SplitCell | None]:
        """Return the level of the first cell on a way that is not known to have split.

        And the one above it. Cells above a split one have split, so halving finds it; where one of
        them was forgotten, any place will do that has a split cell right above it.
        """
        split, parent = self.split, None
        above, level = -1, self.reach
        while level - above > 1:
            middle = (above + level) // 2
            cell = split.get(name_of(middle))
            if cell is None:
                level = middle
            else:
                above, parent = middle, cell
        return level, parent

    def note_split(
        self,
        *,
        name: bytes,
        address: Address,
        vector: Vector,
        above: SplitCell | Floats | None,
    ) -> SplitCell:
        """Remember that a cell has split; `above` as for `SplitCell`."""
        self.whole.pop(address.key, None)
        self.reach = max(self.reach, address.level + 1)
        counts, sums = tallies(vector, self._arms)
        cell = self.split[name] = SplitCell(counts=counts, sums=sums, above=above)
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
