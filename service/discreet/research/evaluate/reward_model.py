"""A guess of every item's reward, for the doubly robust estimate: ridge regression, an item each.

Whatever the guess, the estimate is unbiased as long as the guess for a row was made without it; a
good one makes the interval shorter. So the model is fitted at a few places of the log, each twice
as far as the one before, and rows are guessed by the last fit before them.

An item's mean is drawn to the mean of all, by as much as ten rows are worth; its slopes to none.
"""

from dataclasses import dataclass

import numpy as np

from discreet.research.evaluate.logs import EvaluationLog, Places
from discreet.research.worlds.environments import Floats

FIRST_FIT = 500
MOST_NUMBERS = 30_000_000
"""Numbers in the products of all items; beyond that only items' means are fitted."""
_SHRINK = 10.0
_BLOCK = 4_096


@dataclass(frozen=True, slots=True, eq=False)
class RewardModel:
    """Fits by the row from which on they are used; a fit has an intercept and slopes by item."""

    starts: tuple[int, ...]
    fits: tuple[Floats, ...]

    @classmethod
    def fitted(cls, log: EvaluationLog) -> "RewardModel":
        """Fit to a log, again and again."""
        items = len(log.items)
        size = 1 + log.features(slice(0, 1)).shape[1]
        if items * size**2 > MOST_NUMBERS:
            size = 1
        products = np.zeros((items, size, size))
        moments = np.zeros((items, size))
        starts, fits = [0], [np.zeros((items, size))]
        fits[0][:, 0] = 0.5
        done, mark = 0, FIRST_FIT
        while done < len(log):
            rows = slice(done, min(done + _BLOCK, mark, len(log)))
            design = np.ones((rows.stop - rows.start, size))
            if size > 1:
                design[:, 1:] = log.features(rows)
            _add(products, moments, design, log.actions[rows], log.rewards[rows])
            done = rows.stop
            if done == mark:
                starts.append(done)
                fits.append(_solved(products, moments))
                mark *= 2
        return cls(tuple(starts), tuple(fits))

    def guess(self, log: EvaluationLog, rows: slice) -> Floats:
        """Return every item's guessed reward for each row."""
        which = np.searchsorted(self.starts, np.arange(rows.start, rows.stop), side="right") - 1
        size = self.fits[0].shape[1]
        design = np.ones((rows.stop - rows.start, size))
        if size > 1:
            design[:, 1:] = log.features(rows)
        guesses = np.empty((len(design), len(log.items)))
        for one in np.unique(which):
            these = which == one
            guesses[these] = design[these] @ self.fits[one].T
        return np.clip(guesses, 0.0, 1.0, out=guesses)


def _add(
    products: Floats, moments: Floats, design: Floats, actions: Places, rewards: Floats
) -> None:
    order = np.argsort(actions, kind="stable")
    shown, begins = np.unique(actions[order], return_index=True)
    for item, rows in zip(shown, np.split(order, begins[1:]), strict=True):
        few = design[rows]
        products[item] += few.T @ few
        moments[item] += few.T @ rewards[rows]


def _solved(products: Floats, moments: Floats) -> Floats:
    counts = products[:, 0, 0]
    mean = moments[:, 0].sum() / max(counts.sum(), 1.0)
    size = products.shape[1]
    prior = np.eye(size) * _SHRINK
    known = products + prior
    wanted = moments.copy()
    wanted[:, 0] += _SHRINK * mean
    return np.asarray(np.linalg.solve(known, wanted[..., None])[..., 0], dtype=np.float64)
