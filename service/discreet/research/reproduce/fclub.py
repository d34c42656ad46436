"""Regenerating the evaluation of CDP-FCLUB-DC: Figures 2a, 2b, 3a to 3e and 4, and Table 3.

Everybody meets the same users, offers and luck. Regret is against the best offered item by the
world's true means. "Published" is the paper's algorithm with its noise really applied; the authors'
program owes its figures to noise that never reaches a recommendation (its private regret does not
depend on epsilon, and every Gram matrix that it decides by has an integer trace).

How much is played: Figure 2a and Table 3 for 100,000 rounds and 5 seeds (1 or 2 for variants),
users in blocks and mixed; the served learner with and without sharing for 200,000 rounds, to see
from where sharing pays; the parameter studies 20,000 rounds and 1 seed a point; MovieLens and
Last.fm 10,000 rounds and 2 seeds. More of everything: `--rounds`, `--seeds`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.research.reproduce.fclub_algorithms import Contender
from discreet.research.reproduce.fclub_tables import told
from discreet.research.reproduce.fclub_trials import FclubTrial, Outcome
from discreet.research.reproduce.papers import ProgressWatcher, ReproductionOptions
from discreet.research.reproduce.tables import Reproduction
from discreet.research.reproduce.trials import play_all
from discreet.research.worlds.environments import Floats
from discreet.research.worlds.fclub import LinearWorld, rated, synthetic
from discreet.research.worlds.lastfm import listened, popular
from discreet.research.worlds.movielens import LIKED, read_ratings

ROUNDS, SEEDS = 100_000, 5
QUICK_ROUNDS, QUICK_SEEDS = 6_000, 1
PEOPLE, THINGS = 1_000, 1_000

ALONE = Contender("no sharing", "served")
SERVED = Contender("fclub", "served", 1.0, 1e-6, "count")
SERVED_LOOSE = Contender("fclub", "served", 1.0, 0.1, "count")
PUBLISHED = Contender("cdp-fclub-dc", "published", 1.0, 0.1, "determinant")

RIVALS = (
    Contender("linucb"),
    Contender("club"),
    Contender("sclub"),
    Contender("fclub"),
    Contender("fclub-dc", trigger="determinant"),
    Contender("homo-dc", trigger="determinant"),
)
MIXED_RIVALS = tuple(one for one in RIVALS if one.algorithm in ("linucb", "sclub"))
OTHERS = (
    Contender("fclub-dc", trigger="determinant", threshold=1.05),
    Contender("homo"),
    Contender("fclub", "served", None, None, "count"),
    Contender("fclub", "served", 1.0, 1e-6, "determinant"),
)

STUDIES: dict[str, tuple[str, tuple[float, ...]]] = {
    "figure-3a": ("dimensions", (5, 10, 15, 20)),
    "figure-3b": ("epsilon", (0.5, 1, 2, 4, 8)),
    "figure-3c": ("servers", (2, 4, 5, 8)),
    "figure-3d": ("clusters", (2, 4, 6, 8)),
    "figure-3e": ("users", (20, 40, 60, 80)),
}


@dataclass(frozen=True, slots=True)
class Part:
    """Contenders in one world, for some rounds and seeds."""

    name: str
    world: Callable[[int], LinearWorld]
    contenders: tuple[Contender, ...]
    rounds: int
    seeds: int
    clusters: int = 4

    def trials(self) -> list[FclubTrial]:
        """Return every run."""
        return [
            FclubTrial(contender, self.world, self.rounds, seed, self.clusters)
            for contender in self.contenders
            for seed in range(self.seeds)
        ]


def reproduce(options: ReproductionOptions, watch: ProgressWatcher) -> Reproduction:
    """Play everything and put the paper's numbers beside ours."""
    parts = planned(options)
    trials = [trial for part in parts for trial in part.trials()]
    total = sum(trial.rounds for trial in trials)
    played = 0

    def progress(at: int) -> None:
        nonlocal played
        played += trials[at].rounds
        watch(played, total, f"{trials[at].contender.label}, seed {trials[at].seed}")

    watch(0, total, "starting")
    runs = iter(play_all(trials, progress=progress, processes=options.processes))
    found: dict[str, list[Outcome]] = {part.name: [] for part in parts}
    for part in parts:
        for contender in part.contenders:
            outcome = Outcome(contender, tuple(next(runs) for _ in range(part.seeds)))
            found[part.name].append(outcome)
    return told(
        found,
        studies=STUDIES,
        rounds={part.name: part.rounds for part in parts},
        seeds=max(part.seeds for part in parts if part.name == "blocks"),
    )


