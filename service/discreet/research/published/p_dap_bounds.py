"""The regret bounds of the paper on P-DAP, with its constants: Theorems 2, 3 and 6, Corollary 2.

All are of one vendor, whose own items are K and who may ask M - 1 others. How they are read where
the paper contradicts itself: Gamma is Lemma 5's bound at sigma = 0.05 with theta = M - 1; B is the
least that the proof of Lemma 1 allows; the corollary's factors A B and Gamma / 4 stand on each
other's exponent in print, and are put where Theorem 3 has them.
"""

from dataclasses import dataclass
from math import e, log, pi, sqrt

from discreet.research.published.p_dap_cells import PartitionParameters

_SIGMA = 0.05


@dataclass(frozen=True, slots=True)
class RegretBounds:
    """The bounds for a vendor with so many own items, other vendors, dimensions and arrivals."""

    parameters: PartitionParameters
    items: int
    others: int
    dimensions: int
    arrivals: int

    @property
    def noise(self) -> float:
        """Gamma: the most noise in a total reward, by Lemma 5."""
        time, others = self.arrivals, self.others
        return (
            others * log(time) ** 2 * log(others * time * log(time) / _SIGMA)
        ) / self.parameters.epsilon

    def gap(self, level: int) -> float:
        """B m^(-alpha l): by how much an arm must be worse to count as suboptimal in a cell."""
        chosen = self.parameters
        width = (sqrt(self.dimensions) / chosen.segments**level) ** chosen.similarity
        return float(
            (2 * chosen.lipschitz * width + 4) * chosen.segments ** (-chosen.similarity * level)
        )

    def own_arm(self, level: int) -> float:
        """Theorem 2: regret from one suboptimal item of one's own in one cell."""
        return self._tries(level) + pi**2 / 3 + self._draws(level)

    def whole(self) -> float:
        """Theorem 3, with as many cells of every level as so many arrivals can bring about."""
        chosen = self.parameters
        total = 0.0
        for level in range(chosen.deepest):
            cells = self._cells(level)
            if cells < 1:
                break
            near = chosen.base * self.gap(level) * chosen.segments ** (chosen.growth * level)
            total += cells * (
                self.items * self.own_arm(level) + self.others * self._forwards(level) + near
            )
        return total

    def uniform_arrivals(self) -> float:
        """Corollary 2: contexts that are spread over the whole space."""
        chosen = self.parameters
        steps, alpha, d, p = (
            chosen.segments,
            chosen.similarity,
            self.dimensions,
            chosen.growth,
        )
        time = log(self.arrivals)

        def term(power: float) -> float:
            ratio = (self.arrivals / chosen.base) ** (power / (d + p))
            return float(ratio * steps**power)

        return (
            term(d + 2 * alpha) * time * (self.items + self.others)
            + term(d + p - alpha) * chosen.base * self.gap(0)
            + term(d + alpha) * self.noise / 4
            + term(d) * pi**2 / 3 * (self.items + self.others * e**self.items)
            + term(d - alpha)
            * (
                2 * self.items * chosen.lipschitz / chosen.epsilon * (log(self.items) + time)
                + pi**2 / 3 * self.others * e**self.items * time
            )
        )

    def exponent(self) -> float:
        """The largest power of T in Corollary 2; from 1 on it says nothing."""
        d, p, alpha = self.dimensions, self.parameters.growth, self.parameters.similarity
        return max(d + 2 * alpha, d + p - alpha) / (d + p)

    def geometric_gain(self) -> float:
        """Theorem 6: by how much geometric privacy lowers the bound."""
        chosen = self.parameters
        ratio = self.arrivals / chosen.base
        steps, alpha, d, p = (
            chosen.segments,
            chosen.similarity,
            self.dimensions,
            chosen.growth,
        )
        first = self.items * 2 * log(self.arrivals) / chosen.epsilon
        power = d - 2 * alpha
        return float(
            (ratio**alpha * steps**alpha - 1)
            * (
                first * ratio ** (power / (d + p)) * steps**power
                + self.noise * ratio ** ((d - alpha) / (d + p)) * steps ** (d - alpha)
            )
        )

    def _cells(self, level: int) -> float:
        """How many cells of a level there can be: all, or those whose parents had to split."""
        chosen = self.parameters
        every = float(chosen.segments ** (self.dimensions * level))
        if level == 0:
            return every
        split = self.arrivals // chosen.threshold(level - 1)
        return float(min(every, split * chosen.segments**self.dimensions))

    def _tries(self, level: int) -> float:
        chosen = self.parameters
        return float(chosen.segments ** (2 * chosen.similarity * level) * log(self.arrivals))

    def _draws(self, level: int) -> float:
        chosen = self.parameters
        width = 2 * chosen.lipschitz * chosen.segments ** (-chosen.similarity * level)
        return float(width / chosen.epsilon * (log(self.items) + log(self.arrivals)))

    def _forwards(self, level: int) -> float:
        alpha = self.parameters.similarity
        noise = float(self.noise / 4 * self.parameters.segments ** (alpha * level))
        luck = pi**2 / 3 * e**self.items * (1 + self.items / alpha * log(self.arrivals))
        return 2 * self._tries(level) + noise + luck
