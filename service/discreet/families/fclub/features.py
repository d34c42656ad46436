"""Items' features as whole steps, so that sums of their products are exact.

Coordinates are cut to whole steps of 2**-10, towards zero, which can only shorten a vector. A
product of two is then a whole number of steps of 2**-20, the grid of the sums: every sum of outer
products is exact and so positive semidefinite, as it must be however many there are. Decisions use
the same numbers as learning.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.families.items import SparseFeatures
from discreet.families.questions import Vector

FEATURE_STEPS = 2**10
_SLACK = 1e-9
"""How far a norm may exceed 1 by rounding alone."""

Floats = npt.NDArray[np.float64]
Coordinates = npt.NDArray[np.int16]


def coordinates(
    features: Vector | SparseFeatures | Sequence[float], *, dimensions: int, scale: bool, field: str
) -> Coordinates:
    """Return features in steps; `scale` shortens those of a norm above 1.

    Raises `InvalidArgument`, naming `field`, for features that cannot be used.
    """
    if not isinstance(features, Sequence):
        raise InvalidArgument(field, "must be a list of numbers for this recommender")
    if len(features) != dimensions:
        raise InvalidArgument(field, f"must have {dimensions} numbers for this recommender")
    vector = np.array(features, dtype=np.float64)
    norm = _norm(vector, field)
    if norm > 1 + _SLACK and not scale:
        raise InvalidArgument(
            field, "must have a Euclidean norm of at most 1; shorten it, or set norms: scale"
        )
    if norm > 1:
        vector /= norm
    return np.trunc(vector * FEATURE_STEPS).astype(np.int16)


def _norm(vector: Floats, field: str) -> float:
    """Return the Euclidean norm without overflow on the way."""
    largest = float(np.abs(vector).max())
    if not math.isfinite(largest):
        raise InvalidArgument(field, "must be finite numbers")
    return largest * float(np.linalg.norm(vector / largest)) if largest > 0 else 0.0


def decoded(steps: npt.NDArray[np.integer]) -> Floats:
    """Return coordinates as numbers."""
    return steps.astype(np.float64) / FEATURE_STEPS
