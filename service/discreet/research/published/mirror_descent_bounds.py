"""The theorems of private distributed online learning, as numbers.

Symbols as in `discreet.research.published.mirror_descent`.
"""

from math import sqrt

import numpy as np

from discreet.errors import InvalidArgument
from discreet.families.mirror_descent.sparse import SparseRows
from discreet.research.published.mirror_descent import Algorithm1, published_sensitivity

_RATE = 0.01


def regret_bound(
    *,
    radius: float,
    nodes: int,
    dimension: int,
    turns: int,
    epsilon: float | None,
    lasso: float = 0.0,
) -> tuple[float, float]:
    """Return the two terms of Theorem 2, as printed, for records of norm 1 (L = 1)."""
    learning = radius * sqrt((1.0 + lasso) * nodes * turns)
    if epsilon is None:
        return learning, 0.0
    noise = 2 * sqrt(2) * nodes**2 * dimension * turns / epsilon * (sqrt(turns) - 0.5)
    return learning, noise


def disclosed(*, rounds: int) -> float:
    """Return a loss that so many rounds of Algorithm 1 can have about one record, in epsilons.

    Theorem 1 says: at most 1, however many rounds. One node, one feature; two streams of records
    that differ in the label of the second one, and broadcasts that Laplace noise can produce. Every
    later record is so long that it has a margin above 1 in one of the two worlds and below 1 in the
    other, which is possible because line 9 looks at theta before noise is added to it. The loss is
    the logarithm of the ratio of the densities of all broadcasts.
    """
    if rounds < 2:
        raise InvalidArgument("rounds", "must be at least 2")
    here, there = (Algorithm1(nodes=1, dimension=1, rate=_RATE) for _ in range(2))
    scale = published_sensitivity(rate=_RATE, dimension=1, bound=1.0)
    loss, broadcast = 0.0, 1.0
    for turn in range(rounds):
        lengths = float(here.theta[0, 0] + there.theta[0, 0])
        value = 1.0 if turn < 2 else min(1.0, 2 / lengths)
        for world, label in ((here, 1), (there, -1 if turn == 1 else 1)):
            _take(world, value, label)
        ours, theirs = float(here.theta[0, 0]), float(there.theta[0, 0])
        if turn > 0:
            # Beyond ours, seen from theirs: nothing speaks more for this world.
            broadcast = max(ours, 1.0) if ours > theirs else min(ours, 1 - _RATE / 2)
        loss += (abs(broadcast - theirs) - abs(broadcast - ours)) / scale
        here.noisy = np.array([[broadcast]])
        there.noisy = here.noisy.copy()
    return loss


def _take(world: Algorithm1, value: float, label: int) -> None:
    rows = SparseRows(np.array([0, 1]), np.array([0]), np.array([value]))
    margins, _ = world.predict(rows)
    world.learn(rows=rows, labels=np.array([label]), margins=margins, weights=np.ones((1, 1)))
