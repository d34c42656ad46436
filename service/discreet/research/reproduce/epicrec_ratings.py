"""Collaborative filtering over ratings, for the reading in which ratings travel with the items.

The paper's server predicts ratings by factorising what it was sent (stochastic gradient descent,
its section 6.1), and the paper does not say which rating a perturbed item carries. Here an item
that its sender rated carries that rating, and any other one its public mean, which misleads least:
it says that this person is like everybody.

Biases of people and items and a few factors are fitted to what the ratings differ from the public
means, by alternating ridge regression, which finds what gradient descent looks for and is the same
for the same input.
"""

import numpy as np
import numpy.typing as npt

from discreet.research.reproduce.epicrec_server import Floats, Integers, RatedPairs

_FACTORS = 6
_SWEEPS = 6
_BIAS_WEIGHT = 10.0
_FACTOR_WEIGHT = 20.0
_MEAN_WEIGHT = 10.0


def public_means(rated: RatedPairs, size: int) -> Floats:
    """Return the items' mean ratings, shrunk towards the overall mean."""
    average = float(rated.stars.mean())
    counts = np.bincount(rated.columns, minlength=size)
    surplus = np.bincount(rated.columns, rated.stars - average, size)
    means: Floats = average + surplus / (counts + _MEAN_WEIGHT)
    return means


def predict_by_factors(
    sent: RatedPairs, asked: RatedPairs, means: Floats, *, people: int
) -> Floats:
    """Predict ratings from those that everybody sent."""
    size = len(means)
    left = sent.stars - means[sent.columns]
    person, item = np.zeros(people), np.zeros(size)
    for _ in range(_SWEEPS):
        person = _biases(sent.rows, left - item[sent.columns], people)
        item = _biases(sent.columns, left - person[sent.rows], size)
    left = left - person[sent.rows] - item[sent.columns]
    rng = np.random.default_rng(0)
    items: Floats = rng.normal(scale=0.1, size=(size, _FACTORS))
    of_people: Floats = np.zeros((people, _FACTORS))
    for _ in range(_SWEEPS):
        of_people = _factors(sent.rows, items[sent.columns], left, people)
        items = _factors(sent.columns, of_people[sent.rows], left, size)
    predicted = means[asked.columns] + person[asked.rows] + item[asked.columns]
    predicted = predicted + (of_people[asked.rows] * items[asked.columns]).sum(axis=1)
    clipped: Floats = np.clip(predicted, 1.0, 5.0)
    return clipped


def _biases(owners: Integers, left: Floats, size: int) -> Floats:
    counts = np.bincount(owners, minlength=size)
    biases: Floats = np.bincount(owners, left, size) / (counts + _BIAS_WEIGHT)
    return biases


def _factors(owners: Integers, features: Floats, left: Floats, size: int) -> Floats:
    """Return one ridge regression for each owner, all at once."""
    width = features.shape[1]
    grams: npt.NDArray[np.float64] = np.empty((size, width, width))
    products: Floats = np.empty((size, width))
    for one in range(width):
        products[:, one] = np.bincount(owners, features[:, one] * left, size)
        for other in range(one + 1):
            both = np.bincount(owners, features[:, one] * features[:, other], size)
            grams[:, one, other] = grams[:, other, one] = both
    grams += _FACTOR_WEIGHT * np.eye(width)
    solved: Floats = np.linalg.solve(grams, products[:, :, None])[:, :, 0].astype(np.float64)
    return solved
