"""Choosing the shortlist: which arms are worth answering with, given how little may be told.

With a shortlist H of h arms, `ShortlistResponse` answers the best of H for the cell with
probability e^eps / (e^eps + h - 1) and each other arm of H with 1 / (e^eps + h - 1). Over cells C
with traffic shares s_C and means u_kC its expected reward is

    V(H) = sum over C of s_C * ((e^eps - 1) * max_{k in H} u_kC + sum_{k in H} u_kC)
                              / (e^eps + h - 1).

A long H fits more people and is obeyed less often; a short one the reverse. As epsilon goes to 0
the best H is the one most popular arm, as it grows the best H holds the best arm of every cell.
H is grown greedily, always by the arm that helps most, and cut where V was largest.

Is there a better rule? Every rule that is epsilon-DP in the cell has some a with
a_k <= p(k | C) <= e^eps * a_k, and the best of them solves a linear program in a and p; boosting
the j best arms, or unequal odds within H, are special cases. On smooth rewards that program's own
optimum nearly always *is* a shortlist with equal odds, the one that greedy growth finds
(`tests/algorithms/test_shortlist.py` solves both). So the simple rule stays, with its short proof.

Everything here sees aggregates only: no request, no context.
"""

import numpy as np

from discreet.families.choice import Floats, Slots

MOST_ARMS = 128
"""A longer shortlist is obeyed less than half the time even at epsilon 4.8."""

_PATIENCE = 8
"""Growth ends after so many arms without a better value: V rises, then falls."""


def grow_shortlist(*, means: Floats, shares: Floats, odds: Floats) -> Slots:
    """Return the shortlist that greedy growth finds, in the order in which arms joined it.

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
    reached = np.empty_like(means)
    for size in range(1, min(arms, MOST_ARMS) + 1):
        scale = shares / (odds + (size - 1))
        np.maximum(leaders[:, None], means, out=reached)
        # einsum and not @: a survey runs beside requests, and must not wake BLAS's threads.
        worth = np.einsum("c,ck->k", scale * (odds - 1.0), reached)
        worth += np.einsum("c,ck->k", scale, means) + float(scale @ totals)
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
    return np.array(order[: int(np.argmax(values)) + 1], dtype=np.intp)
