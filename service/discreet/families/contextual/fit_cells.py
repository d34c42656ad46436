"""Estimates in cells: smooth functions of the cell, one for every item.

With n the weighted count of an item in a cell, q the variance of a reward and s that of the noise
in liked minus rate times shown, the cell's observation has precision n^2 / (n q + s). An item's
function is a sum of cosine waves over the cells; the variance of a wave's coefficient depends on
its group, by frequency, and is fitted to all items together.
"""

import numpy as np

from discreet.families.choice import Floats
from discreet.families.contextual.estimates import (
    Estimates,
    differing,
    empirical_bayes,
    overall_rate,
    posterior,
)
from discreet.families.contextual.spaces import CellSpace
from discreet.families.contextual.sums import ContextualSums

_EDGES = np.array([0, 1, 3, 6, 11, 19])
"""Squared frequencies at which a group of waves begins."""
_LEVELS = 0.02
_ITEMS_FITTED = 128
_TINY = 1e-9


def assumed_differences(groups: int) -> Floats:
    """Return how much items are assumed to differ: less in finer waves."""
    assumed: Floats = np.array([_LEVELS, *(_LEVELS / 2.0**group for group in range(groups - 1))])
    return assumed


def fit_cells(space: CellSpace, sums: ContextualSums, slots: np.ndarray) -> Estimates:
    """Return estimates for the items in these slots; others have none."""
    basis = space.basis
    groups = np.searchsorted(_EDGES, space.orders, side="right") - 1
    assumed = assumed_differences(int(groups.max()) + 1)
    occupied = sums.occupied()
    count, variance = sums.count[slots], sums.variance[slots]
    liked, shown = sums.liked[slots], (sums.liked + sums.disliked)[slots]
    thinned = np.where(count > 0, sums.count2[slots] / np.maximum(count, _TINY), 1.0)
    trusted = count / (count * 0.2 * thinned + variance + _TINY) * occupied
    rate = overall_rate(float((trusted * liked).sum()), float((trusted * count).sum()), 10.0)
    assumed = differing(assumed, rate)
    spread = max(rate * (1.0 - rate), 0.003) * thinned
    noise = variance * ((1.0 - rate) ** 2 + rate**2)
    surplus = liked - rate * shown
    # What is common to all items, by cell.
    worth = count / (count * spread + noise + _TINY) * occupied
    common_precision = (basis.T * (worth * count).sum(axis=0)) @ basis
    common = np.linalg.solve(
        common_precision + np.diag(2.0 / assumed[groups]),
        basis.T @ (worth * surplus).sum(axis=0),
    )
    shared = basis @ common
    evidence = (worth * (surplus - shared * count)) @ basis
    weight = worth * count
    fitted = np.argsort(-count.sum(axis=1), kind="stable")[:_ITEMS_FITTED]
    variances = empirical_bayes(
        _precision(weight[fitted], basis), evidence[fitted], groups, assumed, assumed
    )
    means = np.full((sums.slots, len(basis)), rate)
    squares = np.full((sums.slots, len(basis)), float(variances[groups].sum()))
    shares = np.where(occupied, np.maximum(sums.arrivals, 0.0), 0.0) + _TINY
    shares = shares / shares.sum()
    among = shares @ basis
    levels = np.full(sums.slots, float(variances[groups] @ among**2))
    for start in range(0, len(slots), _ITEMS_FITTED):
        part = slice(start, start + _ITEMS_FITTED)
        coefficients, covariance = posterior(
            _precision(weight[part], basis), evidence[part], groups, variances
        )
        means[slots[part]] = rate + shared + coefficients @ basis.T
        levels[slots[part]] = np.einsum("i,kij,j->k", among, covariance, among, optimize=True)
        halves = np.einsum("ci,kij->kcj", basis, covariance, optimize=True)
        squares[slots[part]] = np.einsum("kcj,cj->kc", halves, basis, optimize=True)
    return Estimates(
        coefficients=means,
        mix=np.zeros((0, 0)),
        spread=squares,
        people=np.eye(space.entries),
        shares=shares,
        known=1.0 - np.clip(squares @ shares / float(variances[groups].sum()), 0.0, 1.0),
        levels=np.sqrt(np.maximum(levels, 0.0)),
    )


def _precision(weight: Floats, basis: Floats) -> Floats:
    precision: Floats = np.einsum("kc,ci,cj->kij", weight, basis, basis, optimize=True)
    return precision
