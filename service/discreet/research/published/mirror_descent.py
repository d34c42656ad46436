"""Private distributed online learning, line by line as published, and without noise.

C. Li, P. Zhou, Y. Zhou, K. Bian, T. Jiang, S. Rahardja: Distributed Private Online Learning for
Social Big Data Computing over Data Center Networks, 2016: Algorithm 1. For simulations only.

| paper's symbol | name here | range |
|---|---|---|
| m, n | `nodes`, `dimension` | >= 1 |
| alpha_t | `rate`, constant as in Theorem 2 | > 0 |
| lambda_t = alpha_t * lambda | `rate * lasso` | >= 0 |
| L | `bound`, on the L2 norm of a record | > 0 |
| epsilon | `epsilon`; None is the non-private reading | > 0 |
| a_ij | `weights`, anew for every round | doubly stochastic |
| theta, theta~ | `theta`, `noisy` | R^(m x n) |

Where its guarantee does not hold, or not as a user would read it:

- Line 8 predicts from theta_t, which contains the previous record's gradient without noise. The
  noise of line 11 protects a record against other nodes, not against the node's own users.
- Theorem 1 presumes that a record enters one broadcast, as rounds have different records. But the
  next gradient is evaluated at theta_t as well, so a record may decide by line 9 whether the next
  one counts, and that one again: up to epsilon / 2 more in every later round
  (`mirror_descent_bounds.disclosed`). And whoever gave many records pays for each.
- Lemma 1 bounds the L1 sensitivity by sqrt(n) times the L2 norm, as if a record changed all n
  coordinates. That is true and, for sparse records, sqrt(n / non-zeros) too much.
- Noise of n coordinates is added in every round and never forgotten: after T rounds its deviation
  is that of one round times sqrt(T). At n = 10,000 and epsilon 1 one round's is 283 rates, and a
  record moves a coordinate by less than one rate.
"""

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.families.mirror_descent.sparse import Floats, SparseRows
from discreet.privacy.noise import NoiseSource

_FINE = 2.0**42


def published_sensitivity(*, rate: float, dimension: int, bound: float) -> float:
    """Return Lemma 1's S(t) = 2 alpha_t sqrt(n) L."""
    return 2 * rate * math.sqrt(dimension) * bound


def published_rate(*, radius: float, bound: float, lasso: float, records: int) -> float:
    """Return Theorem 2's alpha = |w| / (2 sqrt((L + lambda) m T L)), for m T records in all."""
    return radius / (2 * math.sqrt((bound + lasso) * bound * records))


@dataclass(kw_only=True)
class Algorithm1:
    """All nodes of the network in lock step: each round, every node receives one record."""

    nodes: int
    dimension: int
    rate: float
    lasso: float = 0.0
    bound: float = 1.0
    epsilon: float | None = None
    theta: Floats = field(init=False, repr=False)
    noisy: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.dimension < 1:
            raise InvalidArgument("nodes", "and dimension must be at least 1")
        if not (math.isfinite(self.rate) and self.rate > 0):
            raise InvalidArgument("rate", "must be finite and greater than 0")
        if not (math.isfinite(self.lasso) and self.lasso >= 0):
            raise InvalidArgument("lasso", "must be finite and not negative")
        if self.epsilon is not None and not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise InvalidArgument("epsilon", "must be finite and greater than 0")
        self.theta = np.zeros((self.nodes, self.dimension))  # line 2
        self.noisy = self.theta.copy()

    @property
    def noise_scale(self) -> float:
        """Return mu = S(t) / epsilon of the Laplace noise, 0 without privacy."""
        if self.epsilon is None:
            return 0.0
        sensitivity = published_sensitivity(
            rate=self.rate, dimension=self.dimension, bound=self.bound
        )
        return sensitivity / self.epsilon

    def truncated(self, theta: Floats) -> Floats:
        """Return w for p = theta, phi being half the square of the norm (lines 6 and 7)."""
        kept: Floats = np.copysign(np.maximum(np.abs(theta) - self.rate * self.lasso, 0.0), theta)
        return kept

    def predict(self, rows: SparseRows) -> tuple[Floats, Floats]:
        """Return every record's w.x at its own node, and at the mean of all nodes' w (line 8).

        Row r is node r's record. Only coordinates that occur in a record are looked at.
        """
        if len(rows) != self.nodes:
            raise InvalidArgument("rows", "must be one record for every node")
        seen = self.truncated(self.theta[:, rows.indices])
        entries = np.arange(len(rows.indices))
        return (
            rows.sums(seen[rows.row_of, entries] * rows.values),
            rows.sums(seen.mean(axis=0) * rows.values),
        )

    def learn(
        self,
        *,
        rows: SparseRows,
        labels: npt.NDArray[np.int64],
        margins: Floats,
        weights: Floats,
        noise: Floats | None = None,
    ) -> None:
        """Take one step: `margins` are the nodes' own predictions (lines 9 to 11).

        `noise` is as `laplace` draws it, in units of its scale.
        """
        wrong = labels * margins < 1
        mixed = weights @ self.noisy
        step = rows.values * (self.rate * labels * wrong)[rows.row_of]
        # A row names a feature once, so no two of these meet.
        mixed[rows.row_of, rows.indices] += step
        self.theta = mixed
        self.noisy = mixed
        if self.epsilon is not None:
            if noise is None:
                raise InvalidArgument("noise", "is needed with an epsilon")
            self.noisy = mixed + self.noise_scale * noise

    def sparsity(self) -> float:
        """Return the share of features that no node uses any more."""
        return float(1 - np.count_nonzero(self.truncated(self.theta)) / self.theta.size)


def laplace(noise: NoiseSource, *, nodes: int, dimension: int) -> Floats:
    """Return one round's noise at every node, of scale 1: a multiple of it serves any epsilon."""
    drawn = noise.discrete_laplace(scale=_FINE, size=nodes * dimension)
    return drawn.reshape(nodes, dimension) / _FINE
