"""An ordinary recommender for experiments: it learns from some people and answers others.

Those it learns from have given it everything, items and ratings. The others send a set of items
and nothing else, raw or perturbed; it does not know which. So does a hub meet an existing service.

- Ranking: the leading singular vectors V of the people-by-items matrix; a profile x scores the
  items by x V V' (PureSVD; Cremonesi, Koren and Turrin, RecSys 2010).
- Ratings: an item's mean, shrunk, plus what the profile's coordinates x V / sqrt(|x|) tell about
  this person and this item, by ridge regression. Whoever rated an item has it in the profile, and
  whoever is to be predicted has not; so in learning, an item is taken out of the profile that is
  to predict it. A profile that says nothing gets the item's mean.

Everything is linear algebra over all people at once, and the same for the same input.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import svds

from discreet.errors import InvalidArgument
from discreet.research.worlds.rated import RatedCatalogue

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_FACTORS = 48
_SUPPORT = 16
"""People, or items, for each factor: a small crowd does not bear many."""
_MEAN_WEIGHT = 10.0
_PERSON_WEIGHT = 3.0
_ITEM_WEIGHT = 20.0


@dataclass(frozen=True, slots=True, eq=False)
class OrdinaryRecommender:
    """What was learned; profiles are columns of items, each once."""

    vectors: Floats
    means: Floats
    centre: Floats
    person: Floats
    item: Floats
    lowest: float
    highest: float

    @classmethod
    def learn(cls, rated: RatedCatalogue, people: Flags) -> "OrdinaryRecommender":
        """Learn from the ratings of the people who are marked."""
        chosen = people[rated.rows]
        rows, columns, stars = rated.rows[chosen], rated.columns[chosen], rated.stars[chosen]
        if not len(stars):
            raise InvalidArgument("people", "must mark at least one person")
        size = len(rated.catalogue.items)
        shape = (rated.people, size)
        seen = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)
        vectors = _leading(seen)
        average = float(stars.mean())
        counts = np.bincount(columns, minlength=size)
        means = average + np.bincount(columns, stars - average, size) / (counts + _MEAN_WEIGHT)
        lengths = np.bincount(rows, minlength=rated.people)
        sums = np.asarray(seen @ vectors)
        known = lengths > 0
        centre = (sums[known] / np.sqrt(lengths[known])[:, None]).mean(axis=0)
        left = np.maximum(lengths[rows] - 1, 1)
        features = (sums[rows] - vectors[columns]) / np.sqrt(left)[:, None] - centre
        surplus = stars - means[columns]
        person = _ridge(features, surplus, _PERSON_WEIGHT)
        surplus = surplus - features @ person
        item = np.zeros((size, vectors.shape[1]))
        order = np.argsort(columns, kind="stable")
        ends = np.cumsum(counts)
        for at in np.flatnonzero(counts):
            mine = order[ends[at] - counts[at] : ends[at]]
            item[at] = _ridge(features[mine], surplus[mine], _ITEM_WEIGHT)
        return cls(
            vectors=vectors,
            means=means,
            centre=centre,
            person=person,
            item=item,
            lowest=float(stars.min()),
            highest=float(stars.max()),
        )

    def ratings(self, profile: Integers, columns: Integers) -> Floats:
        """Predict how the owner of the profile would rate these items."""
        expected = self.means[columns]
        if len(profile):
            feature = self.vectors[profile].sum(axis=0) / np.sqrt(len(profile)) - self.centre
            expected = expected + (self.item[columns] + self.person) @ feature
        clipped: Floats = np.clip(expected, self.lowest, self.highest)
        return clipped

    def best(self, profile: Integers, *, without: Integers, count: int = 10) -> Integers:
        """Return the items that suit the profile best, without some; no profile: the popular."""
        scores = self.vectors @ (self.vectors[profile].sum(axis=0) if len(profile) else self.centre)
        scores[without] = -np.inf
        top = np.argpartition(-scores, count)[:count]
        ordered: Integers = top[np.argsort(-scores[top], kind="stable")]
        return ordered


def ndcg(ranking: Integers, wanted: Integers) -> float:
    """Return the discounted gain of a ranking over the best that was possible."""
    gains = 1 / np.log2(np.arange(2, len(ranking) + 2))
    possible = float(gains[: len(wanted)].sum())
    return float(gains[np.isin(ranking, wanted)].sum()) / possible if possible else 0.0


def _leading(seen: csr_matrix) -> Floats:
    factors = max(1, min(_FACTORS, min(seen.shape) // _SUPPORT))
    _, _, found = svds(seen, k=factors, v0=np.ones(min(seen.shape)))
    vectors: Floats = np.ascontiguousarray(found.T)
    return vectors


def _ridge(features: Floats, targets: Floats, weight: float) -> Floats:
    gram = features.T @ features
    gram[np.diag_indices_from(gram)] += weight
    return np.linalg.solve(gram, features.T @ targets).astype(np.float64)
