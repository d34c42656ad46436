"""How well profiles are served, on MovieLens-1M: ours beside what else the library offers.

    python -m tests.families.collaborative.compare FOLDER

A fifth of the ratings is hidden, at random; NDCG@10 says how many of the hidden films are among
the first ten that are recommended, and how early. With one thread it takes a minute or two.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from discreet.families.collaborative.model import CollaborativeModel, ProfileQuestion
from discreet.families.collaborative.similarities import ItemSimilarities, pack
from discreet.families.collaborative.training import fit
from discreet.research.worlds.movielens import read_ratings

FIRST = 10
HIDDEN = 0.2
TOGETHER = 500

Table = npt.NDArray[np.float64]
Scoring = Callable[[slice], Table]


@dataclass(frozen=True, eq=False)
class Split:
    """Who has seen what, and what else they have seen: a row a user, a column a film."""

    seen: Any
    hidden: Any

    @property
    def rows(self) -> int:
        return int(self.seen.shape[0])

    @property
    def films(self) -> int:
        return int(self.seen.shape[1])


def split(folder: Path, *, seed: int = 0) -> Split:
    """Read the ratings, and hide a part of them."""
    ratings = read_ratings(folder)
    users = np.unique(ratings[:, 0], return_inverse=True)[1]
    films = np.unique(ratings[:, 1], return_inverse=True)[1]
    hidden = np.random.default_rng(seed).random(len(users)) < HIDDEN
    shape = (int(users.max()) + 1, int(films.max()) + 1)

    def table(kept: npt.NDArray[np.bool_]) -> Any:
        return csr_matrix((np.ones(int(kept.sum())), (users[kept], films[kept])), shape=shape)

    return Split(table(~hidden), table(hidden))


def gain(hits: npt.NDArray[np.bool_], wanted: int) -> float:
    """Return the NDCG of one answer, of which `hits` were among the `wanted`."""
    worth = 1 / np.log2(np.arange(FIRST) + 2)
    return float((hits * worth[: len(hits)]).sum() / worth[: min(FIRST, wanted)].sum())


def ours(data: Split, *, neighbours: int = 100) -> ItemSimilarities:
    """Train as the service does."""
    return fit(
        starts=data.seen.indptr.astype(np.int64),
        slots=data.seen.indices.astype(np.int64),
        live=np.arange(data.films),
        neighbours=neighbours,
    )


def served(data: Split, similarities: ItemSimilarities, *, every: int = 1) -> float:
    """Return the mean NDCG of the answers that the service would give to every so many-th user."""
    model = CollaborativeModel(similarities, np.zeros(data.films), np.zeros(data.films))
    question = ProfileQuestion(b"", FIRST, np.arange(data.films))
    gains = []
    for user in range(0, data.rows, every):
        wanted = _row(data.hidden, user)
        if len(wanted):
            profile = np.sort(_row(data.seen, user)).astype(np.intp)
            (ranked,) = model.rank([question], [profile])
            gains.append(gain(np.isin(ranked, wanted), len(wanted)))
    return float(np.mean(gains))


def _row(table: Any, row: int) -> npt.NDArray[np.int32]:
    # Much quicker than asking for a row as a matrix of its own.
    columns: npt.NDArray[np.int32] = table.indices[table.indptr[row] : table.indptr[row + 1]]
    return columns


def scored(data: Split, scoring: Scoring) -> float:
    """Return the mean NDCG of whatever gives every film a score."""
    gains = []
    for start in range(0, data.rows, TOGETHER):
        rows = slice(start, min(start + TOGETHER, data.rows))
        scores = scoring(rows)
        scores[data.seen[rows].toarray() > 0] = -np.inf
        best = np.argsort(-scores, axis=1, kind="stable")[:, :FIRST]
        hidden = data.hidden[rows].toarray() > 0
        for hits, wanted in zip(np.take_along_axis(hidden, best, 1), hidden.sum(1), strict=True):
            if wanted:
                gains.append(gain(hits, int(wanted)))
    return float(np.mean(gains))


def rivals(data: Split) -> Iterator[tuple[str, float, float]]:
    """Yield a name, the NDCG, and the seconds of training."""
    from implicit import nearest_neighbours
    from implicit.als import AlternatingLeastSquares

    popular = np.asarray(data.seen.sum(axis=0)).ravel()
    yield "popular", scored(data, lambda rows: np.tile(popular, (rows.stop - rows.start, 1))), 0.0
    for name in ("Cosine", "TFIDF", "BM25"):
        for neighbours in (50, 200):
            model = getattr(nearest_neighbours, f"{name}Recommender")(K=neighbours, num_threads=1)
            began = time.perf_counter()
            model.fit(data.seen, show_progress=False)
            seconds = time.perf_counter() - began
            mine = model.similarity.T.tocsr()
            theirs = model.similarity
            label = f"{name}, {neighbours} neighbours"
            yield (
                label,
                scored(data, lambda rows, by=mine: (data.seen[rows] @ by).toarray()),
                seconds,
            )
            yield (
                f"{label}, as the library sums them",
                scored(data, lambda rows, by=theirs: (data.seen[rows] @ by).toarray()),
                seconds,
            )
    model = AlternatingLeastSquares(
        factors=64, iterations=10, alpha=5, num_threads=1, random_state=0
    )
    began = time.perf_counter()
    model.fit(data.seen.astype(np.float32), show_progress=False)
    seconds = time.perf_counter() - began
    yield (
        "alternating least squares, 64 factors",
        scored(data, lambda rows: model.user_factors[rows] @ model.item_factors.T),
        seconds,
    )


def main() -> None:
    """Print a table."""
    warnings.simplefilter("ignore")
    data = split(Path(sys.argv[1]))
    began = time.perf_counter()
    similarities = ours(data)
    seconds = time.perf_counter() - began
    print(f"{'ours, 100 neighbours':55} {served(data, similarities):.4f}  {seconds:6.2f} s")
    for name, found, seconds in rivals(data):
        print(f"{name:55} {found:.4f}  {seconds:6.2f} s", flush=True)
    print(f"similarities: {len(pack(similarities.arrays())):,} bytes")


if __name__ == "__main__":
    main()
