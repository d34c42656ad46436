"""An ordinary recommender for experiments, which has nothing but what everybody sent, and ratings.

What people sent is a set of items each, raw or perturbed; the server does not know which. Ratings
are no part of what the paper perturbs (its section 3.2), and without them no rating could be
predicted, so those of the people who are learned from are given to it as they are.

- Ranking: the leading singular vectors V of what everybody sent; a profile x scores the items by
  x V V' (PureSVD; Cremonesi, Koren and Turrin, RecSys 2010). Where nobody sent anything, items
  rank by their number of ratings.
- Ratings: an item's mean, shrunk, plus what the profile's coordinates x V / sqrt(|x|) tell about
  this person and this item, by ridge regression. An item is taken out of the profile that is to
  predict it, in learning and in predicting. A profile that says nothing gets the item's mean. How
  far profiles are trusted at all is chosen by how well they predict known ratings of others.

Predictions are cross-validated over people: a tenth's ratings are predicted from those of the
other nine. Everything is linear algebra, and the same for the same input.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import svds

from discreet.errors import InvalidArgument

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_FACTORS = 24
_SUPPORT = 16
"""People, or items, for each factor: a small crowd does not bear many."""
_MEAN_WEIGHT = 10.0
_PERSON_WEIGHT = 3.0
_ITEM_WEIGHT = 20.0
_CAUTIONS = (1.0, 5.0, 25.0, 1e3, 1e6)
"""Factors for both weights; with the last one, profiles hardly count."""
_TRIED_ON = 3
"""Parts of the people on whose known ratings the caution is chosen."""


@dataclass(frozen=True, slots=True, eq=False)
class RatedPairs:
    """Ratings: by whom, of which item, how many stars."""

    rows: Integers
    columns: Integers
    stars: Floats

    def where(self, chosen: npt.NDArray[np.bool_]) -> "RatedPairs":
        """Return those that are marked."""
        return RatedPairs(self.rows[chosen], self.columns[chosen], self.stars[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class _ItemSums:
    """What regression needs to know of the ratings of each item; a part can be taken away."""

    counts: Floats
    stars: Floats
    features: Floats
    products: Floats
    grams: Floats

    def __sub__(self, part: "_ItemSums") -> "_ItemSums":
        return _ItemSums(
            self.counts - part.counts,
            self.stars - part.stars,
            self.features - part.features,
            self.products - part.products,
            self.grams - part.grams,
        )


class OrdinaryRecommender:
    """The server of a crowd, each of whom sent one profile: a row of `sent`.

    It ranks by `popularity`, one number an item, where nobody sent anything.
    """

    def __init__(
        self, sent: csr_matrix, *, popularity: Floats | None = None, factors: int = _FACTORS
    ) -> None:
        self._sent = sent
        self._popularity = popularity
        self._vectors = _leading(sent, factors)
        self._sums: Floats = np.asarray(sent @ self._vectors)
        self._lengths: Floats = np.asarray(sent.sum(axis=1), dtype=np.float64).reshape(-1)
        known = self._lengths > 0
        self._centre: Floats = np.zeros(self._vectors.shape[1])
        if known.any():
            whole = self._sums[known] / np.sqrt(self._lengths[known])[:, None]
            self._centre = whole.mean(axis=0)

    def predict(self, known: RatedPairs, asked: RatedPairs, parts: Integers) -> Floats:
        """Predict what is asked, each part of the people from the ratings of the others."""
        if not len(known.stars):
            raise InvalidArgument("known", "must have at least one rating")
        features, wanted = self._features(known), self._features(asked)
        total = self._item_sums(known, features)
        rests: dict[int, _ItemSums] = {}
        missed = np.zeros(len(_CAUTIONS))
        every = np.unique(parts).tolist()
        for part in every[:_TRIED_ON]:
            mine = parts[known.rows] == part
            theirs = known.where(mine)
            rests[part] = total - self._item_sums(theirs, features[mine])
            for at, caution in enumerate(_CAUTIONS):
                guess = _regress(rests[part], theirs.columns, features[mine], caution)
                missed[at] += float(np.abs(guess - theirs.stars).sum())
        caution = _CAUTIONS[int(np.argmin(missed))]
        predicted: Floats = np.empty(len(asked.rows))
        for part in every:
            mine = parts[known.rows] == part
            rest = rests.pop(part, None)
            if rest is None:
                rest = total - self._item_sums(known.where(mine), features[mine])
            theirs_asked = parts[asked.rows] == part
            predicted[theirs_asked] = _regress(
                rest, asked.columns[theirs_asked], wanted[theirs_asked], caution
            )
        return np.clip(predicted, known.stars.min(), known.stars.max())

    def best(self, profile: Integers, *, without: Integers, size: int = 10) -> Integers:
        """Return the items that suit a profile best, without some; no profile: the popular."""
        if self._popularity is not None and not self._sent.nnz:
            scores = self._popularity.copy()
        else:
            taste = self._vectors[profile].sum(axis=0) if len(profile) else self._centre
            scores = self._vectors @ taste
        scores[without] = -np.inf
        top = np.argpartition(-scores, size)[:size]
        ordered: Integers = top[np.argsort(-scores[top], kind="stable")]
        return ordered

    def _features(self, pairs: RatedPairs) -> Floats:
        inside: Floats = np.asarray(
            self._sent[pairs.rows, pairs.columns], dtype=np.float64
        ).reshape(-1)
        left = self._lengths[pairs.rows] - inside
        sums = self._sums[pairs.rows] - inside[:, None] * self._vectors[pairs.columns]
        features: Floats = sums / np.sqrt(np.maximum(left, 1))[:, None] - self._centre
        features[left <= 0] = 0.0
        return features

    def _item_sums(self, pairs: RatedPairs, features: Floats) -> _ItemSums:
        size, width = self._vectors.shape
        order = np.argsort(pairs.columns, kind="stable")
        columns, sorted_features = pairs.columns[order], features[order]
        weighted = sorted_features * pairs.stars[order, None]
        counts = np.bincount(columns, minlength=size)
        ends = np.cumsum(counts)
        totals = np.zeros((size, width))
        products = np.zeros((size, width))
        grams = np.zeros((size, width, width))
        for at in np.flatnonzero(counts):
            mine = slice(ends[at] - counts[at], ends[at])
            totals[at] = sorted_features[mine].sum(axis=0)
            products[at] = weighted[mine].sum(axis=0)
            grams[at] = sorted_features[mine].T @ sorted_features[mine]
        stars: Floats = np.bincount(pairs.columns, pairs.stars, size).astype(np.float64)
        return _ItemSums(counts.astype(np.float64), stars, totals, products, grams)


def _regress(sums: _ItemSums, columns: Integers, features: Floats, caution: float) -> Floats:
    average = sums.stars.sum() / sums.counts.sum()
    means = average + (sums.stars - average * sums.counts) / (sums.counts + _MEAN_WEIGHT)
    surplus = sums.products - means[:, None] * sums.features
    diagonal = caution * np.eye(features.shape[1])
    person = np.linalg.solve(
        sums.grams.sum(axis=0) + _PERSON_WEIGHT * diagonal, surplus.sum(axis=0)
    )
    distinct, back = np.unique(columns, return_inverse=True)
    grams = sums.grams[distinct]
    left = surplus[distinct] - grams @ person
    item = np.linalg.solve(grams + _ITEM_WEIGHT * diagonal, left[:, :, None])[:, :, 0]
    predicted: Floats = means[columns] + ((item[back] + person) * features).sum(axis=1)
    return predicted


def ndcg(ranking: Integers, wanted: Integers) -> float:
    """Return the discounted gain of a ranking over the best that was possible."""
    gains = 1 / np.log2(np.arange(2, len(ranking) + 2))
    possible = float(gains[: len(wanted)].sum())
    return float(gains[np.isin(ranking, wanted)].sum()) / possible if possible else 0.0


def _leading(sent: csr_matrix, most: int) -> Floats:
    if not sent.nnz:
        return np.zeros((sent.shape[1], 1))
    factors = max(1, min(most, min(sent.shape) // _SUPPORT))
    _, _, found = svds(sent, k=factors, v0=np.ones(min(sent.shape)))
    vectors: Floats = np.ascontiguousarray(found.T)
    return vectors
