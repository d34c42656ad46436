"""People who rated the items of a catalogue: MovieLens-1M, the Yelp graph, a synthetic crowd.

The files are read from a folder that has them; nothing of them is part of Discreet.

- MovieLens-1M: 18 genres, of which a film has up to six.
- The Yelp graph (16,239 people, 14,284 businesses, 511 anonymous categories). The paper's Yelp had
  21 categories, so the 21 with the most businesses are kept, and the businesses that have one.
- The crowd: everybody likes some categories more than others and rates accordingly; items are
  met in proportion to a popularity.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.families.collaborative.on_device.catalogue import Catalogue
from discreet.research.worlds.environments import seeded
from discreet.research.worlds.files import read_text
from discreet.research.worlds.movielens import FOLDER, read_fields, read_ratings

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

YELP_CATEGORIES = 21


@dataclass(frozen=True, slots=True, eq=False)
class RatedCatalogue:
    """One entry of `rows`, `columns` and `stars` for each rating: who, of which item, how many."""

    name: str
    catalogue: Catalogue
    rows: Integers
    columns: Integers
    stars: Floats

    @property
    def people(self) -> int:
        """Return how many people there are."""
        return int(self.rows.max()) + 1

    @property
    def typical(self) -> int:
        """Return the mean number of items that a person rated."""
        return round(len(self.rows) / self.people)


def movielens(folder: Path) -> RatedCatalogue:
    """Read MovieLens-1M from `ml-1m` in the folder."""
    films: dict[str, tuple[str, ...]] = {}
    for _, fields in read_fields(folder / FOLDER / "movies.dat", least=3):
        films[fields[0]] = tuple(fields[2].split("|"))
    return _rated("movielens", films, read_ratings(folder / FOLDER))


def yelp(folder: Path) -> RatedCatalogue:
    """Read the Yelp graph from `yelp-hin` in the folder."""
    pairs = _table(folder / "yelp-hin" / "business_category.dat.gz")
    numbers, counts = np.unique(pairs[:, 1], return_counts=True)
    largest = set(numbers[np.argsort(-counts, kind="stable")][:YELP_CATEGORIES].tolist())
    businesses: dict[str, tuple[str, ...]] = {}
    for business, category in pairs[:, :2].tolist():
        if category in largest:
            name = str(business)
            businesses[name] = (*businesses.get(name, ()), f"category {category}")
    return _rated("yelp", businesses, _table(folder / "yelp-hin" / "user_business.dat.gz"))


def crowd(
    *, people: int = 400, items: int = 600, categories: int = 12, seed: int = 0
) -> RatedCatalogue:
    """Return a synthetic crowd, for where no data set is at hand."""
    rng = seeded("rated crowd", seed)
    names = [f"category {at:02}" for at in range(categories)]
    weights: Floats = 1 / np.arange(2, categories + 2)
    weights /= weights.sum()
    incidence = np.zeros((items, categories))
    for at in range(items):
        width = int(rng.choice([1, 2, 3, 4, 5], p=[0.4, 0.3, 0.15, 0.1, 0.05]))
        # Items of many categories are found among the large ones, as epics are among films.
        likely = np.where(np.arange(categories) < categories // 2, weights, 0.0)
        likely = weights if width < 4 else likely / likely.sum()
        incidence[at, rng.choice(categories, width, replace=False, p=likely)] = 1.0
    catalogue = {
        f"item {at:03}": tuple(names[column] for column in np.flatnonzero(row))
        for at, row in enumerate(incidence)
    }
    popularity = 1 / (40 + rng.permutation(items))
    tastes = rng.standard_gamma(0.2, (people, categories))
    fondness = tastes @ incidence.T / incidence.sum(axis=1)
    quality = rng.uniform(-1, 1, items)
    ratings = []
    for person in range(people):
        chances = popularity * (0.01 + fondness[person])
        size = int(rng.integers(20, 121))
        met = rng.choice(items, size, replace=False, p=chances / chances.sum())
        wobble = rng.uniform(-1, 1, size)
        stars = 3 + np.tanh(fondness[person, met] - 0.3) + quality[met] + wobble
        for item, star in zip(met, np.clip(np.rint(stars), 1, 5), strict=True):
            ratings.append((person, item, star))
    table = np.array(ratings)
    return RatedCatalogue(
        name="synthetic",
        catalogue=Catalogue.of(catalogue),
        rows=table[:, 0].astype(np.int64),
        columns=table[:, 1].astype(np.int64),
        stars=table[:, 2],
    )


def _rated(name: str, items: dict[str, tuple[str, ...]], table: Integers) -> RatedCatalogue:
    """Put people and items in order; ratings of items without a category are left out."""
    column_of = {int(item): at for at, item in enumerate(items)}
    columns = np.array([column_of.get(item, -1) for item in table[:, 1].tolist()])
    known = columns >= 0
    _, rows = np.unique(table[known, 0], return_inverse=True)
    return RatedCatalogue(
        name=name,
        catalogue=Catalogue.of(items),
        rows=rows.reshape(-1).astype(np.int64),
        columns=columns[known],
        stars=table[known, 2].astype(np.float64),
    )


def _table(path: Path) -> Integers:
    """Read lines of three integers."""
    text = read_text(path)
    try:
        return np.array(text.split(), dtype=np.int64).reshape(-1, 3)
    except ValueError:
        raise InvalidArgument("data", f"{path.name}: not lines of three integers") from None
