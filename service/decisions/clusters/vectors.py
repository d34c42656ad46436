"""Features and rewards as whole steps, so that the sums of their products are exact.

Coordinates are cut to whole steps of 2**-15, towards zero, which can only shorten a vector. A
product of two is then a whole number of steps of 2**-30: every sum of outer products is exact, in
any order, and so positive semidefinite, as it must be however many there are. An entry of a sum
holds 2**33 observations.

A person's statistics are one vector of such sums: the number of observations, then the upper
triangle of the sum of z z^T for z = (x, y), row by row.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from service.decisions.asking import Sparse, Vector
from service.errors import InvalidArgument
from service.privacy.matrices import half_size

STEPS = 2**15
PRODUCT_STEPS = STEPS * STEPS
COUNT = 0
"""The field that counts observations; sums follow."""
_SLACK = 1e-9
"""How far a norm may exceed 1 by rounding alone."""

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Coordinates = npt.NDArray[np.int16]


def coordinates(features: Vector, *, dimensions: int, scale: bool, field: str) -> Coordinates:
    """Return features in steps, or say what is wrong with `field`. `scale` admits longer ones."""
    if isinstance(features, Sparse):
        raise InvalidArgument(field, "must be a list of numbers for this recommender")
    if len(features) != dimensions:
        raise InvalidArgument(field, f"must have {dimensions} numbers for this recommender")
    vector = np.array(features, dtype=np.float64)
    norm = _norm(vector)
    if norm > 1 + _SLACK and not scale:
        raise InvalidArgument(
            field, "must have a Euclidean norm of at most 1; shorten it, or set norms: scale"
        )
    if norm > 1:
        vector /= norm
    # The largest step is 2**15 - 1: a whole unit vector is cut as well.
    return np.clip(np.trunc(vector * STEPS), 1 - STEPS, STEPS - 1).astype(np.int16)


def _norm(vector: Floats) -> float:
    """Return the Euclidean norm without overflow on the way."""
    largest = float(np.abs(vector).max())
    if not math.isfinite(largest):
        raise InvalidArgument("features", "must be finite numbers")
    return largest * float(np.linalg.norm(vector / largest)) if largest > 0 else 0.0


def decoded(steps: npt.NDArray[np.integer]) -> Floats:
    """Return coordinates as numbers."""
    return steps.astype(np.float64) / STEPS


def increments(x: Coordinates, reward: float) -> Sequence[tuple[int, int]]:
    """Return what one observation adds to a vector of statistics."""
    z = np.append(x.astype(np.int64), min(round(reward * STEPS), STEPS))
    rows, columns = _triangle(len(z))
    products = z[rows] * z[columns]
    places = np.flatnonzero(products)
    return [
        (COUNT, 1),
        *zip((places + 1).tolist(), products[places].tolist(), strict=True),
    ]


def fields(dimensions: int) -> int:
    """Return how many fields a vector of statistics has."""
    return 1 + half_size(dimensions + 1)


def filled(stored: Integers, dimensions: int) -> Integers:
    """Return a vector of statistics in full length; what was never written is 0."""
    whole = np.zeros(fields(dimensions), dtype=np.int64)
    whole[: len(stored)] = stored
    return whole


def sums(statistics: Integers) -> Floats:
    """Return the sums of vectors of statistics as numbers, without the count."""
    return statistics[..., 1:].astype(np.float64) / PRODUCT_STEPS


@lru_cache(maxsize=16)
def _triangle(order: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    return np.triu_indices(order)
