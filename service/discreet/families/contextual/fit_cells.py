"""Estimates in cells: smooth functions of the cell, one for every item.

With N the weighted counts of an item in the cells (a diagonal matrix), q the variance of a reward
and S the covariance of the noise in liked minus rate times shown, the observation of all cells has
precision N (N q + S)^-1 N. An item's function is a sum of cosine waves over the cells; the variance
of a wave's coefficient depends on its group, by frequency, and is fitted to all items together.

With exact feedback there are straight lines as well, which many waves would be needed for, and fine
waves have to wait for visits: they would be explored one by one, for differences that few people
make.
"""

import math
from functools import cache

import numpy as np

from discreet.families.choice import Floats
from discreet.families.contextual.cells import LINE, CellSpace
from discreet.families.contextual.estimates import (
    WIDER,
    Estimates,
    Groups,
    differing,
    empirical_bayes,
    overall_rate,
    posterior,
)
from discreet.families.contextual.sums import ContextualSums

_EDGES = np.array([0, 1, 3, 6, 11, 19])
"""Squared frequencies at which a group of waves begins."""
_FINEST = {1: 25, 2: 5, 3: 4}
"""The largest squared frequency in so many dimensions where feedback is exact, as measured; and"""
_MORE_FROM = 12_000.0
"""from so many visits on, it grows as the best number of them does for functions whose second
derivatives are bounded: as visits to the power of 2 / (dimensions + 4) (Stone 1982)."""
_LEVELS = 0.01
_ITEMS_FITTED = 128
_TINY = 1e-9
_JITTER = 1e-3


def assumed_differences(groups: int) -> Floats:
    """Return how much items are assumed to differ: less in finer waves."""
    assumed: Floats = np.array([_LEVELS, *(_LEVELS / 2.0**group for group in range(groups - 1))])
    return assumed


def _groups(orders: Groups) -> tuple[Groups, Floats]:
    """Return the group of each function, and how much items are assumed to differ in it."""
    groups = np.searchsorted(_EDGES, orders, side="right") - 1
    assumed = assumed_differences(int(groups.max()) + 1)
    if LINE not in orders:
        return groups, assumed
    return np.where(orders == LINE, len(assumed), groups), np.append(assumed, _LEVELS)


def finest(space: CellSpace, visits: float) -> float:
    """Return the largest squared frequency of the waves that means are made of."""
    if not space.exact:
        return math.inf
    more: float = max(1.0, visits / _MORE_FROM) ** (2.0 / (4.0 + space.dimensions))
    return _FINEST[space.dimensions] * more


def fit_cells(space: CellSpace, sums: ContextualSums, slots: np.ndarray) -> Estimates:
    """Return estimates for the items in these slots; others have none."""
    used = space.orders <= finest(space, sums.seen)
    basis = space.basis[:, used]
    groups, assumed = _groups(space.orders[used])
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
    count = count * occupied

    def likelihood(part: "np.ndarray | slice") -> tuple[Floats, Floats]:
        """Return the precision and the evidence about the items' coefficients."""
        n, own = count[part], count[part] * spread[part] + _TINY
        if not noise.any():
            worth = n / own
            weighted = basis.T * (n * worth)[:, None, :]
            return weighted @ basis, (worth * surplus[part]) @ basis
        identity, root = np.eye(len(basis)), np.sqrt(noise[part])
        covariance = own[:, :, None] * identity
        covariance += root[:, :, None] * space.alike * root[:, None, :] + _JITTER * identity
        inverse = np.linalg.inv(covariance)
        evidence = n * np.einsum("kcd,kd->kc", inverse, surplus[part])
        return basis.T @ (n[:, :, None] * inverse * n[:, None, :]) @ basis, evidence @ basis

    parts = [slice(start, start + _ITEMS_FITTED) for start in range(0, len(slots), _ITEMS_FITTED)]
    # What is common to all items.
    common_precision, observed = np.diag(2.0 / assumed[groups]), np.zeros(len(groups))
    for part in parts:
        precision, evidence = likelihood(part)
        common_precision = common_precision + precision.sum(axis=0)
        observed = observed + evidence.sum(axis=0)
    shared = np.linalg.solve(common_precision, observed)

    def differences(part: "np.ndarray | slice") -> tuple[Floats, Floats]:
        precision, evidence = likelihood(part)
        return precision, evidence - precision @ shared

    fitted = np.argsort(-count.sum(axis=1), kind="stable")[:_ITEMS_FITTED]
    variances = empirical_bayes(*differences(fitted), groups, assumed, assumed)
    means = np.full((sums.slots, len(basis)), rate)
    squares = np.full((sums.slots, len(basis)), float(variances[groups].sum()))
    shares = sums.visits() + _TINY
    shares = shares / shares.sum()
    among = shares @ basis
    levels = np.full(sums.slots, float(variances[groups] @ among**2))
    for part in parts:
        seen = differences(part)
        coefficients, covariance = posterior(*seen, groups, variances)
        if not noise.any():
            _, covariance = posterior(*seen, groups, WIDER * variances)
        means[slots[part]] = rate + (shared + coefficients) @ basis.T
        levels[slots[part]] = np.einsum("i,kij,j->k", among, covariance, among, optimize=True)
        halves = np.einsum("ci,kij->kcj", basis, covariance, optimize=True)
        squares[slots[part]] = np.einsum("kcj,cj->kc", halves, basis, optimize=True)
    return Estimates(
        coefficients=means,
        mix=np.zeros((0, 0)),
        spread=squares,
        people=_people(space.entries),
        shares=shares,
        known=1.0 - np.clip(levels / float(variances[groups] @ among**2), 0.0, 1.0),
        levels=np.sqrt(np.maximum(levels, 0.0)),
    )


@cache
def _people(cells: int) -> Floats:
    """Return the row of somebody in each cell; models share them."""
    rows: Floats = np.eye(cells)
    rows.flags.writeable = False
    return rows
