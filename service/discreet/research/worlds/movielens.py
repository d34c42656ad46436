"""MovieLens-1M as a world, from a folder that has its files; nothing of it is part of Discreet.

Who comes: the 6,040 users, equally likely. A context is three numbers: gender, age group and
occupation code, each scaled to [0, 1] (occupation codes are in GroupLens' own order).

What they like: a film pleases when it is rated 4 or 5. The true mean of a film for a context is
taken to be the share of such ratings among the raters with that gender, age and occupation, shrunk
towards those of the gender and age (worth 20 ratings) and these towards all raters' (worth 20).
That is an empirical model, made from the very ratings, and the regret reported is exact for it. It
says how the algorithms compare on a world of MovieLens' shape, not what the users would have done.

The films are the most rated ones, dealt to the vendors in turn.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.research.worlds.contexts import Arrivals, block_rows
from discreet.research.worlds.environments import Floats, seeded
from discreet.research.worlds.files import read_text, subfolder

AGES = (1, 18, 25, 35, 45, 50, 56)
OCCUPATIONS = 21
LIKED = 4
FOLDER = "ml-1m"
_WEIGHT = 20.0

_RATINGS = ("ratings.dat", "ratings.dat.gz", "ratings_notime.dat.gz")


@dataclass(frozen=True, slots=True, eq=False)
class MovieLens:
    """The world: `people` has a row a user, `table` a row a user and a column a film."""

    catalogues: tuple[tuple[str, ...], ...]
    people: Floats
    table: Floats
    seed: int = 0
    dimensions: int = field(init=False, default=3)

    @classmethod
    def load(cls, folder: Path, seed: int = 0, *, vendors: int = 4, films: int = 20) -> "MovieLens":
        """Read `users.dat` and the ratings from a folder, or from `ml-1m` in it."""
        if films < vendors or vendors < 1:
            raise InvalidArgument("films", "there must be at least one film a vendor")
        catalogues, people, table = _model(folder, vendors, films)
        return cls(catalogues=catalogues, people=people, table=table, seed=seed)

    def arrivals(self, *, rounds: int, seed: int) -> Iterator[Arrivals]:
        """Yield the rounds; vendors and users are equally likely."""
        rng = seeded("arrivals", self.seed, seed)
        rows = block_rows(self)
        for start in range(0, rounds, rows):
            count = min(rows, rounds - start)
            who = rng.integers(0, len(self.people), count)
            yield Arrivals(
                contexts=self.people[who],
                vendors=rng.integers(0, len(self.catalogues), count),
                luck=rng.random(count),
                means=self.table[who],
            )


@lru_cache(maxsize=2)
def _model(
    folder: Path, vendors: int, films: int
) -> tuple[tuple[tuple[str, ...], ...], Floats, Floats]:
    folder = subfolder(folder, FOLDER)
    users, places = read_users(folder)
    ratings = read_ratings(folder)
    numbers, counts = np.unique(ratings[:, 1], return_counts=True)
    popular = numbers[np.argsort(-counts, kind="stable")][:films]
    # Dealt in turn, so that every vendor has its share of favourites.
    hands = [popular[vendor::vendors] for vendor in range(vendors)]
    catalogues = tuple(tuple(f"film {film}" for film in hand) for hand in hands)
    return catalogues, places, _means(users, places, ratings, np.concatenate(hands))


def read_users(folder: Path) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return every user's number, and gender, age and occupation scaled to [0, 1]."""
    numbers, places = [], []
    for line, fields in read_fields(folder / "users.dat", least=4):
        try:
            number, gender, age, occupation = int(fields[0]), fields[1], fields[2], int(fields[3])
            place = ("FM".index(gender), AGES.index(int(age)) / 6, occupation / (OCCUPATIONS - 1))
        except ValueError:
            raise InvalidArgument(
                "data", f"users.dat line {line}: not a user of MovieLens-1M"
            ) from None
        numbers.append(number)
        places.append(place)
    return np.array(numbers), np.array(places, dtype=np.float64)


def read_ratings(folder: Path) -> npt.NDArray[np.int64]:
    """Return user, film and stars, a row a rating, from the folder that has the ratings."""
    path = next((folder / name for name in _RATINGS if (folder / name).exists()), None)
    if path is None:
        raise InvalidArgument("data", f"{folder} has none of {', '.join(_RATINGS)}")
    text = read_text(path)
    lines = text.count("\n") + (not text.endswith("\n"))
    fields = text.partition("\n")[0].count("::") + 1
    try:
        # A million lines: one split is twenty times quicker than a million.
        table = np.array(text.replace("::", " ").split(), dtype=np.int64).reshape(lines, fields)
    except ValueError:
        table = np.zeros((0, 0), dtype=np.int64)
    if table.shape[1] >= 3:
        return table[:, :3]
    for number, parts in read_fields(path, least=3):
        if not all(part.isdecimal() for part in parts):
            raise InvalidArgument("data", f"{path.name} line {number}: not a rating")
    raise InvalidArgument("data", f"{path.name}: not the ratings of MovieLens-1M")


def read_fields(path: Path, *, least: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the fields of every line, of which there must be at least so many."""
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        fields = line.split("::")
        if len(fields) < least:
            raise InvalidArgument(
                "data", f"{path.name} line {number}: has fewer than {least} fields separated by ::"
            )
        yield number, fields


def _means(
    users: npt.NDArray[np.int64],
    places: Floats,
    ratings: npt.NDArray[np.int64],
    films: npt.NDArray[np.int64],
) -> Floats:
    """Return the shrunken share of ratings of 4 and 5, for every user's group and every film."""
    order = np.argsort(films)
    at = np.minimum(np.searchsorted(films, ratings[:, 1], sorter=order), len(films) - 1)
    known = films[order[at]] == ratings[:, 1]
    ratings, columns = ratings[known], order[at[known]]
    by_number = np.argsort(users)
    rows = by_number[np.searchsorted(users, ratings[:, 0], sorter=by_number)]
    liked = (ratings[:, 2] >= LIKED).astype(np.float64)

    def totals(group: npt.NDArray[np.intp], groups: int) -> tuple[Floats, Floats]:
        counts = np.zeros((groups, len(films)))
        sums = np.zeros((groups, len(films)))
        np.add.at(counts, (group[rows], columns), 1.0)
        np.add.at(sums, (group[rows], columns), liked)
        return counts, sums

    broad, broad_of = np.unique(places[:, :2], axis=0, return_inverse=True)
    fine, fine_of = np.unique(places, axis=0, return_inverse=True)
    counts, sums = totals(np.zeros(len(users), dtype=np.intp), 1)
    overall = (sums + 0.5) / (counts + 1.0)
    counts, sums = totals(broad_of.reshape(-1), len(broad))
    wide = (sums + _WEIGHT * overall) / (counts + _WEIGHT)
    counts, sums = totals(fine_of.reshape(-1), len(fine))
    wide_of = np.zeros(len(fine), dtype=np.intp)
    wide_of[fine_of.reshape(-1)] = broad_of.reshape(-1)
    means: Floats = (sums + _WEIGHT * wide[wide_of]) / (counts + _WEIGHT)
    table: Floats = means[fine_of.reshape(-1)]
    return table
