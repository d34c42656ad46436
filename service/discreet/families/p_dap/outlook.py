"""What aggregate statistics say about the arms: the same for everybody until the next survey.

An outlook is a parameter of the draw, fixed before the request at hand is looked at. Everything
about a draw except which arm is the best of the cell comes from here: the shortlist, the arms worth
exploring, how often to explore, and how deep the partition is known to be.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.families.p_dap.cell import ARRIVALS, REWARD_STEPS
from discreet.families.p_dap.contract import Address, Floats, Vector
from discreet.families.shortlist import Slots, grow_shortlist

Weights = npt.NDArray[np.int64]

COIN_SIDES = 2**32

MOST_CELLS = 512
MOST_VALUES = 512_000
"""Cells times arms that the shortlist is chosen from; the heaviest cells decide it anyway."""

_CURIOSITY_STEPS = 2**20
_ARM_WEIGHT = 2.0
"""An arm's overall mean starts at the mean of all arms, worth so many observations."""
_CELL_WEIGHT = 10.0
"""A cell's means start at the overall ones, worth so many observations. Without that the best of
many noisy means would look better than any arm is, and the shortlist would grow too long."""
_SETTLING = 5.0
"""Observations an arm after which half of the early exploration is over."""


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """The aggregate facts behind a draw.

    `ranking` holds every arm, the `size` shortlisted ones first, and `popular` every arm by overall
    mean. With probability `coin` / 2**32 an answer ignores the context and is drawn by the integer
    weights `curiosity`. No cell deeper than `depth` was seen.
    """

    means: Floats
    ranking: Slots
    size: int
    popular: Slots
    curiosity: Weights
    coin: int
    depth: int

    @classmethod
    def blank(cls, *, arms: int, exploration_rate: float) -> "Outlook":
        """Return the outlook before anything is known: every arm is shortlisted."""
        every = np.arange(arms, dtype=np.intp)
        return cls(
            means=np.full(arms, 0.5),
            ranking=every,
            size=arms,
            popular=every,
            curiosity=np.ones(arms, dtype=np.int64),
            coin=round(exploration_rate * COIN_SIDES),
            depth=0,
        )

    @classmethod
    def of(
        cls,
        *,
        cells: Mapping[Address, Vector],
        offered: Slots,
        arms: int,
        exploration_rate: float,
        odds: Sequence[float],
    ) -> "Outlook":
        """Return what these cells say about the `offered` arms; the others are ranked last.

        `odds` is e^eps of each level, the last one for all deeper levels. Feedback is counted once,
        in the cell that was active when its decision was made: all cells together, split or
        not, are all that was learned, and a cell's arrivals are its share of the traffic.
        """
        seen = [(address.level, vector) for address, vector in cells.items() if len(vector)]
        if not seen or not len(offered):
            return cls.blank(arms=arms, exploration_rate=exploration_rate)
        fields = np.zeros((len(seen), 1 + 2 * arms))
        for row, (_, vector) in zip(fields, seen, strict=True):
            known = vector[: len(row)]
            row[: len(known)] = known
        levels = np.array([level for level, _ in seen])
        arrivals = fields[:, ARRIVALS]
        counts = fields[:, 1::2].sum(axis=0)
        sums = fields[:, 2::2].sum(axis=0) / REWARD_STEPS
        overall = (sums.sum() + 0.5) / (counts.sum() + 1.0)
        means = (sums + _ARM_WEIGHT * overall) / (counts + _ARM_WEIGHT)

        heavy = np.argsort(-arrivals, kind="stable")
        heavy = heavy[: min(MOST_CELLS, max(32, MOST_VALUES // len(offered)))]
        cell_means = fields[np.ix_(heavy, 2 + 2 * offered)] / REWARD_STEPS
        cell_means += _CELL_WEIGHT * means[offered]
        cell_means /= fields[np.ix_(heavy, 1 + 2 * offered)] + _CELL_WEIGHT
        listed = grow_shortlist(
            means=cell_means,
            shares=arrivals[heavy],
            odds=np.array(odds)[np.minimum(levels[heavy], len(odds) - 1)],
        )
        shortlist = offered[listed]

        popular = np.argsort(-means, kind="stable")
        rank = np.full(arms, 2)  # not offered lately
        rank[offered] = 1
        rank[shortlist] = 0
        by_class = [shortlist, popular[rank[popular] == 1], popular[rank[popular] == 2]]

        # Worth exploring is what was tried little and does well somewhere.
        promise = np.ones(arms)
        promise[offered] = cell_means.max(axis=0) / cell_means.max()
        curiosity = np.ceil(_CURIOSITY_STEPS * promise**2 / np.sqrt(1.0 + counts))
        early = 1.0 / (1.0 + counts.sum() / (_SETTLING * len(offered)))
        rate = exploration_rate + (1.0 - exploration_rate) * early if exploration_rate else 0.0
        return cls(
            means=means,
            ranking=np.concatenate(by_class),
            size=len(shortlist),
            popular=popular,
            curiosity=curiosity.astype(np.int64),
            coin=round(rate * COIN_SIDES),
            depth=int(levels.max()),
        )
