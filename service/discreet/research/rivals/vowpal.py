"""Vowpal Wabbit's contextual bandit: `cb_explore_adf` with SquareCB (Foster and Rakhlin 2020).

Every number of the context is a feature that interacts with the item (`-q UA`; alone it would tell
nothing about items), the estimator is importance weighted regression (`--cb_type mtr`), and
learning is online, after every visit. Tried in bumps, logistic-8 and logistic-20: gamma scales of
3, 10 (the default), 30, 100, 500 and 1,000, learning rates of 0.1, 0.5 (the default) and 2, slower
decay, COIN, and quadratic interactions of the context. `SETTINGS` did best over the three.

Behind our private choice it is the same regressor without an exploration of its own (`--cb_adf`):
its estimates are drawn from privately, in batches of 100 visits, and it learns with the propensity
of that draw.
"""

from typing import Any

import numpy as np

from discreet.research.rivals.private_choice import PrivateChoice
from discreet.research.suite.stretches import Places, Stretch
from discreet.research.worlds.environments import Floats, seeded

SHARED_SETTINGS = "--cb_type mtr -q UA --ignore_linear U -l 2 -b 20 --quiet"
SETTINGS = f"--cb_explore_adf --squarecb --gamma_scale 10 {SHARED_SETTINGS}"
PRIVATE_SETTINGS = f"--cb_adf {SHARED_SETTINGS}"
BATCH = 100


class VowpalLearner:
    """Vowpal Wabbit; with an epsilon, behind our private choice."""

    def __init__(self, epsilon: float | None) -> None:
        self._epsilon = epsilon
        self._choice: PrivateChoice | None = None
        self._workspace: Any = None
        self._rng: np.random.Generator | None = None

    async def play(self, stretch: Stretch, *, seed: int) -> Places:
        """Return a place for every visit."""
        if self._workspace is None:
            from vowpalwabbit import Workspace  # an optional import

            settings = SETTINGS if self._epsilon is None else PRIVATE_SETTINGS
            self._workspace = Workspace(f"{settings} --random_seed {seed + 1}")
            self._rng = seeded("vowpal", seed)
            if self._epsilon is not None:
                self._choice = PrivateChoice(self._epsilon, seed=seed)
        shared = [_shared(context) for context in centred(stretch.contexts)]
        actions = [f"|A item{place}" for place in stretch.offered.tolist()]
        play = self._online if self._choice is None else self._batched
        columns = play(stretch, shared, actions)
        return stretch.offered[columns]

    async def close(self) -> None:
        """Let go of the workspace."""
        if self._workspace is not None:
            self._workspace.finish()

    def _online(self, stretch: Stretch, shared: list[str], actions: list[str]) -> Places:
        assert self._rng is not None
        columns = np.empty(len(shared), dtype=np.intp)
        luck = self._rng.random(len(shared))
        for row, line in enumerate(shared):
            law = np.cumsum(self._workspace.predict([line, *actions]))
            column = min(int(np.searchsorted(law, luck[row] * law[-1])), len(actions) - 1)
            columns[row] = column
            share = float(law[column] - (law[column - 1] if column else 0.0)) / float(law[-1])
            places = np.array([row]), stretch.offered[[column]]
            self._learn(line, actions, column, share, float(stretch.rewards(*places)[0]))
        return columns

    def _batched(self, stretch: Stretch, shared: list[str], actions: list[str]) -> Places:
        assert self._choice is not None
        columns = np.empty(len(shared), dtype=np.intp)
        for start in range(0, len(shared), BATCH):
            rows = np.arange(start, min(start + BATCH, len(shared)))
            # What it predicts is a cost for every action: minus the reward.
            costs = [self._workspace.predict([shared[row], *actions]) for row in rows]
            estimates: Floats = -np.array(costs, dtype=np.float64)
            self._choice.renew(estimates, stretch.offered)
            columns[rows], shares = self._choice.draw(estimates)
            rewards = stretch.rewards(rows, stretch.offered[columns[rows]])
            for row, share, reward in zip(rows, shares.tolist(), rewards.tolist(), strict=True):
                self._learn(shared[row], actions, int(columns[row]), share, reward)
        return columns

    def _learn(
        self, shared: str, actions: list[str], column: int, share: float, reward: float
    ) -> None:
        labelled = list(actions)
        labelled[column] = f"{column}:{-reward}:{share:.6g} {actions[column]}"
        self._workspace.learn([shared, *labelled])


def centred(contexts: Floats) -> Floats:
    """Return contexts around 0, which a linear learner prefers; sparse ones stay sparse."""
    sparse = np.count_nonzero(contexts) < 0.5 * contexts.size
    return contexts if sparse else contexts - 0.5


def _shared(context: Floats) -> str:
    """Return the context as Vowpal Wabbit reads it: zeros are left out."""
    present = np.flatnonzero(context)
    values = zip(present.tolist(), context[present].tolist(), strict=True)
    return "shared |U " + " ".join(f"f{axis}:{value:.5g}" for axis, value in values)
