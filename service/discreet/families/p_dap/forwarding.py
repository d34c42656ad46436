"""What one vendor asks another, and what it is told: the vocabulary of Algorithms 1 and 2.

A vendor that has somebody else's user to serve learns the *cell* that the user is in, by its
level and its centre, and never the user's own context. It answers with a handle that only itself
can open, and with a noisy running sum of the rewards that earlier answers for that cell earned.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_LAST = np.nextafter(1.0, 0.0)
"""Stands for a coordinate of 1, which belongs to the last cell of its level."""


@dataclass(frozen=True, slots=True)
class Forward:
    """A question about a cell. `epsilon` bounds what the answer may tell others about the cell.

    A training forward lets the vendor learn; what it earns does not count when the asking side
    judges the vendor. `stream` names the running sum that what it earns shall be added to; without
    a name every cell has its own.
    """

    recommender: str
    level: int
    centre: tuple[float, ...]
    epsilon: float
    training: bool
    stream: str = ""


@dataclass(frozen=True, slots=True)
class RunningSum:
    """What a stream of rewards has come to: `count` rewards of `total`, noise included.

    `releases` is the step of the stream that is released; `deviation` is the standard deviation
    of the noise in `total`.
    """

    releases: int
    count: int
    total: float
    deviation: float = 0.0


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A vendor's answer; `expires_at` is in seconds since the epoch.

    `sums` is None while there is nothing to tell, or nothing that the vendor will pay for.
    """

    handle: str
    expires_at: int
    sums: RunningSum | None


def centre_of(*, context: npt.ArrayLike, level: int, segments: int) -> tuple[float, ...]:
    """Return the centre of the cell of this level that holds the context.

    Contexts of one cell have the same centre, so it tells which cell it is and nothing else.
    """
    side = segments**level
    place = np.minimum(np.asarray(context, dtype=np.float64), _LAST)
    return tuple(((np.floor(place * side) + 0.5) / side).tolist())
