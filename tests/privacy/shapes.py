"""The two shapes of integer noise, and evidence against a sample having one of them.

Evidence is in nats, from a bound and not an asymptotic law (`audit.statistical.entropy_evidence`):
a true sample shows more than `ALARM` with probability below exp(-ALARM), one in 10**9.
"""

import math
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from discreet.audit.examine_samples import entropy_evidence

Shape = Literal["laplace", "gaussian"]

ALARM = 21.0

_CUTS = (-3.0, -2.0, -1.4, -1.0, -0.7, -0.4, -0.2, 0.0, 0.2, 0.4, 0.7, 1.0, 1.4, 2.0, 3.0)


def cdf(shape: Shape, points: npt.NDArray[np.int64], scale: float) -> npt.NDArray[np.float64]:
    """Return P(Z <= point) for discrete noise of this shape and scale."""
    if shape == "laplace":
        # With a = exp(-1 / scale): a**|k| / (1 + a) below 0, and 1 - a**(k+1) / (1 + a) from 0 on.
        tail = np.exp(-(np.abs(points + 0.5) + 0.5) / scale) / (1 + math.exp(-1 / scale))
        return np.where(points < 0, tail, 1 - tail)
    if scale > 1000:
        # Poisson summation: the lattice sum and the integral differ by less than exp(-scale**2).
        return ndtr((points + 0.5) / scale)
    reach = math.ceil(12 * scale) + 2
    support = np.arange(-reach, reach + 1)
    mass = np.exp(-0.5 * (support / scale) ** 2)
    return (np.cumsum(mass) / mass.sum())[np.clip(points + reach, 0, 2 * reach)]


def evidence(shape: Shape, sample: npt.NDArray[np.int64], scale: float) -> float:
    """Return evidence in nats that the sample is not discrete noise of this shape and scale."""
    edges = np.unique(np.floor(np.array(_CUTS) * max(scale, 1.0)).astype(np.int64))
    cumulative = np.concatenate([[0.0], cdf(shape, edges, scale), [1.0]])
    counts = np.bincount(np.searchsorted(edges, sample), minlength=len(edges) + 1)
    return entropy_evidence(counts, np.diff(cumulative))
