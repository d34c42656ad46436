"""MovieLens (100K or 1M) as a world: genres and demographics in, films out.

Who comes: the users, equally likely. A context has gender, age, the occupation (one-hot), and for
every genre how much more than others the user likes it (a rating of 4 or 5), by ratings of films
that are not on offer. On offer are the most rated films.

What they like: most users have not rated most films, so the truth is completed. The chance that a
user likes a film is the film's share of likes plus a product of `RANK` numbers of the user with as
many of the film, fitted to the ratings of the films on offer (alternating ridge regressions). So
the truth knows more about a user than the context tells, and no learner reaches the ceiling.

The files are read from a folder that has them (`ml-100k` or `ml-1m` in it, or itself).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.research.suite.stretches import Stretch
from discreet.research.suite.worlds import stretch_sizes
from discreet.research.worlds.environments import Floats, seeded
from discreet.research.worlds.files import read_text, subfolder
from discreet.research.worlds.movielens import (
    AGES,
    LIKED,
    OCCUPATIONS,
    read_fields,
    read_ratings,
)

FILMS = 50
RANK = 8
_RIDGE = 8.0
_SWEEPS = 12
_WEIGHT = 5.0
"""Ratings that everybody's share of likes in a genre is worth beside the user's own."""
_CONTRAST = 1.5

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class FilmTables:
    """What a data set says: users by row, and films by column."""

    people: Floats
    genres: Floats
    rows: Integers
    columns: Integers
    liked: Floats


@dataclass(frozen=True, slots=True, eq=False)
class FilmRatings:
    """The world: a row a user in both."""

    contexts: Floats
    means: Floats

    @property
    def dimensions(self) -> int:
        """Return how many numbers a context has."""
        return int(self.contexts.shape[1])

    @property
    def items(self) -> int:
        """Return how many films are on offer."""
        return int(self.means.shape[1])

    @classmethod
    def load(cls, data: Path, name: str) -> "FilmRatings":
        """Read `ml-100k` or `ml-1m`."""
        return _load(data, name)

    @classmethod
    def of(cls, tables: FilmTables, *, films: int = FILMS) -> "FilmRatings":
        """Return the world of these ratings with so many films on offer."""
        counts = np.bincount(tables.columns, minlength=len(tables.genres))
        offered = np.argsort(-counts, kind="stable")[:films]
        place = np.full(len(tables.genres), -1)
        place[offered] = np.arange(len(offered))
        known = place[tables.columns] >= 0
        taste = _taste(tables, ~known)
        shown = np.zeros((len(tables.people), len(offered)))
        liked = np.zeros_like(shown)
        shown[tables.rows[known], place[tables.columns[known]]] = 1.0
        liked[tables.rows[known], place[tables.columns[known]]] = tables.liked[known]
        return cls(np.hstack([tables.people, taste]), complete(shown, liked))

    def stretches(self, *, rounds: int, seed: int) -> Iterator[Stretch]:
        """Yield the rounds."""
        rng = seeded("films", seed)
        for count in stretch_sizes(rounds):
            who = rng.integers(0, len(self.contexts), count)
            yield Stretch(
                self.contexts[who], np.arange(self.items), self.means[who], rng.random(count)
            )


def complete(shown: Floats, liked: Floats) -> Floats:
    """Return everybody's chance of liking every film, from those who rated it (`shown` is 1)."""
    counts = shown.sum(axis=0)
    overall = (liked.sum(axis=0) + 0.5) / (counts + 1.0)
    rest = shown * (liked - overall)
    ridge = _RIDGE * np.eye(RANK)
    films = np.random.default_rng(0).standard_normal((shown.shape[1], RANK)) * 0.1
    people = np.zeros((shown.shape[0], RANK))
    for _ in range(_SWEEPS):
        squares = np.einsum("uf,fi,fj->uij", shown, films, films, optimize=True) + ridge
        people = np.linalg.solve(squares, (rest @ films)[:, :, None])[:, :, 0]
        squares = np.einsum("uf,ui,uj->fij", shown, people, people, optimize=True) + ridge / _RIDGE
        films = np.linalg.solve(squares, (rest.T @ people)[:, :, None])[:, :, 0]
    means: Floats = np.clip(overall + people @ films.T, 0.02, 0.98)
    return means


