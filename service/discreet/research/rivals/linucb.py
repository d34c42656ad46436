"""MABWiser's LinUCB (Li, Chu, Langford and Schapire 2010): a ridge regression for every item.

A context is centred and gets a constant. Learning is by `partial_fit`, in batches of 100 visits;
of 1,000 where a context has more than 200 numbers, as every fit inverts a matrix for every item.
`ALPHA` is the default of MABWiser and did best over the worlds among 0.1, 0.25, 0.5, 1 and 2;
behind our private choice, whose draws explore by themselves, `PRIVATE_ALPHA` did.
"""

from typing import Any

import numpy as np

from discreet.research.rivals.private_choice import PrivateChoice
from discreet.research.suite.stretches import Places, Stretch
from discreet.research.worlds.environments import Floats, seeded

ALPHA = 1.0
PRIVATE_ALPHA = 0.5
BATCH = 100
LARGE_BATCH = 1_000
MANY_DIMENSIONS = 200


class LinUcbLearner:
    """LinUCB; with an epsilon, behind our private choice."""

    def __init__(self, epsilon: float | None) -> None:
        self._epsilon = epsilon
        self._choice: PrivateChoice | None = None
        self._mab: Any = None
        self._fitted = False

    async def play(self, stretch: Stretch, *, seed: int) -> Places:
        """Return a place for every visit, learning batch by batch."""
        self._offer(stretch.offered, seed)
        contexts = np.hstack([np.ones((len(stretch.contexts), 1)), stretch.contexts - 0.5])
        many = stretch.contexts.shape[1] > MANY_DIMENSIONS
        batch = LARGE_BATCH if many else BATCH
        chosen = np.empty(len(contexts), dtype=np.intp)
        for start in range(0, len(contexts), batch):
            rows = np.arange(start, min(start + batch, len(contexts)))
            chosen[rows] = self._choose(contexts[rows], stretch.offered, seed)
            rewards = stretch.rewards(rows, chosen[rows])
            fit = self._mab.partial_fit if self._fitted else self._mab.fit
            fit(chosen[rows], rewards, contexts[rows])
            self._fitted = True
        return chosen

    async def close(self) -> None:
        """Nothing is held."""

    def _offer(self, offered: Places, seed: int) -> None:
        # An optional import, and a slow one.
        from mabwiser.mab import MAB, LearningPolicy

        wanted = offered.tolist()
        if self._mab is None:
            alpha = ALPHA if self._epsilon is None else PRIVATE_ALPHA
            self._mab = MAB(wanted, LearningPolicy.LinUCB(alpha=alpha, l2_lambda=1.0), seed=seed)
            if self._epsilon is not None:
                self._choice = PrivateChoice(self._epsilon, seed=seed)
            return
        for item in set(self._mab.arms).difference(wanted):
            self._mab.remove_arm(item)
        for item in sorted(set(wanted).difference(self._mab.arms)):
            self._mab.add_arm(item)

    def _choose(self, contexts: Floats, offered: Places, seed: int) -> Places:
        if not self._fitted:  # it cannot predict yet
            return seeded("linucb", seed).choice(offered, len(contexts))
        if self._choice is None:
            found = self._mab.predict(contexts)
            return np.array(found if isinstance(found, list) else [found], dtype=np.intp)
        found = self._mab.predict_expectations(contexts)
        each = found if isinstance(found, list) else [found]
        order = offered.tolist()
        estimates = np.array([[one[item] for item in order] for one in each])
        self._choice.renew(estimates, offered)
        columns, _ = self._choice.draw(estimates)
        return offered[columns]
