"""Measure from how many films on a noisy list pays, on MovieLens-1M, in NDCG@10.

python -m tests.hub.measure_small FOLDER [--people 150]     (FOLDER holds the folder ml-1m)

Nine tenths of the people have given an ordinary recommender everything. Of the last tenth, each has
seen n films at random and is to be recommended the others. Compared are: what is popular (nothing
is sent), the row that the hub makes on the device from that and the history (nothing is sent
either), noisy lists at several epsilons as the hub draws them, and the raw history. As servers do,
this one does not recommend what is in the profile that it was sent. Seeded.
"""

import argparse
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from discreet.families.collaborative.on_device.catalogue import PERTURBED
from discreet.families.collaborative.on_device.perturbation import perturb
from discreet.hub.catalogue import PublicItem, compose
from discreet.hub.local_ranking import rank
from discreet.hub.popularity import expectation, ranks
from discreet.hub.releases import typical_length
from discreet.research.noise import SeededNoise
from discreet.research.reproduce.epicrec_server import OrdinaryRecommender, ndcg
from discreet.research.worlds.environments import seeded
from discreet.research.worlds.rated import movielens
from tests.hub.measure import popular_rows

SIZES = (5, 12, 25, 50, 100)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
LEFT = 20
"""So many films at least are left to be recommended."""


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--people", type=int, default=150)
    args = parser.parse_args()
    rated = movielens(args.folder)
    films = rated.catalogue
    column = {item: at for at, item in enumerate(films.items)}
    owners = seeded("folds", 0).permutation(rated.people) % 10 == 0
    learned = ~owners[rated.rows]
    given = (rated.rows[learned], rated.columns[learned])
    shape = (rated.people, len(films.items))
    server = OrdinaryRecommender(
        csr_matrix((np.ones(learned.sum()), given), shape=shape), factors=48
    )
    counts = Counter(films.items[at] for at in rated.columns[learned])
    public = compose(
        PublicItem(item, item, tuple(name for name in films.categories
                   if films.incidence[films.group_of[item], films.categories.index(name)]))
        for item in films.items
    )  # fmt: skip
    places = ranks(popular_rows(public, counts), public)
    read = expectation(films, places, typical=typical_length(films))
    histories: dict[int, list[int]] = defaultdict(list)
    for row, at in zip(rated.rows[~learned], rated.columns[~learned], strict=True):
        histories[int(row)].append(int(at))
    names = ("popular", "on the device", *(f"noisy, ε {each:g}" for each in EPSILONS), "raw")
    print("films seen", "people", *names, sep=" | ")
    rng = np.random.default_rng(1)
    nobody = np.array([], dtype=np.int64)
    for size in SIZES:
        people = [who for who in histories if len(histories[who]) >= size + LEFT][: args.people]
        found: dict[str, list[float]] = defaultdict(list)
        for seed, who in enumerate(people):
            shuffled = rng.permutation(histories[who])
            seen, wanted = shuffled[:size], shuffled[size:]
            ids = [films.items[at] for at in seen]
            here = np.array([column[item] for item in rank(public, places, ids, count=10)])
            found["popular"].append(ndcg(server.best(nobody, without=seen), wanted))
            found["on the device"].append(ndcg(here, wanted))
            found["raw"].append(ndcg(server.best(seen, without=seen), wanted))
            for epsilon in EPSILONS:
                release = perturb(
                    history=ids,
                    catalogue=films,
                    concerns=PERTURBED,
                    epsilon=epsilon,
                    noise=SeededNoise(seed),
                    expectation=read,
                )
                sent = np.array(sorted(column[item] for item in release.items), dtype=np.int64)
                best = server.best(sent, without=np.union1d(seen, sent))
                found[f"noisy, ε {epsilon:g}"].append(ndcg(best, wanted))
        print(size, len(people), *(f"{np.mean(found[name]):.3f}" for name in names), sep=" | ")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
