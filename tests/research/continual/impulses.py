"""What a continual sum does with its noise, found by poking it: one draw is 1, all others 0.

Releases are linear in the draws: r = A x + B z, A the lower triangle of ones. `responses` finds B
by running the shipped code once for every draw. With D the diagonal of the draws' scales, whoever
sees all releases of a stream whose step s moves by 1 must be fooled by a shift w of the draws with
B w = A e_s. Its cost, |w / D| in L2 (Gaussian) or L1 (Laplace), is therefore the true privacy loss
of everything released, computed without any knowledge of trees or factorisations; for Gaussian
noise the cheapest w gives it exactly.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from discreet.privacy.events import LaplaceRelease
from discreet.research.continual import ContinualSum

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass
class Impulse:
    """A noise source that is silent but for one draw, and notes every draw's scale."""

    production: ClassVar[bool] = False
    which: int = -1
    scales: list[float] = field(default_factory=list)

    def bits(self, count: int) -> int:
        return 0

    def discrete_laplace(self, *, scale: float, size: int) -> Integers:
        return self._draw(scale, size)

    def discrete_gaussian(self, *, scale: float, size: int) -> Integers:
        return self._draw(scale, size)

    def _draw(self, scale: float, size: int) -> Integers:
        drawn = np.zeros(size, dtype=np.int64)
        position = self.which - len(self.scales)
        if 0 <= position < size:
            drawn[position] = 1
        self.scales += [scale] * size
        return drawn


def releases(sums: ContinualSum[Any], values: Floats, noise: Any) -> Floats:
    """Return what is released after each of the steps, one row for each."""
    state, rows = sums.start(), []
    for value in values:
        state = sums.observe(state=state, value=value, noise=noise)
        rows.append(sums.release(state=state).value)
    return np.array(rows)


def responses(sums: ContinualSum[Any], steps: int) -> tuple[Floats, Floats]:
    """Return B (a row for each coordinate of each release) and the draws' scales in steps."""
    values = np.zeros((steps, sums.dimension))
    listener = Impulse()
    releases(sums, values, listener)
    columns = [
        releases(sums, values, Impulse(which)).reshape(-1) for which in range(len(listener.scales))
    ]
    return np.array(columns).T, np.array(listener.scales)


def losses(sums: ContinualSum[Any], steps: int) -> list[float]:
    """Return the privacy loss, at each step, of all releases when that step moves by 1.

    Infinite where no shift of the noise could explain the difference.
    """
    answers, scales = responses(sums, steps)
    weighted = answers * scales
    prefix = np.tril(np.ones((steps, steps)))
    first = np.zeros((sums.dimension, 1))
    first[0] = 1.0
    found = []
    for step in range(steps):
        target = np.kron(prefix[:, step : step + 1], first)[:, 0]
        if isinstance(sums.event, LaplaceRelease):
            found.append(_least_absolute(weighted, target))
        else:
            shift, *_ = np.linalg.lstsq(weighted, target, rcond=1e-10)
            explained = np.allclose(weighted @ shift, target, atol=1e-6)
            found.append(float(np.linalg.norm(shift)) if explained else np.inf)
    return found


def _least_absolute(weighted: Floats, target: Floats) -> float:
    size = weighted.shape[1]
    answer = linprog(
        np.ones(2 * size), A_eq=np.hstack([weighted, -weighted]), b_eq=target, bounds=(0, None)
    )
    return float(answer.fun) if answer.success else np.inf
