"""What recommenders are compared with: uniform, most popular, and whatever wrote the log."""

import numpy as np
import numpy.typing as npt

from discreet.research.evaluate.estimators import PolicyResult, PolicyTerms, replay
from discreet.research.evaluate.logs import EvaluationLog
from discreet.research.evaluate.reward_model import RewardModel
from discreet.research.worlds.environments import Floats, seeded

UNIFORM = "uniform"
POPULAR = "most popular"
LOGGED = "the log itself"
BLOCK = 1_000
"""Rows after which the most popular item is looked for again."""
_SHRINK = 10.0


def uniform(log: EvaluationLog, model: RewardModel) -> PolicyResult:
    """Return what showing any candidate, all equally likely, would have earned."""
    made = TermsBuilder(log, model)
    for rows in blocks(len(log)):
        available = log.available(rows)
        made.add(rows, available / available.sum(axis=1, keepdims=True))
    return PolicyResult.of(UNIFORM, made.terms(), log.clients)


def most_popular(log: EvaluationLog, model: RewardModel, seed: int = 0) -> PolicyResult:
    """Return what always showing the item with the best mean reward so far would have earned.

    Means are by inverse propensities, from the rows before, and drawn to the mean of all items by
    as much as ten rows are worth.
    """
    made = TermsBuilder(log, model)
    weights, rewards = np.zeros((2, len(log.items)))
    for rows in blocks(len(log)):
        overall = rewards.sum() / max(weights.sum(), 1e-12)
        # Ten rows, in units of weight.
        shrink = _SHRINK * float(1.0 / log.propensities[rows].mean())
        means = (rewards + shrink * overall) / (weights + shrink)
        law = np.where(log.available(rows), means, -1.0)
        best = law.argmax(axis=1)
        law[:] = 0.0
        law[np.arange(len(best)), best] = 1.0
        made.add(rows, law)
        inverse = 1.0 / log.propensities[rows]
        weights += np.bincount(log.actions[rows], inverse, len(log.items))
        rewards += np.bincount(log.actions[rows], inverse * log.rewards[rows], len(log.items))
    terms = made.terms()
    counts = (terms.weights > 0) & accepted(log, seed)
    return PolicyResult.of(
        POPULAR,
        terms,
        log.clients,
        replay=replay(log.rewards, counts, log.clients),
        counted=int(counts.sum()),
    )


def logged(log: EvaluationLog) -> PolicyResult:
    """Return what the log earned: its mean reward, by every estimator."""
    ones = np.ones(len(log))
    terms = PolicyTerms(ones, log.rewards, np.zeros(len(log)), np.zeros(len(log)))
    replayed = replay(log.rewards, ones > 0, log.clients)
    return PolicyResult.of(LOGGED, terms, log.clients, replay=replayed, counted=len(log))


def accepted(log: EvaluationLog, seed: int) -> npt.NDArray[np.bool_]:
    """Return which rows a replay may count, so that those look uniformly random."""
    kept: npt.NDArray[np.bool_] = (
        seeded("evaluate", seed).random(len(log)) < log.propensities.min() / log.propensities
    )
    return kept


def blocks(count: int, size: int = BLOCK) -> list[slice]:
    """Return the rows in pieces."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


class TermsBuilder:
    """Gathers a policy's terms, piece by piece, from its probabilities."""

    def __init__(self, log: EvaluationLog, model: RewardModel) -> None:
        self._log = log
        self._model = model
        self._weights, self._expected, self._guessed = np.zeros((3, len(log)))
        self._done = 0

    def add(self, rows: slice, law: Floats) -> None:
        """Take the probabilities of every item (a column each) for the next rows."""
        log = self._log
        here = np.arange(rows.stop - rows.start)
        guesses = self._model.guess(log, rows)
        self._weights[rows] = law[here, log.actions[rows]] / log.propensities[rows]
        self._expected[rows] = np.einsum("ik,ik->i", law, guesses)
        self._guessed[rows] = guesses[here, log.actions[rows]]
        self._done = rows.stop

    def terms(self) -> PolicyTerms:
        """Return what has gathered."""
        rows = slice(0, self._done)
        return PolicyTerms(
            self._weights[rows], self._log.rewards[rows], self._expected[rows], self._guessed[rows]
        )
