"""Choosing the shortlist: which arms are worth answering with, given how little may be told.

With a shortlist H of h arms, `ShortlistResponse` answers the best of H for the cell with
probability e^eps / (e^eps + h - 1) and each other arm of H with 1 / (e^eps + h - 1). Over cells C
with traffic shares s_C and means u_kC its expected reward is

    V(H) = sum over C of s_C * ((e^eps - 1) * max_{k in H} u_kC + sum_{k in H} u_kC)
                              / (e^eps + h - 1).

A long H fits more people and is obeyed less often; a short one the reverse. As epsilon goes to 0
the best H is the one most popular arm, as it grows the best H holds the best arm of every cell.
H is grown greedily, always by the arm that helps most, and cut where V was largest. The first arms
of H are those that please most people a little, and may be worth nothing once others have joined
that please some people much. So each arm is then left out, or exchanged for another, if V gains.

Is there a better rule? Every rule that is epsilon-DP in the cell has some a with
a_k <= p(k | C) <= e^eps * a_k, and the best of them solves a linear program in a and p; boosting
the j best arms, or unequal odds within H, are special cases. On smooth rewards that program's own
optimum nearly always *is* a shortlist with equal odds, the one that is found here
(`tests/algorithms/test_shortlist.py` solves both). So the simple rule stays, with its short proof.

Everything here sees aggregates only: no request, no context.
"""

import numpy as np

from discreet.families.choice import Floats, Slots

MOST_ARMS = 128
"""A longer shortlist is obeyed less than half the time even at epsilon 4.8."""

_PATIENCE = 8
"""Growth ends after so many arms without a better value: V rises, then falls."""

_ROUNDS = 3
"""How often every arm may be left out or exchanged."""

_MOST_LOOKED_AT = 20_000_000
"""Means that one such round may look at, about a tenth of a second; longer work is left out."""

_GAIN = 1.0 + 1e-9


def grow_shortlist(*, means: Floats, shares: Floats, odds: Floats) -> Slots:
    """Return the shortlist that growth and exchange find, in the order in which arms joined it.

    `means` has a row a cell and a column an arm, `shares` is each cell's traffic and `odds` its
    e^eps; neither needs to be normalised. With no cells there is nothing to tell arms apart, and
    the shortlist is empty.
    """
    cells, arms = means.shape
    if cells == 0 or arms == 0:
        return np.zeros(0, dtype=np.intp)
    order: list[int] = []
    values: list[float] = []
    leaders = np.zeros(cells)  # the best mean so far in each cell; rewards are never negative
    totals = np.zeros(cells)
    free = np.ones(arms, dtype=np.bool_)
    for size in range(1, min(arms, MOST_ARMS) + 1):
        worth = _joined(means, leaders, totals, shares / (odds + (size - 1)), odds)
        worth[~free] = -np.inf
        arm = int(worth.argmax())
        free[arm] = False
        order.append(arm)
        values.append(float(worth[arm]))
        leaders = np.maximum(leaders, means[:, arm])
        totals = totals + means[:, arm]
        best = int(np.argmax(values))
        if size - best > _PATIENCE:
            break
    listed = order[: int(np.argmax(values)) + 1]
    for _ in range(_ROUNDS):
        before = listed
        if len(listed) * means.size <= _MOST_LOOKED_AT:
            listed = _exchanged(listed, means, shares, odds)
        if listed == before:
            break
    return np.array(listed, dtype=np.intp)


def _joined(means: Floats, leaders: Floats, totals: Floats, scale: Floats, odds: Floats) -> Floats:
    """Return V of a list and each arm: `leaders` and `totals` are the list's best mean and its sum
    of means in each cell, `scale` the cells' traffic over the weights that are drawn from."""
    # einsum and not @: a release runs beside requests, and must not wake BLAS's threads.
    worth: Floats = np.einsum(
        "c,ck->k", scale * (odds - 1.0), np.maximum(leaders[:, None], means)
    ) + np.einsum("c,ck->k", scale, means)
    worth += float(scale @ totals)
    return worth


def _exchanged(listed: list[int], means: Floats, shares: Floats, odds: Floats) -> list[int]:
    """Return the list after each of its arms was left out or exchanged, where V gains by it."""
    for arm in tuple(listed):
        others = [other for other in listed if other != arm]
        if not others:
            break
        leaders, totals = means[:, others].max(axis=1), means[:, others].sum(axis=1)
        scale = shares / (odds + (len(others) - 1))
        without = float(scale @ ((odds - 1.0) * leaders + totals))
        worth = _joined(means, leaders, totals, shares / (odds + len(others)), odds)
        worth[others] = -np.inf
        best = int(worth.argmax())
        if without > _GAIN * float(worth[best]):
            listed = others
        elif worth[best] > _GAIN * float(worth[arm]):
            listed = [*others, best]
    return listed
