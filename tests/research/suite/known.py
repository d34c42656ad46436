"""A tiny stretch for tests: two kinds of people, and an item for each kind."""

import numpy as np

from discreet.research.suite.stretches import Stretch


def two_kinds(rounds: int, *, seed: int = 0, first: int = 0) -> Stretch:
    """Return visits of both kinds; items `first` and `first` + 1 please one kind each, with 0.9.

    A third item pleases everybody with 0.3. Whoever cannot tell the kinds apart earns at most 0.5.
    """
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 2, rounds)
    contexts = np.where(kinds[:, None] == 0, [0.9, 0.2], [0.1, 0.8]) + 0.0
    means = np.array([[0.9, 0.1, 0.3], [0.1, 0.9, 0.3]])[kinds]
    return Stretch(contexts, np.arange(first, first + 3), means, rng.random(rounds))
