"""The evaluation of CDP-FCLUB-DC again: Figures 2a, 2b, 3a to 3e, 4a and 4b, and Table 3.

All algorithms meet the same users, offers and luck. Regret is against the best offered item by the
world's true means. "Published" is the paper's algorithm with its noise really applied; the authors'
program owes its figures to noise that never reaches a recommendation (`fclub_published`).

As served, a local server and a global one are the shipped decisions, on a simulated clock with 200
arrivals a second; with the noise that protects a person (the default), or one observation.

How much is played: Figure 2a for 100,000 rounds, with users in blocks 3 seeds, mixed 2; as served
40,000 rounds, 2 seeds and 1; the parameter studies 20,000 rounds and 1 seed a point; MovieLens with
the paper's four tastes 100,000 rounds and 2 seeds, with forty distinct people 10,000 rounds and 2
seeds. More of everything: `--rounds`, `--seeds`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.research.published.fclub_bounds import ClusterBounds
from discreet.research.reproduce.fclub_algorithms import NO_SHARING, PROGRAM, ClusterAlgorithm
from discreet.research.reproduce.fclub_claims import DISTINCT, MOVIELENS, claims_of
from discreet.research.reproduce.fclub_tables import report
from discreet.research.reproduce.fclub_trials import ClusterOutcome, ClusterTrial
from discreet.research.reproduce.papers import ProgressWatcher, ReproductionOptions
from discreet.research.reproduce.tables import Reproduction
from discreet.research.reproduce.trials import run_all
from discreet.research.worlds.environments import Floats
from discreet.research.worlds.fclub import LinearWorld, popular, rated, rated_clusters, synthetic
from discreet.research.worlds.files import subfolder
from discreet.research.worlds.movielens import FOLDER, LIKED, read_ratings

ROUNDS, SEEDS = 100_000, 3
QUICK_ROUNDS, QUICK_SEEDS = 3_000, 2
FEW = 2
PEOPLE, THINGS = 1_000, 1_000

ALONE = ClusterAlgorithm(NO_SHARING, "served")
BY_PERSON = ClusterAlgorithm("fclub", "served", 1.0, 1e-6, "person")
BY_OBSERVATION = ClusterAlgorithm("fclub", "served", 1.0, 1e-6, "observation")
SERVED = (ALONE, BY_PERSON, BY_OBSERVATION)
PUBLISHED = ClusterAlgorithm("cdp-fclub-dc", "published", 1.0, 0.1)
EXACT = ClusterAlgorithm("fclub-dc")

RIVALS = tuple(ClusterAlgorithm(name) for name in ("linucb", "club", "sclub", "fclub"))
POOLED = tuple(ClusterAlgorithm(name) for name in ("homo-dc", "homo"))
EVERYBODY = (*RIVALS, EXACT, *POOLED, PUBLISHED)
"""The eight algorithms of Figure 2 and of Table 3."""
PROGRAMMED = tuple(ClusterAlgorithm(f"{name} {PROGRAM}") for name in ("club", "sclub", "homo-dc"))

STUDIES: dict[str, tuple[str, tuple[float, ...]]] = {
    "figure-3a": ("dimensions", (5, 10, 15, 20)),
    "figure-3b": ("epsilon", (0.5, 1, 2, 4, 8)),
    "figure-3c": ("servers", (2, 4, 5, 8)),
    "figure-3d": ("clusters", (2, 4, 6, 8)),
    "figure-3e": ("users", (20, 40, 60, 80)),
}


@dataclass(frozen=True, slots=True)
class ClusterPart:
    """Algorithms in one world, for some rounds and seeds."""

    name: str
    world: Callable[[int], LinearWorld]
    algorithms: tuple[ClusterAlgorithm, ...]
    rounds: int
    seeds: int
    clusters: int = 4

    def trials(self) -> list[ClusterTrial]:
        """Return every run."""
        return [
            ClusterTrial(algorithm, self.world, self.rounds, seed, self.clusters)
            for algorithm in self.algorithms
            for seed in range(self.seeds)
        ]


def reproduce(options: ReproductionOptions, watch: ProgressWatcher) -> Reproduction:
    """Run everything and put the paper's numbers beside ours."""
    parts = planned(options)
    trials = [trial for part in parts for trial in part.trials()]
    runs = iter(run_all(trials, watch=watch, processes=options.processes))
    found: dict[str, list[ClusterOutcome]] = {part.name: [] for part in parts}
    for part in parts:
        for algorithm in part.algorithms:
            outcome = ClusterOutcome(algorithm, tuple(next(runs) for _ in range(part.seeds)))
            found[part.name].append(outcome)
    played = next(part for part in parts if part.name == "blocks")
    return replace(
        report(found, studies=STUDIES, seeds=played.seeds),
        claims=claims_of(found, STUDIES, ClusterBounds(rounds=played.rounds)),
        quick=options.quick,
    )


def planned(options: ReproductionOptions) -> list[ClusterPart]:
    """Return what will be played."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    if seeds < 1:
        raise InvalidArgument("seeds", "must be at least 1")
    mixed = partial(synthetic, arrangement="mixed")
    few = min(FEW, seeds)
    served, short, real = (max(100, int(share * rounds)) for share in (0.4, 0.2, 0.1))
    parts = [
        ClusterPart("blocks", synthetic, (*EVERYBODY, *PROGRAMMED), rounds, seeds),
        ClusterPart("mixed", mixed, (*EVERYBODY, *PROGRAMMED), rounds, few),
        ClusterPart("blocks, served", synthetic, SERVED, served, few),
        ClusterPart("mixed, served", mixed, SERVED, served, 1),
    ]
    for name, (parameter, values) in STUDIES.items():
        parts.extend(_study(name, parameter, value, short) for value in values)
    if options.data is not None:
        films(options.data)  # a folder without the files is an error now, not in an hour
        four = partial(_from_ratings, options.data, rated_clusters)
        parts.append(ClusterPart(MOVIELENS, four, EVERYBODY, rounds, few))
        distinct = partial(_from_ratings, options.data, rated)
        parts.append(ClusterPart(DISTINCT, distinct, (*EVERYBODY, *SERVED), real, few))
    return parts


def _study(name: str, parameter: str, value: float, rounds: int) -> ClusterPart:
    compared = (PUBLISHED, EXACT)
    clusters = 4
    if parameter == "epsilon":
        world: Callable[[int], LinearWorld] = synthetic
        compared = (replace(PUBLISHED, epsilon=value), EXACT)
    else:
        sizes: dict[str, Any] = {parameter: int(value)}
        world = partial(synthetic, **sizes)
        clusters = int(value) if parameter == "clusters" else 4
    return ClusterPart(f"{name}: {value:g}", world, compared, rounds, 1, clusters)


@lru_cache(maxsize=8)  # by seed: the decomposition takes longer than a short run
def _from_ratings(
    folder: Path, made: Callable[[Floats, int], LinearWorld], seed: int
) -> LinearWorld:
    return made(films(folder), seed)


@lru_cache(maxsize=1)
def films(folder: Path) -> Floats:
    """Return who gave 4 or 5 stars to which of the most rated films, for the busiest users."""
    ratings = read_ratings(subfolder(folder, FOLDER))
    table = popular(ratings[ratings[:, 2] >= LIKED][:, :2], columns=THINGS)
    order = np.argsort(-table.sum(axis=1), kind="stable")[:PEOPLE]
    return table[np.sort(order)]
