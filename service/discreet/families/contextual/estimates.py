"""From released sums to means, with what is not known about them.

The mean of item k for a context with row f is f.c_k. Items have something in common: all begin at
what is common to everybody (the rate, and how it depends on the context), and differ from it by
coefficients that are drawn from a normal distribution. How much items differ, in level and with the
context, is read off the released sums themselves (empirical Bayes): where contexts tell nothing,
the differences with the context shrink to nothing, and what is left is popularity.

Noise of a known variance is part of the likelihood, so that estimates are as cautious as the noise
demands. `fit_cells` and `fit_linear` have the mathematics of each space.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.families.choice import Floats, Slots

Groups = npt.NDArray[np.intp]

_ITERATIONS = 8
_BELIEF = 2.0
"""What is assumed about how much items differ counts as so many coefficients."""
_LEAST, _MOST = 1e-6, 1.0


WIDER = 4.0
"""By how much the fitted variances are widened for what is not known, where feedback is exact.
Means are not quite linear, nor as smooth as waves, and items of which little was shown tell little
about how much they differ: who is too sure too soon gives up an item for those to whom it has not
been shown."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Means are rows @ coefficients.T; their variances (rows @ mix)**2 @ spread.T, or the squared
    lengths of rows @ roots[:, item] where there are `roots`.

    `people` are rows that stand for those who come, with their `shares`; `known` is, for each
    item, what part of the first uncertainty about it is gone, in [0, 1]; `levels` is the standard
    error of its mean among all who come.
    """

    coefficients: Floats
    mix: Floats
    spread: Floats
    people: Floats
    shares: Floats
    known: Floats
    levels: Floats
    roots: Floats | None = None

    def means(self, rows: Floats, slots: Slots) -> Floats:
        """Return the expected reward of these items for these rows."""
        # einsum and not @: it must not wake BLAS's threads beside requests.
        return _product(rows, self.coefficients[slots])

    def deviations(self, rows: Floats, slots: Slots) -> Floats:
        """Return the standard error of each mean."""
        if self.roots is not None:
            roots = self.roots[:, slots]
            spreads = rows @ roots.reshape(len(roots), -1)
            spreads = spreads.reshape(len(rows), len(slots), -1)
            lengths: Floats = np.sqrt(np.einsum("nkj,nkj->nk", spreads, spreads))
            return lengths
        mixed = rows if self.mix.size == 0 else _product(rows, self.mix.T)
        errors: Floats = np.sqrt(np.maximum(_product(mixed * mixed, self.spread[slots]), 0.0))
        return errors


def _product(left: Floats, right: Floats) -> Floats:
    """Return left @ right.T."""
    result: Floats = left @ right.T
    return result


def empirical_bayes(
    precision: Floats, evidence: Floats, groups: Groups, assumed: Floats, start: Floats
) -> Floats:
    """Return the variance of the items' coefficients in every group, from these items.

    `precision` and `evidence` are those of the likelihood: the posterior has precision
    H + diag(1 / v) and mean (H + diag(1 / v))^-1 h. Fixed points of MacKay's update, which compares
    the squares of coefficients with how many of them are determined by data.
    """
    variances = start.copy()
    for _ in range(_ITERATIONS):
        inverse = 1.0 / variances[groups]
        covariance = np.linalg.inv(precision + np.diag(inverse))
        coefficients = np.einsum("kij,kj->ki", covariance, evidence)
        determined = 1.0 - np.einsum("kii->ki", covariance) * inverse
        for group in range(len(variances)):
            among = groups == group
            squares = float((coefficients[:, among] ** 2).sum())
            many = max(float(determined[:, among].sum()), 0.0)
            fitted = (squares + _BELIEF * assumed[group]) / (many + _BELIEF)
            variances[group] = min(max(fitted, _LEAST), _MOST)
    return variances


def common_part(precision: Floats, evidence: Floats, variances: Floats, prior: Floats) -> Floats:
    """Return what is common to items that differ from it with these variances.

    Every item says as much about it as its own coefficients are known, and never more than one item
    can: what is shown most is not what is common. `prior` is the precision of what was assumed.
    """
    size = len(variances)
    both = np.concatenate([precision, evidence[:, :, None]], axis=2)
    told = np.linalg.solve(np.eye(size) + precision * variances, both).sum(axis=0)
    found: Floats = np.linalg.solve(told[:, :size] + np.diag(prior), told[:, size])
    return found


def posterior(
    precision: Floats, evidence: Floats, groups: Groups, variances: Floats
) -> tuple[Floats, Floats]:
    """Return the coefficients of these items, and their covariance."""
    covariance: Floats = np.linalg.inv(precision + np.diag(1.0 / variances[groups])).astype(
        np.float64
    )
    coefficients: Floats = np.einsum("kij,kj->ki", covariance, evidence)
    return coefficients, covariance


def differing(assumed: Floats, rate: float) -> Floats:
    """Return how much items are assumed to differ around this rate; `assumed` is for a half.

    Tastes move odds by a factor, so means differ in proportion to rate (1 - rate).
    """
    scaled: Floats = assumed * (4.0 * rate * (1.0 - rate)) ** 2
    return scaled


def overall_rate(liked: float, shown: float, doubt: float) -> float:
    """Return the share that is liked, kept from 0 and 1; it starts at a half, for `doubt`."""
    return min(max((liked + 0.5 * doubt) / (max(shown, 0.0) + doubt), 0.002), 0.998)
