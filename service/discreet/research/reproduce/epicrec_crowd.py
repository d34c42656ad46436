"""The people of an evaluation of profile perturbation, and the servers that meet them.

A crowd is drawn from a data set. Of each person's items a fifth is held out; the rest is the
history. A server has what the crowd sent, and nobody's history. It predicts the ratings of what was
held out, and recommends ten items, from which the device removes those in the true history. The
paper leaves open which ratings travel with perturbed items, so ratings are predicted in two ways:

- from sets alone, which is what a hub sends (`epicrec_server`);
- with ratings: an item that its sender rated carries that rating (`epicrec_ratings`).

What is public, popularity and mean ratings, is that of the people who are not in the crowd.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from discreet.errors import InvalidArgument
from discreet.families.collaborative.on_device.catalogue import (
    Catalogue,
    Concerns,
    Level,
    scope_of,
)
from discreet.families.collaborative.on_device.expectation import Expectation
from discreet.research.reproduce.epicrec_ratings import predict_by_factors, public_means
from discreet.research.reproduce.epicrec_server import OrdinaryRecommender, RatedPairs, ndcg
from discreet.research.worlds.environments import seeded
from discreet.research.worlds.rated import RatedCatalogue, crowd, movielens, yelp

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FOLDS = 10
OPEN, PROTECTED, HIDDEN = range(3)
_LEAST_RATINGS = 5


@lru_cache(maxsize=1)
def load(dataset: str, folder: Path | None) -> RatedCatalogue:
    """Return a data set by its name."""
    if dataset == "synthetic":
        return crowd()
    if folder is None:
        raise InvalidArgument("data", "must be a folder for this data set")
    return {"movielens": movielens, "yelp": yelp}[dataset](folder)


@dataclass(frozen=True, slots=True, eq=False)
class HubOwner:
    """One of the crowd; `kinds` of what was held out: open, protected or hidden."""

    history: Integers
    names: frozenset[str]
    concerns: Concerns
    kinds: Integers
    luck: int


@dataclass(frozen=True, slots=True, eq=False)
class HubCrowd:
    """The people of one run, what is known of them, what is asked about them, and their tenths."""

    catalogue: Catalogue
    owners: tuple[HubOwner, ...]
    known: RatedPairs
    asked: RatedPairs
    parts: Integers
    means: Floats
    expectation: Expectation

    def sent(self, profiles: list[Integers]) -> csr_matrix:
        """Return profiles as a matrix of people by items."""
        rows = np.repeat(np.arange(len(profiles)), [len(one) for one in profiles])
        columns = np.concatenate([*profiles, np.zeros(0, dtype=np.int64)])
        shape = (len(profiles), len(self.catalogue.items))
        return csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)

    def judge(self, profiles: list[Integers]) -> "ServerErrors":
        """Return what a server makes of what everybody sent."""
        sent = self.sent(profiles)
        counts = np.bincount(self.known.columns, minlength=len(self.means))
        server = OrdinaryRecommender(sent, popularity=counts.astype(np.float64))
        by_sets = server.predict(self.known, self.asked, self.parts)
        with_ratings = predict_by_factors(
            self._with_ratings(sent), self.asked, self.means, people=len(self.owners)
        )
        gains = np.zeros(len(self.owners))
        ends = np.searchsorted(self.asked.rows, np.arange(len(self.owners) + 1))
        for at, owner in enumerate(self.owners):
            ranking = server.best(profiles[at], without=owner.history)
            gains[at] = ndcg(ranking, self.asked.columns[ends[at] : ends[at + 1]])
        return ServerErrors(
            sets=np.abs(by_sets - self.asked.stars),
            ratings=np.abs(with_ratings - self.asked.stars),
            gains=gains,
        )

    def _with_ratings(self, sent: csr_matrix) -> RatedPairs:
        """Return what was sent with its ratings: the sender's own, or the public mean."""
        if not sent.nnz:
            return self.known.where(np.zeros(len(self.known.rows), dtype=np.bool_))
        known = self.known
        # Stars are at least 1, so 0 stands for an item that its sender has not rated.
        rated = csr_matrix((known.stars, (known.rows, known.columns)), shape=sent.shape)
        pairs = sent.tocoo()
        stars: Floats = np.asarray(rated[pairs.row, pairs.col], dtype=np.float64).reshape(-1)
        columns = pairs.col.astype(np.int64)
        own = np.where(stars > 0, stars, self.means[columns])
        return RatedPairs(pairs.row.astype(np.int64), columns, own)


