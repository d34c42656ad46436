"""Sparse records with labels: synthetic social data, and MovieLens-1M crossed with its users.

**Social** (synthetic). Ten thousand features, fifty of them named by each record, with values of +1
or -1 (a reaction for or against) divided by sqrt(50). Fifty features are interests; a record names
two of them, equally likely, and what the person thinks of the item depends on these alone:
P(y = 1) is the logistic function of `certainty` times the sum of weight times reaction, weights of
random sign and size 0.5 to 1.5. All other features are irrelevant, with popularities that fall
like 1 / (rank + 20). So 99.5% of the features and 96% of the entries of a record say nothing.

**MovieLens** (real). A record is a rating of one of 300 films, liked if 4 or 5: every fifth of the
1,500 most rated, because the most rated ones are good films that nearly everybody likes. The
client's features are gender, age group and occupation, the item's are the film and its genres, and
all products of the two: 9,888 features, about 15 a record. A feature's value is one over the root
of how often it occurs, and records are scaled to norm 1: otherwise what nearly all records share
would drown what tells them apart.

The comparator of regret is a fixed model for all records. For the social world that is the truth,
in the multiple that has the least hinge loss; for MovieLens, where nobody knows the truth, the
model with the least hinge loss plus a small ridge in hindsight.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from discreet.errors import InvalidArgument
from discreet.families.mirror_descent.sparse import Crossing, Floats, GridRows, SparseRows, on_grid
from discreet.research.worlds.environments import seeded
from discreet.research.worlds.files import subfolder
from discreet.research.worlds.movielens import (
    AGES,
    FOLDER,
    LIKED,
    OCCUPATIONS,
    read_fields,
    read_ratings,
    read_users,
)

Labels = npt.NDArray[np.int64]

RECORDS = 100_000
DIMENSION = 10_000
NONZEROS = 50
INTERESTS = 50
MATTERING = 2
CERTAINTY = 2.0
FILMS = 300
GENRES = (
    *("Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama"),
    *("Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller"),
    *("War", "Western"),
)


@dataclass(frozen=True, slots=True, eq=False)
class LabelledRecords:
    """Records in the order in which they come, and the hinge loss of the comparator on them.

    `ceiling` is the accuracy of the comparator, `norm` its length, `majority` the accuracy of the
    more frequent label.
    """

    rows: GridRows
    labels: Labels
    dimension: int
    best_loss: float
    ceiling: float
    norm: float

    @property
    def majority(self) -> float:
        """Return how often the more frequent label is right."""
        share = float((self.labels > 0).mean())
        return max(share, 1 - share)


@lru_cache(maxsize=1)
def social(
    seed: int,
    *,
    records: int = RECORDS,
    dimension: int = DIMENSION,
    nonzeros: int = NONZEROS,
    interests: int = INTERESTS,
) -> LabelledRecords:
    """Return the synthetic records of this seed."""
    if not (MATTERING < nonzeros <= dimension // 4 and MATTERING <= interests < dimension // 2):
        raise InvalidArgument("nonzeros", "must leave most features unnamed and irrelevant")
    rng = seeded("social", seed)
    names = rng.permutation(dimension)
    weights = rng.choice([-1.0, 1.0], interests) * rng.uniform(0.5, 1.5, interests)
    matter = _distinct(rng, np.ones(interests), records, MATTERING)
    popularity = 1 / (np.arange(dimension - interests) + 20.0)
    rest = interests + _distinct(rng, popularity, records, nonzeros - MATTERING)
    reactions = rng.choice([-1.0, 1.0], (records, nonzeros))
    opinion = (weights[matter] * reactions[:, :MATTERING]).sum(axis=1)
    labels = np.where(rng.random(records) < 1 / (1 + np.exp(-CERTAINTY * opinion)), 1, -1)
    columns = names[np.concatenate([matter, rest], axis=1)]
    order = np.argsort(columns, axis=1)
    rows = on_grid(
        SparseRows(
            np.arange(records + 1) * nonzeros,
            np.take_along_axis(columns, order, axis=1).reshape(-1),
            np.take_along_axis(reactions, order, axis=1).reshape(-1) / np.sqrt(nonzeros),
        ),
        bound=1.0,
    )
    multiples = np.geomspace(0.01, 100, 200)[:, None]
    losses = np.maximum(1 - multiples * labels * opinion, 0).sum(axis=1)
    best = float(multiples[int(losses.argmin()), 0])
    norm = best * float(np.sqrt(nonzeros) * np.linalg.norm(weights))
    right = np.where(opinion >= 0, 1, -1) == labels
    return LabelledRecords(rows, labels, dimension, float(losses.min()), float(right.mean()), norm)


def _distinct(
    rng: np.random.Generator, popularity: Floats, rows: int, count: int
) -> npt.NDArray[np.int64]:
    """Return `count` different numbers a row, drawn one after the other by popularity."""
    cumulative = np.cumsum(popularity / popularity.sum())
    chosen = np.empty((rows, count), dtype=np.int64)
    left = np.arange(rows)
    while len(left):
        drawn = np.searchsorted(cumulative, rng.random((len(left), 2 * count + 8)), side="right")
        drawn = np.minimum(drawn, len(popularity) - 1)
        # A stable sort puts the first draw of every number before its repetitions.
        order = np.argsort(drawn, axis=1, kind="stable")
        ranked = np.take_along_axis(drawn, order, axis=1)
        first = np.ones(drawn.shape, dtype=np.bool_)
        repeats = np.concatenate([first[:, :1], ranked[:, 1:] != ranked[:, :-1]], axis=1)
        np.put_along_axis(first, order, repeats, axis=1)
        enough = first.sum(axis=1) >= count
        keep = first & (np.cumsum(first, axis=1) <= count)
        chosen[left[enough]] = drawn[enough][keep[enough]].reshape(-1, count)
        left = left[~enough]
    return chosen


@lru_cache(maxsize=1)
def movielens(seed: int, folder: Path, *, records: int = RECORDS) -> LabelledRecords:
    """Return ratings of MovieLens-1M in a random order, crossed with who gave them."""
    rows, labels, dimension = _crossed(folder)
    order = seeded("movielens records", seed).permutation(len(labels))[:records]
    rows, labels = rows.take(order), labels[order]
    best = _hindsight(rows, labels, dimension)
    margins = labels * (_matrix(rows, dimension) @ best)
    loss = float(np.maximum(1 - margins, 0).sum())
    norm = float(np.linalg.norm(best))
    return LabelledRecords(rows, labels, dimension, loss, float((margins > 0).mean()), norm)


@lru_cache(maxsize=1)
def _crossed(folder: Path) -> tuple[GridRows, Labels, int]:
    folder = subfolder(folder, FOLDER)
    numbers, places = read_users(folder)
    ratings = read_ratings(folder)
    films, counts = np.unique(ratings[:, 1], return_counts=True)
    popular = np.sort(films[np.argsort(-counts, kind="stable")][: 5 * FILMS : 5])
    ratings = ratings[np.isin(ratings[:, 1], popular)]
    clients = 2 + len(AGES) + OCCUPATIONS
    crossing = Crossing(clients, len(GENRES) + len(popular))
    client = np.stack(
        [
            places[:, 0],
            2 + np.rint(places[:, 1] * 6),
            2 + len(AGES) + np.rint(places[:, 2] * (OCCUPATIONS - 1)),
        ],
        axis=1,
    ).astype(np.int64)
    genres = _genres(folder)
    items = [
        [*genres.get(int(film), []), len(GENRES) + place] for place, film in enumerate(popular)
    ]
    by_number = np.argsort(numbers)
    who = by_number[np.searchsorted(numbers, ratings[:, 0], sorter=by_number)]
    what = np.searchsorted(popular, ratings[:, 1])
    # All products of one kind of client with all films; a rating then picks its row.
    kinds, kind_of = np.unique(client, axis=0, return_inverse=True)
    catalogue = _rows(items)
    tables = [crossing.crossed(_rows([kind]), catalogue) for kind in kinds.tolist()]
    offsets = np.cumsum([0, *(table.offsets[-1] for table in tables)])
    together = SparseRows(
        np.concatenate(
            [[0], *(t.offsets[1:] + start for t, start in zip(tables, offsets, strict=False))]
        ),
        np.concatenate([table.indices for table in tables]),
        np.concatenate([table.values for table in tables]),
    )
    rated = together.take(kind_of.reshape(-1)[who] * len(popular) + what)
    counts = np.bincount(rated.indices, minlength=crossing.dimension)
    values = 1 / np.sqrt(counts[rated.indices])
    lengths = np.sqrt(rated.sums(values * values))
    rows = on_grid(
        SparseRows(rated.offsets, rated.indices, values / lengths[rated.row_of]), bound=1.0
    )
    labels = np.where(ratings[:, 2] >= LIKED, 1, -1)
    return rows, labels.astype(np.int64), crossing.dimension


def _rows(lists: list[list[int]]) -> SparseRows:
    offsets = np.cumsum([0, *(len(one) for one in lists)])
    flat = np.array([index for one in lists for index in one], dtype=np.int64)
    return SparseRows(offsets, flat, np.ones(len(flat)))


def _genres(folder: Path) -> dict[int, list[int]]:
    found = {}
    for line, fields in read_fields(folder / "movies.dat", least=3):
        if not fields[0].isdecimal():
            raise InvalidArgument("data", f"movies.dat line {line}: not a film of MovieLens-1M")
        names = fields[2].split("|")
        found[int(fields[0])] = sorted(GENRES.index(name) for name in names if name in GENRES)
    return found


def _matrix(rows: SparseRows, dimension: int) -> csr_matrix:
    return csr_matrix((rows.values, rows.indices, rows.offsets), shape=(len(rows), dimension))


def _hindsight(rows: SparseRows, labels: Labels, dimension: int) -> Floats:
    """Return the model of the least loss: hinge rounded off within 0.1 of its corner, and ridge."""
    matrix, width, ridge = _matrix(rows, dimension), 0.1, 1e-5 * len(rows)

    def loss(w: Floats) -> tuple[float, Floats]:
        gap = 1 - labels * (matrix @ w)
        slope = np.clip(gap / width, 0, 1)
        value = np.where(gap > width, gap - width / 2, slope * gap / 2).sum()
        return float(value + ridge * (w @ w) / 2), ridge * w - matrix.T @ (labels * slope)

    found: Floats = minimize(
        loss, np.zeros(dimension), jac=True, method="L-BFGS-B", options={"maxiter": 200}
    ).x
    return found
