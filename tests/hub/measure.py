"""Measure what the hub's lists are like on MovieLens-1M, with and without what is popular.

python -m tests.hub.measure FOLDER            (FOLDER holds movies.dat and the ratings)

Drives the hub's own code: rows of what is popular, as 5,040 users make them, then a list for
each of 150 others. Seeded.
"""

import argparse
import time
from collections import Counter
from pathlib import Path

from discreet.families.collaborative.on_device.catalogue import Concerns
from discreet.families.collaborative.on_device.perturbation import perturb
from discreet.hub.catalogue import PublicCatalogue, PublicItem, compose
from discreet.hub.choices import Choices
from discreet.hub.popularity import expectation, ranks
from discreet.hub.releases import quote, typical_length
from discreet.hub.server import ASKED_FOR_POPULAR, RecommendedRow
from discreet.research.noise import SeededNoise
from discreet.research.worlds.movielens import read_ratings

PEOPLE = 150
APART = 1_000
"""The first users, of whom some are measured; popularity is by all others."""


def catalogue_of(folder: Path) -> PublicCatalogue:
    """Return the films and their genres."""
    lines = (folder / "movies.dat").read_text("latin-1").splitlines()
    films = (line.split("::") for line in lines)
    return compose(PublicItem(id_, title, tuple(kinds.split("|"))) for id_, title, kinds in films)


def popular_rows(catalogue: PublicCatalogue, counts: Counter[str]) -> list[RecommendedRow]:
    """Return what a server would show to anybody."""
    order = sorted((item.id for item in catalogue.items), key=lambda item: -counts[item])
    kinds = {item.id: item.categories for item in catalogue.items}
    rows = [RecommendedRow(None, tuple(order[:ASKED_FOR_POPULAR]), False)]
    for name in catalogue.used_categories:
        listed = [item for item in order if name in kinds[item]][:ASKED_FOR_POPULAR]
        rows.append(RecommendedRow(name, tuple(listed), False))
    return rows


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    public = catalogue_of(folder)
    films = public.compiled
    histories: dict[int, set[str]] = {}
    for user, film, _ in read_ratings(folder):
        histories.setdefault(int(user), set()).add(str(film))
    people = sorted(histories)
    counts = Counter(film for user in people[APART:] for film in histories[user])
    began = time.perf_counter()
    price = quote(public, Choices())
    print(f"quote: epsilon {price.epsilon:g}, noise {price.noise:.1f} a category, "
          f"{time.perf_counter() - began:.2f} s")  # fmt: skip
    read = expectation(
        films, ranks(popular_rows(public, counts), public), typical=typical_length(films)
    )
    for name, known in (("by the catalogue alone", None), ("by what is popular", read)):
        hits = sent = 0
        error = 0.0
        began = time.perf_counter()
        for seed, user in enumerate(people[:PEOPLE]):
            seen = histories[user] & public.by_id.keys()
            release = perturb(
                history=seen,
                catalogue=films,
                concerns=Concerns(),
                epsilon=price.epsilon,
                noise=SeededNoise(seed),
                expectation=known,
            )
            hits += len(release.items & seen)
            sent += len(release.items)
            raw, out = public.profile(seen), public.profile(release.items)
            error += sum(abs(raw[kind] - out[kind]) for kind in raw) / len(raw)
        print(
            f"{name}: {hits / sent:.3f} of the released items were seen, "
            f"mean error of a count {error / PEOPLE:.1f}, "
            f"{(time.perf_counter() - began) / PEOPLE * 1000:.0f} ms a list"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