def _taste(tables: FilmTables, counted: npt.NDArray[np.bool_]) -> Floats:
    """Return, for every user and genre, 1/2 plus how much more the user likes it than others."""
    rows, genres = tables.rows[counted], tables.genres[tables.columns[counted]]
    count = np.zeros((len(tables.people), tables.genres.shape[1]))
    likes = np.zeros_like(count)
    np.add.at(count, rows, genres)
    np.add.at(likes, rows, genres * tables.liked[counted][:, None])
    overall = (likes.sum(axis=0) + 0.5) / (count.sum(axis=0) + 1.0)
    own = (likes + _WEIGHT * overall) / (count + _WEIGHT)
    taste: Floats = np.clip(0.5 + _CONTRAST * (own - overall), 0.0, 1.0)
    return taste


@lru_cache(maxsize=2)
def _load(data: Path, name: str) -> FilmRatings:
    folder = subfolder(data, name)
    return FilmRatings.of(_small(folder) if name == "ml-100k" else _large(folder))


def _large(folder: Path) -> FilmTables:
    """Read MovieLens-1M."""
    users, people = [], []
    for line, fields in read_fields(folder / "users.dat", least=4):
        try:
            users.append(int(fields[0]))
            age = AGES.index(int(fields[2])) / (len(AGES) - 1)
            people.append(_person("FM".index(fields[1]), age, int(fields[3]), OCCUPATIONS))
        except (ValueError, IndexError):
            raise InvalidArgument("--data", f"users.dat line {line}: not a user") from None
    films = [
        (int(one[0]), one[2].split("|")) for _, one in read_fields(folder / "movies.dat", least=3)
    ]
    names = sorted({genre for _, genres in films for genre in genres})
    flags = np.array([[float(name in genres) for name in names] for _, genres in films])
    ratings = read_ratings(folder)
    return _tables(
        np.array(users), np.array(people), np.array([f for f, _ in films]), flags, ratings
    )


def _small(folder: Path) -> FilmTables:
    """Read MovieLens-100K."""
    occupations = read_text(folder / "u.occupation").split()
    users, people, films, flags = [], [], [], []
    try:
        for line in read_text(folder / "u.user").splitlines():
            number, age, gender, occupation, _ = line.split("|")
            users.append(int(number))
            scaled = min(int(age), 80) / 80
            people.append(
                _person("FM".index(gender), scaled, occupations.index(occupation), len(occupations))
            )
        for line in read_text(folder / "u.item").splitlines():
            fields = line.split("|")
            films.append(int(fields[0]))
            flags.append([float(flag) for flag in fields[-18:]])  # the first is "unknown"
        packed = folder / "u.data.gz"
        text = read_text(packed if packed.exists() else folder / "u.data")
        ratings = np.array(text.split(), dtype=np.int64).reshape(-1, 4)[:, :3]
    except (ValueError, IndexError):
        raise InvalidArgument("--data", f"{folder} is not MovieLens-100K") from None
    return _tables(np.array(users), np.array(people), np.array(films), np.array(flags), ratings)


def _person(gender: int, age: float, occupation: int, occupations: int) -> list[float]:
    return [float(gender), age, *(float(one == occupation) for one in range(occupations))]


def _tables(
    users: Integers, people: Floats, films: Integers, genres: Floats, ratings: Integers
) -> FilmTables:
    row_of = {number: row for row, number in enumerate(users.tolist())}
    column_of = {number: column for column, number in enumerate(films.tolist())}
    try:
        rows = np.array([row_of[number] for number in ratings[:, 0].tolist()])
        columns = np.array([column_of[number] for number in ratings[:, 1].tolist()])
    except KeyError as error:
        raise InvalidArgument("--data", f"a rating names {error}, which is not listed") from None
    liked = (ratings[:, 2] >= LIKED).astype(np.float64)
    return FilmTables(people, genres, rows, columns, liked)