def planned(options: ReproductionOptions) -> list[Part]:
    """Return what will be played."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    if seeds < 1:
        raise InvalidArgument("seeds", "must be at least 1")
    mixed = partial(synthetic, arrangement="mixed")
    long = (ALONE, SERVED)
    parts = [
        Part("blocks", synthetic, (*RIVALS, PUBLISHED, SERVED_LOOSE), rounds, seeds),
        Part("mixed", mixed, (*MIXED_RIVALS, SERVED_LOOSE), rounds, seeds),
        Part("blocks, long", synthetic, long, 2 * rounds, seeds),
        Part("mixed, long", mixed, long, 2 * rounds, seeds),
    ]
    short, few = max(100, rounds // 5), min(2, seeds)
    parts.append(Part("mixed, more", mixed, (PUBLISHED,), rounds, few))
    parts.append(Part("blocks, more", synthetic, OTHERS, rounds, 1))
    for name, (parameter, values) in STUDIES.items():
        if options.quick and name != "figure-3b":
            continue
        parts.extend(_study(name, parameter, value, short, 1) for value in values)
    if options.data is not None:
        players = (
            Contender("linucb"),
            Contender("club"),
            Contender("fclub-dc", trigger="determinant"),
            Contender("homo-dc", trigger="determinant"),
            PUBLISHED,
            ALONE,
            SERVED_LOOSE,
            SERVED,
        )
        for name, table in (("movielens", films), ("last.fm", artists)):
            table(options.data)  # so that a folder without the files is told at once
            world = partial(_from_table, table, options.data)
            parts.append(Part(name, world, players, max(100, short // 2), few))
    return parts


def _study(name: str, parameter: str, value: float, rounds: int, seeds: int) -> Part:
    players: tuple[Contender, ...] = (PUBLISHED, SERVED_LOOSE)
    clusters = 4
    if parameter == "epsilon":
        world: Callable[[int], LinearWorld] = synthetic
        players = tuple(replace(one, epsilon=value) for one in players)
    else:
        sizes: dict[str, Any] = {parameter: int(value)}
        world = partial(synthetic, **sizes)
        clusters = int(value) if parameter == "clusters" else 4
    return Part(f"{name}: {value:g}", world, players, rounds, seeds, clusters)


def _from_table(table: Callable[[Path], Floats], folder: Path, seed: int) -> LinearWorld:
    return rated(table(folder), seed)


@lru_cache(maxsize=1)
def films(folder: Path) -> Floats:
    """Return who gave 4 or 5 stars to which of the most rated films, for the busiest users."""
    folder = folder / "ml-1m" if (folder / "ml-1m").is_dir() else folder
    ratings = read_ratings(folder)
    return _busiest(popular(ratings[ratings[:, 2] >= LIKED][:, :2], columns=THINGS), PEOPLE)


@lru_cache(maxsize=1)
def artists(folder: Path) -> Floats:
    """Return who listened to which of the most heard artists, for the busiest users."""
    return _busiest(listened(folder, artists=THINGS), PEOPLE)


def _busiest(table: Floats, people: int) -> Floats:
    order = np.argsort(-table.sum(axis=1), kind="stable")[:people]
    return table[np.sort(order)]
