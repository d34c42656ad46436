"""Releasing sums of outer products: z z^T for z = (x, y), |x| <= 1, |y| <= 1.

A linear learner's statistics are the Gram matrix of x and the sums of y*x, that is, blocks of the
sum of z z^T. The matrix is symmetric, so only its upper triangle (diagonal included) is released:
the lower one would be the same numbers again, or, with noise of its own, a second look at them.

How far apart can the matrices of neighbouring data be? In Frobenius norm, and in the Euclidean
norm of the upper triangle (the "half-vector"):

| neighbouring data         | Frobenius | half-vector |
|---------------------------|-----------|-------------|
| one record replaced       | 2 sqrt(2) | 3 / sqrt(2) |
| one record added, removed | 2         | sqrt(3)     |

Proofs, with |A| the Frobenius norm and h(A) the half-vector norm of A = z z^T - w w^T. Off-diagonal
entries occur twice in |A|**2 and once in h(A)**2, so h(A)**2 = (|A|**2 + sum_i A_ii**2) / 2.

*Added or removed* (w = 0): |A| = |z|**2 <= 2. And sum_i z_i**4 <= |x|**4 + y**4 <= 2, so
h(A)**2 <= (4 + 2)/2 = 3, with equality at x = (1, 0, ...), y = 1.

*Replaced, Frobenius*: |A|**2 = |z|**4 + |w|**4 - 2 (z.w)**2 <= 8, with equality at w = (x, -y).

*Replaced, half-vector*: put s = z + w and t = z - w, so that A = (s t^T + t s^T)/2, A_ii = s_i t_i,
|A|**2 = (|s|**2 |t|**2 + (s.t)**2)/2. Split off the last coordinate: s = (S, m), t = (T, n), and
write a = |S|**2, b = |T|**2, r = |S.T|. From |x|, |x'| <= 1: a + b + 2r <= 4. From |y|, |y'| <= 1:
|m| + |n| <= 2. The products u_i = S_i T_i have sum_i |u_i| <= sqrt(a b) and |sum_i u_i| = r; with P
and N the sums of their positive and negative parts, sum_i u_i**2 <= P**2 + N**2
= ((P + N)**2 + (P - N)**2)/2 <= (a b + r**2)/2. Hence, taking m, n >= 0,

    4 h(A)**2 <= Q = 2ab + a n**2 + b m**2 + 4 m**2 n**2 + 2 r**2 + 2 r m n.

Q grows in every variable, so its maximum has a + b = 4 - 2r and m + n = 2. Put a, b = 2 - r +- c:
dQ/dr = -8 + 8r - (m - n)**2 <= 0, because r <= sqrt(ab) <= 2 - r makes r <= 1. So r = 0. With
m, n = 1 +- k: Q = 16 - 2c**2 - 4k**2 - 4ck + 4k**4 <= 16 - 2k**2 + 4k**4 (at c = -k), which is
convex in k**2 and so at most its value at k = 1: Q <= 18, h(A) <= sqrt(18/4) = 3/sqrt(2).
Equality: y = y' = 1, x = (p, q), x' = (-q, -p) with p, q = (sqrt(3) +- 1)/(2 sqrt(2)).
"""

import math
from enum import Enum

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.privacy.events import Released
from discreet.privacy.noise import NoiseSource
from discreet.privacy.numeric import GRANULARITY, GaussianMechanism

Floats = npt.NDArray[np.float64]


class Neighbours(Enum):
    """Which data are neighbours: one record replaced by another, or one more or less."""

    REPLACE = "replace"
    ADD_REMOVE = "add-remove"


_FROBENIUS = {Neighbours.REPLACE: 2 * math.sqrt(2), Neighbours.ADD_REMOVE: 2.0}
_HALF_VECTOR = {Neighbours.REPLACE: 3 / math.sqrt(2), Neighbours.ADD_REMOVE: math.sqrt(3)}
_UP = 1 + 2.0**-51


def frobenius_sensitivity(neighbours: Neighbours) -> float:
    """Return the L2 sensitivity of the whole matrix z z^T, rounded up."""
    return _FROBENIUS[neighbours] * _UP


def half_vector_sensitivity(neighbours: Neighbours) -> float:
    """Return the L2 sensitivity of the upper triangle of z z^T, rounded up."""
    return _HALF_VECTOR[neighbours] * _UP


def half_size(order: int) -> int:
    """Return how many entries the upper triangle of an order x order matrix has."""
    if order < 1:
        raise InvalidArgument("order", "must be at least 1")
    return order * (order + 1) // 2


def pack(matrix: npt.ArrayLike) -> Floats:
    """Return the upper triangle of a symmetric matrix, row by row."""
    square = np.asarray(matrix, dtype=np.float64)
    if square.ndim != 2 or square.shape[0] != square.shape[1] or square.shape[0] == 0:
        raise InvalidArgument("matrix", "must be square")
    if not np.isfinite(square).all():
        raise InvalidArgument("matrix", "must be finite")
    if not np.array_equal(square, square.T):
        raise InvalidArgument("matrix", "must be symmetric")
    return square[np.triu_indices(square.shape[0])]


def unpack(half: npt.ArrayLike) -> Floats:
    """Return the symmetric matrix whose upper triangle `pack` gave."""
    entries = np.asarray(half, dtype=np.float64)
    if entries.ndim != 1:
        raise InvalidArgument("half", "must be a vector")
    order = (math.isqrt(8 * entries.size + 1) - 1) // 2
    if entries.size == 0 or half_size(order) != entries.size:
        raise InvalidArgument("half", "must have n*(n + 1)/2 entries for some n")
    square = np.zeros((order, order))
    square[np.triu_indices(order)] = entries
    return square + np.triu(square, 1).T


def outer(x: npt.ArrayLike, y: float) -> Floats:
    """Return the upper triangle of z z^T for z = (x, y), refusing what breaks the sensitivity.

    The norm of x may exceed 1 by rounding only; it is then scaled back, so that the bound holds.
    """
    features = np.asarray(x, dtype=np.float64)
    if features.ndim != 1 or not np.isfinite(features).all():
        raise InvalidArgument("x", "must be a finite vector")
    norm = float(np.linalg.norm(features))
    if norm > 1 + 1e-9:
        raise InvalidArgument("x", "must have a Euclidean norm of at most 1")
    if not -1 <= y <= 1:
        raise InvalidArgument("y", "must lie in [-1, 1]")
    if norm > 1 - 2.0**-40:
        features = features * ((1 - 2.0**-40) / norm)
    z = np.append(features, y)
    return pack(np.outer(z, z))


def release_symmetric(
    matrix: npt.ArrayLike,
    *,
    scale: float,
    sensitivity: float,
    noise: NoiseSource,
    granularity: float = GRANULARITY,
) -> Released[Floats]:
    """Return the matrix with Gaussian noise on its upper triangle, mirrored below.

    `sensitivity` is that of the upper triangle, for instance `half_vector_sensitivity`.
    """
    half = pack(matrix)
    mechanism = GaussianMechanism(scale=scale, sensitivity=sensitivity, granularity=granularity)
    released = mechanism.release(half, noise)
    return Released(unpack(released.value), released.event)
