"""How useful feedback is with and without noise, on MovieLens-1M: the shipped recommender.

    python -m tests.families.collaborative.compare_feedback FOLDER

Visitors without a profile come every ten seconds. Each is offered 200 films drawn at random, is
shown the ten most popular of them, and gives feedback on the first that is in their history. What
is told are the films of the history among the ten, in the mean over the last quarter of the visits.
Seeded; it takes some minutes.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import numpy as np

from discreet.research.noise import SeededNoise
from discreet.research.worlds.movielens import read_ratings
from tests.families.collaborative.library import Library

OFFERED = 200
SHOWN = 10
SECONDS = 10.0


def histories(folder: Path) -> list[set[int]]:
    """Return what each user has seen, films numbered at random: their order says nothing."""
    ratings = read_ratings(folder)
    users = np.unique(ratings[:, 0], return_inverse=True)[1]
    films = np.unique(ratings[:, 1], return_inverse=True)[1]
    films = np.random.default_rng(0).permutation(int(films.max()) + 1)[films]
    seen: list[set[int]] = [set() for _ in range(int(users.max()) + 1)]
    for user, film in zip(users.tolist(), films.tolist(), strict=True):
        seen[user].add(film)
    return seen


async def play(
    seen: list[set[int]], feedback: Any, *, films: int, profiles: int, visits: int
) -> float:
    """Return the mean number of hits in the last quarter; `feedback` None gives none."""
    library = Library(
        items=[str(film) for film in range(films)],
        privacy={"feedback": feedback or "exact"},
        noise=SeededNoise(1),
    )
    rng = np.random.default_rng(1)
    for client in range(profiles):
        mine = (film for film in seen[int(rng.integers(len(seen)))] if film < films)
        await library.send(f"profile {client}", *map(str, mine))
    hits = []
    for _ in range(visits):
        library.clock.now += SECONDS
        if library.books.due(library.clock()):
            await library.release()
        visitor = int(rng.integers(len(seen)))
        offered = [str(film) for film in rng.choice(films, OFFERED, replace=False)]
        decision = await library.ask(str(visitor), limit=SHOWN, candidates=offered)
        liked = [choice.slot for choice in decision.choices if choice.slot in seen[visitor]]
        hits.append(len(liked))
        if liked and feedback is not None:
            pending = library.pending(str(visitor), decision)
            await library.tell([(pending, str(liked[0]), 1.0)])
    return float(np.mean(hits[-visits // 4 :]))


async def compare(folder: Path) -> None:
    """Print a table."""
    seen = histories(folder)
    everything = max(max(films) for films in seen if films) + 1
    ways = {"none": None, "exact": "exact", "epsilon 1": {"epsilon": 1.0}}
    print(f"{'films':>6} {'profiles':>8} {'visits':>7}  " + "  ".join(f"{w:>9}" for w in ways))
    for films, profiles, visits in (
        (300, 0, 20_000),
        (300, 10, 20_000),
        (300, 10, 60_000),
        (300, 100, 20_000),
        (everything, 0, 20_000),
        (everything, 100, 20_000),
    ):
        found = [
            await play(seen, way, films=films, profiles=profiles, visits=visits)
            for way in ways.values()
        ]
        print(f"{films:6} {profiles:8} {visits:7}  " + "  ".join(f"{f:9.2f}" for f in found))


if __name__ == "__main__":
    asyncio.run(compare(Path(sys.argv[1])))
