"""The normal distribution's tails and quantiles, to the last digits, for numbers and for arrays.

Python's own `math.erfc` does the tails of numbers. What it leaves out are the scaled tail
erfcx(x) = exp(x**2) * erfc(x), which does not vanish where `erfc` does, and arrays. Nothing else
that answers requests would need a library of special functions, whose import takes as long as that
of half a web framework, and whose files twice the room of numpy's.
"""

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_FAR = 8.0
"""From here on the continued fraction is exact with `_DEPTH` terms."""
_DEPTH = 40
_HALF_BITS = 134_217_729.0  # 2**27 + 1 (Dekker 1971)
_DEGREE = 40


def erfcx(x: float) -> float:
    """Return exp(x**2) * erfc(x), within 2**-50 of it in proportion; infinite below -26.6."""
    if x >= _FAR:
        # Laplace: x + (1/2)/(x + (2/2)/(x + (3/2)/(x + …))), from the inside.
        tail = x
        for half in range(_DEPTH, 0, -1):
            tail = x + 0.5 * half / tail
        return 1.0 / (tail * math.sqrt(math.pi))
    square = x * x
    if square > 709.0:
        return math.inf
    # The rounding of x*x would be multiplied by its size: what was lost is put back.
    high = _HALF_BITS * x
    high -= high - x
    low = x - high
    lost = ((high * high - square) + 2.0 * high * low) + low * low
    return math.exp(square) * (1.0 + lost) * math.erfc(x)


def cumulative(x: float) -> float:
    """Return the probability that a standard normal is at most x."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def cumulatives(values: Floats) -> Floats:
    """Return `cumulative` of each, within 1e-13 of it in proportion up to 8 deviations below 0."""
    below = np.minimum(np.abs(values) * math.sqrt(0.5), 40.0)
    double = (4.0 * _SCALE) / (_SCALE + below) - 2.0
    # Clenshaw: from the last coefficient to the first.
    now, before = np.full_like(below, _FITTED[-1]), np.zeros_like(below)
    for coefficient in _FITTED[-2:0:-1]:
        following = double * now
        following -= before
        following += coefficient
        now, before = following, now
    scaled = 0.5 * double * now - before + _FITTED[0]
    tails: Floats = 0.5 * np.exp(-below * below) * scaled
    return np.where(values > 0, 1.0 - tails, tails)


def quantiles(probabilities: Floats) -> Floats:
    """Return, for each probability in (0, 1), what a standard normal is below so often."""
    quantile = NormalDist().inv_cdf
    flat = [quantile(each) for each in probabilities.ravel().tolist()]
    return np.array(flat, dtype=np.float64).reshape(probabilities.shape)


_SCALE = 3.0
"""erfcx(x) is smooth in c / (c + x) for x from 0 to infinity; c = 3 needs the lowest degree."""


def _fitted() -> Floats:
    """Return the Chebyshev series of erfcx in 2c/(c + x) - 1, from its values at their nodes."""
    angles = (np.arange(_DEGREE) + 0.5) * (math.pi / _DEGREE)
    nodes = np.cos(angles)
    values = [erfcx(_SCALE * 2.0 / (1.0 + node) - _SCALE) for node in nodes.tolist()]
    series: Floats = 2.0 / _DEGREE * np.cos(np.outer(np.arange(_DEGREE), angles)) @ values
    series[0] /= 2.0
    kept: Floats = series[: int(np.flatnonzero(np.abs(series) > 1e-15)[-1]) + 1]
    return kept


_FITTED = _fitted()
