"""How much noise each category needs: the least in total for a given epsilon.

Phase 1 of S-DPDP and M-DPDP (Shen and Jin, CCS 2016, programs 4.4 and 5.2). One item changes the
count of each of its categories by one, so noise of magnitude z_j on category j loses at most

    max over items i of  sum_j C_ij / z_j,

and the program minimises the expected error sum_j z_j with that at most epsilon. With w = 1/z it
is smooth and convex:

    minimise  sum_j 1 / w_j   subject to  C w <= epsilon,

and z scales as 1/epsilon, so that it is solved once, at epsilon 1, for the maximal distinct rows.

The solver is a primal-dual interior-point method whose iterates stay strictly feasible. For any
lambda >= 0 the Lagrangian's minimum over w is g(lambda) = 2 sum_j sqrt((C' lambda)_j) - sum_i
lambda_i, a lower bound on the optimum; the method stops when the certified gap is below one part
in 10^9, and raises when it cannot get there. An optimum that were missed would cost accuracy, not
privacy: what privacy needs is feasibility, and that is checked afterwards in exact rationals.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.errors import InvalidArgument
from discreet.families.collaborative.on_device.catalogue import (
    PERTURBED,
    Catalogue,
    Concerns,
    Flags,
    Floats,
    scope_of,
)
from discreet.privacy.charges import decimal

EPSILON_LEAST, EPSILON_MOST = 1e-6, 50.0

_GAP = 1e-9
_STEPS = 200
_CENTRING = 0.1
_BOUNDARY = 0.99


@dataclass(frozen=True, slots=True, eq=False)
class CategoryNoise:
    """The magnitude of the noise on each counted category.

    `gap` is the certified distance from the optimum, relative: the sum of the magnitudes is at
    most (1 + gap) times the least possible. `loss` is the exact privacy loss of the noise, at
    most `epsilon`.
    """

    categories: tuple[str, ...]
    magnitudes: tuple[float, ...]
    epsilon: float
    loss: Fraction
    gap: float

    @property
    def mean(self) -> float:
        """Return the mean magnitude: about the expected error of a category's count."""
        return sum(self.magnitudes) / len(self.magnitudes) if self.magnitudes else 0.0


def check_epsilon(epsilon: float) -> None:
    """Refuse what no calibration can promise."""
    if not EPSILON_LEAST <= epsilon <= EPSILON_MOST:
        raise InvalidArgument("epsilon", f"must be from {EPSILON_LEAST:g} to {EPSILON_MOST:g}")


def calibrate(
    *, catalogue: Catalogue, epsilon: float, concerns: Concerns = PERTURBED
) -> CategoryNoise:
    """Return the magnitudes that the perturbed categories need for `epsilon`."""
    check_epsilon(epsilon)
    return _calibrated(catalogue, epsilon, concerns)


# Kept because they are public and the same for every release: a hub has a few of them.
@lru_cache(maxsize=64)
def _calibrated(catalogue: Catalogue, epsilon: float, concerns: Concerns) -> CategoryNoise:
    scope = scope_of(catalogue, concerns)
    unit, gap = _unit_magnitudes(catalogue, concerns)
    magnitudes = affordable(scope.rows, unit / epsilon, decimal(epsilon))
    return CategoryNoise(
        categories=tuple(catalogue.categories[at] for at in scope.counted),
        magnitudes=tuple(magnitudes.tolist()),
        epsilon=epsilon,
        loss=loss_of(scope.rows, magnitudes),
        gap=gap,
    )


@lru_cache(maxsize=64)
def _unit_magnitudes(catalogue: Catalogue, concerns: Concerns) -> tuple[Floats, float]:
    return least_noise(scope_of(catalogue, concerns).rows)


def loss_of(rows: Flags, magnitudes: Floats) -> Fraction:
    """Return the exact loss: the most that one item's categories add up to."""
    inverse = [1 / Fraction(float(magnitude)) for magnitude in magnitudes]
    return max(
        (sum((inverse[at] for at in np.flatnonzero(row)), Fraction(0)) for row in rows),
        default=Fraction(0),
    )


def affordable(rows: Flags, magnitudes: Floats, epsilon: Fraction) -> Floats:
    """Return the magnitudes, raised in the last digits until the exact loss is within epsilon."""
    while (loss := loss_of(rows, magnitudes)) > epsilon:
        # Doubles err by parts in 2**53; a few more of them each time end this in a step or two.
        magnitudes = magnitudes * (float(loss / epsilon) * (1 + 2.0**-50))
    return magnitudes


def least_noise(rows: Flags) -> tuple[Floats, float]:
    """Return the magnitudes of least sum at epsilon 1, and the certified relative gap."""
    if not rows.size:
        return np.zeros(rows.shape[1] if rows.ndim == 2 else 0), 0.0
    incidence = rows.astype(np.float64)
    count = incidence.shape[0]
    rates = np.full(incidence.shape[1], 0.5 / incidence.sum(axis=1).max())
    slack = 1.0 - incidence @ rates
    prices = np.full(count, np.sum(1 / rates) / count) / slack
    for _ in range(_STEPS):
        total = float(np.sum(1 / rates))
        bound = 2.0 * float(np.sum(np.sqrt(incidence.T @ prices))) - float(prices.sum())
        if total - bound <= _GAP * total:
            return 1 / rates, max(0.0, (total - bound) / bound)
        target = _CENTRING * float(prices @ slack) / count
        gradient = incidence.T @ (target / slack) - 1 / rates**2
        curvature = (incidence.T * (prices / slack)) @ incidence
        curvature[np.diag_indices_from(curvature)] += 2 / rates**3
        move = np.linalg.solve(curvature, -gradient)
        tighten = incidence @ move
        repricing = (target + prices * tighten) / slack - prices
        step = min(_reach(rates, move), _reach(slack, -tighten), _reach(prices, repricing), 1.0)
        rates = rates + step * move
        prices = prices + step * repricing
        slack = 1.0 - incidence @ rates
    raise ArithmeticError("the calibration did not reach its certified gap")


def _reach(values: Floats, move: Floats) -> float:
    """Return how far along the move all values stay positive, less a margin."""
    falling = move < 0
    if not falling.any():
        return 1.0
    return _BOUNDARY * float(np.min(-values[falling] / move[falling]))
