"""The bounds of the paper on CDP-FCLUB-DC with the constants of its appendix: Theorems 1, 2 and 3.

| paper's symbol | name here | range |
|---|---|---|
| n, m, L, d, T | `users`, `clusters`, `servers`, `dimensions`, `rounds` | >= 1 |
| U = D | `threshold` | > 1 |
| gamma | `gap`: between preference vectors | > 0 |
| lambda_x | `regularity`: the least eigenvalue of E[x x^T] | > 0 |
| alpha | `failure`: 1 / (8 T), as the proof of Theorem 1 sets it | > 0 |
| nu, rho, rho_max, kappa | `levels`, `shift`, `most`, `kappa` | |
| T_0 | `detection`: rounds until clusters are surely found | |

Where the appendix writes a quantity in several ways, the one that makes the bound smaller is taken:
the 2 of equation (22) is dropped, as in (23), and every cluster has an equal share of the rounds.
"""

from dataclasses import dataclass
from math import ceil, log, log2, sqrt

from discreet.privacy.calibration import published_privatizer_scale
from discreet.privacy.conversions import gaussian_delta
from discreet.research.published.fclub import REWARD_DEVIATION


@dataclass(frozen=True, slots=True)
class ClusterBounds:
    """The bounds for the items of the paper's experiments: (a direction, 1) / sqrt(2)."""

    users: int = 40
    clusters: int = 4
    servers: int = 5
    dimensions: int = 10
    rounds: int = 100_000
    epsilon: float = 1.0
    delta: float = 0.1
    threshold: float = 1.01
    gap: float = 1.0

    @property
    def failure(self) -> float:
        """Alpha."""
        return 1 / (8 * self.rounds)

    @property
    def regularity(self) -> float:
        """lambda_x: a direction's coordinates have the variance 1 / (d - 1)."""
        return 1 / (2 * (self.dimensions - 1))

    @property
    def spread_of_squares(self) -> float:
        """The variance of (theta . x)^2 for a theta without the constant coordinate.

        The square of one coordinate of a direction has the law Beta(1/2, (d - 2)/2).
        """
        a, b = 0.5, (self.dimensions - 2) / 2
        return a * b / ((a + b) ** 2 * (a + b + 1)) / 4

    def spread_allowed(self, offered: int) -> float:
        """The largest variance of (theta . x)^2 that Assumption 2 allows with so many items."""
        return self.regularity / (8 * log(4 * offered))

    @property
    def uploads(self) -> float:
        """t_c: how often a cluster uploads at most, d log T / log U."""
        return self.dimensions * log(self.rounds) / log(self.threshold)

    @property
    def levels(self) -> int:
        """Nu."""
        return ceil(log2(ceil(self.uploads) + 1)) + 1

    @property
    def shift(self) -> float:
        """Rho, equation (7)."""
        return (
            8
            * sqrt(2 * self.levels)
            * log(4 / self.delta)
            * (4 * sqrt(self.dimensions) + 2 * self._log_pairs)
            / self.epsilon
        )

    @property
    def most(self) -> float:
        """rho_max, below Definition 2."""
        return 3 * self.shift * (1 + self.uploads)

    @property
    def kappa(self) -> float:
        """Kappa, as in the proof of Lemma 3."""
        wide = sqrt(self.dimensions) + 2 * self._log_pairs
        return sqrt(2 * self.levels) * wide / sqrt(2 * self.epsilon)

    @property
    def detection(self) -> float:
        """T_0(alpha) of Lemma 2."""
        share = self.regularity * self.gap**2
        noise = sqrt(2 * self.levels) * log(4 / self.delta) / (self.epsilon * share)
        steep = (96 * REWARD_DEVIATION) ** 2 / share
        each = max(
            steep * log(2 / self.failure),
            steep * self.dimensions * log(4608 * REWARD_DEVIATION**2 / share),
            192**2 * 6 * noise * sqrt(self.dimensions),
            192**2 * 3 * noise * self._log_pairs,
            1024
            / self.regularity**2
            * log(512 * self.users * self.dimensions / (self.regularity**2 * self.failure)),
        )
        return 16 * self.users * log(self.rounds / self.failure) + 4 * self.users * each

    def learning(self) -> float:
        """Proposition 1: the regret once clusters are found, equation (23) for every cluster."""
        arrivals = self.rounds / self.clusters
        d = self.dimensions
        radius = (
            REWARD_DEVIATION
            * sqrt(
                2 * log(8 * self.clusters * self.servers / self.failure)
                + d * log(self.most / self.shift + arrivals / (d * self.shift))
            )
            + sqrt(self.servers * self.most)
            + self.kappa * sqrt(self.servers)
        )
        grown = self.threshold - 1
        delay = sqrt(self.threshold * (1 + (self.servers - 1) * grown) + grown)
        one = radius * sqrt(d * log(1 + self.rounds / (d * self.shift))) * delay * sqrt(arrivals)
        return self.clusters * one

    def regret(self) -> float:
        """Theorem 1, as its proof has it: a regret of 1 a round for 2 T_0 rounds, then learning."""
        return 2 * self.detection + self.learning()

    def communications(self) -> float:
        """Proposition 2, equation (31): Theorem 2 with its constants."""
        ratio, scale = self.most / self.shift, self.dimensions * self.shift
        after = self.dimensions * log(ratio + self.rounds / scale)
        before = self.dimensions * log(ratio + 2 * self.detection / scale)
        spoken = after + before * log(2 * self.detection)
        return self.clusters * self.servers * (log(self.rounds) + spoken / log(self.threshold))

    def communication_order(self) -> float:
        """Theorem 2 as it is printed, with 1 for its constant."""
        return self.clusters * self.servers * self.uploads

    def composed_epsilon(self) -> float:
        """Epsilon at delta of what the proof of Theorem 3 leaves out, for one observation.

        Every phase uploads it once more and may start a new tree, each with noise of its own. The
        noise (N + N^T) / sqrt(2) has sqrt(2) times the deviation of N along every symmetric matrix
        of Frobenius norm 1, and a replaced observation moves its node by at most 2 sqrt(2).
        """
        phases = ceil(log2(self.rounds))
        scale = published_privatizer_scale(
            levels=self.levels, epsilon=self.epsilon, delta=self.delta
        )
        multiplier = scale / (2 * sqrt(phases * (self.levels + 1)))
        low, high = 0.0, 1.0
        while gaussian_delta(multiplier=multiplier, epsilon=high) > self.delta:
            low, high = high, 2 * high
        while high - low > 1e-6:
            middle = (low + high) / 2
            kept = gaussian_delta(multiplier=multiplier, epsilon=middle) <= self.delta
            low, high = (low, middle) if kept else (middle, high)
        return high

    def least_order(self) -> float:
        """The order of the lower bound that the paper states, sqrt(d m T)."""
        return sqrt(self.dimensions * self.clusters * self.rounds)

    @property
    def _log_pairs(self) -> float:
        return log(2 * self.clusters * self.servers / self.failure)
