"""What a mechanism may choose among: utilities, base measures, shortlists and rankings, checked.

Error messages name the argument and the rule. They never repeat a value: it may be private.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument

Floats = npt.NDArray[np.float64]
Multiples = npt.NDArray[np.int64]
Base = npt.NDArray[np.integer] | Sequence[int]


def check_utilities(utilities: Floats, lower: float, upper: float) -> Floats:
    """Return the utilities as doubles, or refuse what is not finite and within the range."""
    try:
        values = np.asarray(utilities, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument("utilities", "must be numbers") from None
    if values.ndim != 1 or values.size == 0:
        raise InvalidArgument("utilities", "must be a vector of at least one arm")
    # A NaN makes both extremes NaN, and no comparison with it holds.
    if not (np.minimum.reduce(values) >= lower and np.maximum.reduce(values) <= upper):
        raise InvalidArgument("utilities", f"must lie between {lower} and {upper}")
    return values


def check_base(base: Base, size: int, most: int) -> Multiples:
    """Return the base measure, or refuse one that is negative, too large, or all 0."""
    multiples = np.asarray(base)
    if multiples.shape != (size,):
        raise InvalidArgument("base", "must have one entry for each arm")
    if multiples.dtype.kind not in "iu":
        raise InvalidArgument("base", "must be integers below 2**63")
    # The sum is taken only after the largest entry is known to be small: it cannot overflow.
    if np.minimum.reduce(multiples) < 0 or np.maximum.reduce(multiples) > most:
        raise InvalidArgument("base", f"must be between 0 and {most}")
    total = int(np.add.reduce(multiples, dtype=np.int64))
    if not 1 <= total <= most:
        raise InvalidArgument("base", f"must sum to at least 1 and at most {most}")
    return multiples.astype(np.int64, copy=False)


def check_count(count: int, available: int) -> None:
    """Refuse to choose more arms than there are, or none."""
    if not 1 <= count <= available:
        raise InvalidArgument("count", "must be between 1 and the number of available arms")


def check_size(size: int) -> None:
    """Refuse a shortlist without arms."""
    if not 1 <= size < 2**31:
        raise InvalidArgument("size", "must be at least 1")


def check_best(best: int, size: int) -> None:
    """Refuse a best arm that is not on the shortlist."""
    check_size(size)
    if not 0 <= best < size:
        raise InvalidArgument("best", "must be a position in the shortlist")


def check_ranking(ranking: Sequence[int]) -> list[int]:
    """Return the ranking as a list, or refuse one that is not a permutation."""
    positions = [int(position) for position in ranking]
    if not positions or sorted(positions) != list(range(len(positions))):
        raise InvalidArgument("ranking", "must hold every position of the shortlist once")
    return positions
