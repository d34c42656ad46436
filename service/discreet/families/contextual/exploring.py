"""What is worth exploring: numbers behind the draws that ignore the visitor.

All of it follows from the released model, so it costs nothing.
"""

import math

import numpy as np

from discreet.families.choice import Floats, Slots, Weights
from discreet.privacy.normal import cumulatives

FIRST_TRIED = 24
"""Items that are tried before the first release if feedback is private. What a release tells about
an item grows with the square of its visits as long as noise is larger than chance: a few visits of
each of many items tell nothing about any. The others have their turn after it, as untried ones."""

_FIRST_WEIGHT = 2**20


def first_curiosity(slots: int, visible: Slots, *, exact: bool) -> Weights:
    """Return the weights of draws that explore while nothing has been released."""
    curiosity = np.ones(slots, dtype=np.int64)
    if not exact and len(visible) > FIRST_TRIED:
        curiosity[visible[:FIRST_TRIED]] = _FIRST_WEIGHT
    return curiosity


def expected_improvement(ahead: Floats, errors: Floats) -> Floats:
    """Return the mean of the positive part of normals with these means and deviations."""
    scaled = ahead / np.maximum(errors, 1e-9)
    density = np.exp(-0.5 * scaled**2) / math.sqrt(2.0 * math.pi)
    improvement: Floats = errors * (scaled * cumulatives(scaled) + density)
    return improvement


def private_gains(
    shares: Floats, means: Floats, improvement: Floats, among: Floats, errors: Floats, odds: float
) -> tuple[Floats, float]:
    """Return what knowing each item could gain for answers that are private, and what they are
    worth now; `among` are the means of the listed items, `errors` those of the items' levels.

    An item can join the shortlist, which is then obeyed less, or be all of it. Either could turn
    out better than it looks by the standard error of its level.
    """
    size = among.shape[1]
    best, every = float(shares @ among.max(axis=1)), float(shares @ among.sum(axis=1))
    worth = ((odds - 1.0) * best + every) / (odds + size - 1.0)
    levels, improved = shares @ means, shares @ improvement
    joined = ((odds - 1.0) * (best + improved) + every + levels) / (odds + size)
    gains = np.maximum(
        expected_improvement(joined - worth, errors * odds / (odds + size)),
        expected_improvement(levels - worth, errors),
    )
    return gains + 1e-12, worth