@dataclass(frozen=True, slots=True, eq=False)
class ServerErrors:
    """Errors of the predicted ratings, in both readings, and each person's NDCG@10."""

    sets: Floats
    ratings: Floats
    gains: Floats


@lru_cache(maxsize=1)
def crowd_of(dataset: str, folder: Path | None, people: int, seed: int) -> HubCrowd:
    """Draw people from a data set, at most three quarters of those with enough ratings."""
    rated = load(dataset, folder)
    catalogue = rated.catalogue
    rng = seeded("hub owners", seed)
    able = np.flatnonzero(np.bincount(rated.rows, minlength=rated.people) >= _LEAST_RATINGS)
    chosen = rng.permutation(able)[: min(people, 3 * len(able) // 4)]
    order = np.argsort(rated.rows, kind="stable")
    ends = np.searchsorted(rated.rows[order], np.arange(rated.people + 1))
    owners: list[HubOwner] = []
    known: list[Integers] = []
    asked: list[Integers] = []
    for who in chosen:
        entries = rng.permutation(order[ends[who] : ends[who + 1]])
        count = max(1, len(entries) // 5)
        known.append(entries[count:])
        asked.append(entries[:count])
        concerns = random_concerns(catalogue, rng)
        history = rated.columns[entries[count:]]
        owners.append(
            HubOwner(
                history=history,
                names=frozenset(catalogue.items[at] for at in history),
                concerns=concerns,
                kinds=_kinds(catalogue, concerns, rated.columns[entries[:count]]),
                luck=int(rng.integers(2**62)),
            )
        )
    others = ~np.isin(rated.rows, chosen)
    popularity = np.bincount(rated.columns[others], minlength=len(catalogue.items))
    return HubCrowd(
        catalogue=catalogue,
        owners=tuple(owners),
        known=_pairs(rated, known),
        asked=_pairs(rated, asked),
        parts=rng.permutation(len(owners)) % FOLDS,
        means=public_means(
            RatedPairs(rated.rows[others], rated.columns[others], rated.stars[others]),
            len(catalogue.items),
        ),
        expectation=Expectation.of(
            catalogue=catalogue,
            popularity=dict(zip(catalogue.items, popularity.tolist(), strict=True)),
            typical=float(others.sum() / len(np.unique(rated.rows[others]))),
        ),
    )


def random_concerns(catalogue: Catalogue, rng: np.random.Generator) -> Concerns:
    """Return a level for each category, at random, with something perturbed among them."""
    levels = tuple(Level)
    while True:
        drawn = rng.integers(0, len(levels), len(catalogue.categories))
        chosen = {name: levels[at] for name, at in zip(catalogue.categories, drawn, strict=True)}
        concerns = Concerns.choose(chosen)
        if len(scope_of(catalogue, concerns).counted):
            return concerns


def _kinds(catalogue: Catalogue, concerns: Concerns, columns: Integers) -> Integers:
    scope = scope_of(catalogue, concerns)
    by_group = np.full(len(catalogue.members), HIDDEN, dtype=np.int64)
    by_group[scope.protected] = PROTECTED
    by_group[scope.open] = OPEN
    return by_group[[catalogue.group_of[catalogue.items[at]] for at in columns]]


def _pairs(rated: RatedCatalogue, entries: list[Integers]) -> RatedPairs:
    rows = np.repeat(np.arange(len(entries)), [len(one) for one in entries])
    together = np.concatenate(entries)
    return RatedPairs(rows, rated.columns[together], rated.stars[together])


@lru_cache(maxsize=1)
def raw_errors(dataset: str, folder: Path | None, people: int, seed: int) -> ServerErrors:
    """Return the errors where everybody sends the raw history."""
    among = crowd_of(dataset, folder, people, seed)
    return among.judge([owner.history for owner in among.owners])
