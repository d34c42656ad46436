"""The evaluation of EpicRec again: Figures 4, 5, 6 and 7.

Figure 4 needs no data. Figures 5 to 7 are regenerated on MovieLens-1M and on the Yelp graph from
the folder of data sets, which takes the place of the Yelp data of a closed challenge; where neither
is at hand, on a synthetic crowd. `epicrec_trials` says how people, server and cross-validation are
set up. The paper leaves open what its server did with items that nobody rated, so two reference
points stand beside every loss: the raw history, and nothing at all.

"Ours" is what a hub sends (`discreet.families.collaborative.on_device.perturbation`). The rivals
share the paper's phase 2, as in the paper. Beside these rows stand our calibration alone, with that
same phase 2, and what a hub gains where the popularity of items is public.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.families.collaborative.on_device.calibration import calibrate, least_noise
from discreet.families.collaborative.on_device.catalogue import (
    PERTURBED,
    Catalogue,
    Concerns,
    Level,
    scope_of,
)
from discreet.families.collaborative.on_device.perturbation import perturb
from discreet.families.collaborative.on_device.quantification import search
from discreet.privacy.noise import SystemNoise
from discreet.research.reproduce.epicrec_tables import (
    SYSTEMS,
    Table,
    figures,
    references,
    row,
    rows,
    spreads,
    tables,
)
from discreet.research.reproduce.epicrec_trials import (
    CALIBRATION,
    FOLDS,
    PUBLIC,
    Floats,
    Fold,
    FoldTotals,
    Key,
    load,
)
from discreet.research.reproduce.papers import ProgressWatcher, ReproductionOptions
from discreet.research.reproduce.tables import Reproduction, ResultTable
from discreet.research.reproduce.trials import run_all
from discreet.research.rivals.epicrec import Rival, plain
from discreet.research.worlds.environments import seeded

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0)
QUICK_EPSILONS = (0.2, 1.0)
PEOPLE, QUICK_PEOPLE = 16, 8
SEEDS, QUICK_SEEDS = 2, 1
RIVALS = tuple(rival.value for rival in Rival)
_TIMED = 20
FILES = {"movielens": "ml-1m", "yelp": "yelp-hin"}

EXAMPLE = Catalogue.of(
    {
        "item 1": ("1", "2", "3"),
        "item 2": ("1", "3"),
        "item 3": ("1", "3", "4"),
        "item 4": ("1", "5"),
        "item 5": ("2", "4"),
    }
)

PUBLISHED: dict[str, Any] = {
    "example": [3.61, 2.36, 3.34, 2.36, 1.38],
    "example_mean": 2.61,
    "example_laplace": 3.0,
    "quantified_epsilon": {
        "movielens": {"single": 0.23, "category": 0.29},
        "yelp": {"single": 0.25, "category": 0.33},
    },
    "mae_loss": {"movielens": "up to 5% at 0.2", "yelp": "up to 3% at 0.3"},
    "aggregate_mae": "up to 10% below the rivals",
    "seconds": {"single": 0.7, "category": 1.5},
}


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """What is known of a data set before anybody's history is looked at."""

    epsilons: Mapping[str, tuple[float, float, float]]
    seconds: Mapping[str, float]
    mean_magnitude: float
    plain_magnitude: float
    groups: int
    maximal_rows: int
    typical: int

    def detail(self) -> dict[str, Any]:
        """Return it for the JSON file."""
        return {
            "quantified_epsilon": {
                system: {"mean": mean, "least": least, "most": most}
                for system, (mean, least, most) in self.epsilons.items()
            },
            "seconds": dict(self.seconds),
            "mean_magnitude_at_1": self.mean_magnitude,
            "laplace_magnitude_at_1": self.plain_magnitude,
            "expected_error_below_laplace": 1 - self.mean_magnitude / self.plain_magnitude,
            "groups": self.groups,
            "maximal_rows": self.maximal_rows,
            "typical_history": self.typical,
        }


def reproduce(options: ReproductionOptions, watch: ProgressWatcher) -> Reproduction:
    """Run everything and put the paper's numbers beside ours."""
    quick = options.quick
    seeds = options.seeds or (QUICK_SEEDS if quick else SEEDS)
    people = options.rounds or (QUICK_PEOPLE if quick else PEOPLE)
    folds = 2 if quick else FOLDS
    folder, datasets, notes = _found(options.data)
    known: dict[str, PublicFacts] = {}
    trials: list[Fold] = []
    for at, name in enumerate(datasets):
        watch(at, len(datasets), f"{name}: calibrating and quantifying")
        rated = load(name, folder)
        known[name] = _public_facts(rated.catalogue, rated.typical, quick)
        epsilons = {
            system: tuple(sorted({*(QUICK_EPSILONS if quick else EPSILONS), quantified[0]}))
            for system, quantified in known[name].epsilons.items()
        }
        trials += [Fold(name, folder, number, people, seeds, epsilons) for number in range(folds)]
    outcomes = run_all(trials, watch=watch, processes=options.processes)
    found = {name: _added(one for one in outcomes if one.fold.dataset == name) for name in datasets}
    if quick:
        notes = [*notes, f"quick: {folds} of {FOLDS} folds, {people} people in each"]
    else:
        notes = [*notes, f"{FOLDS} folds, {people} sampled people in each, {seeds} seeds"]
    return report(found, known, seeds=seeds, notes=notes)


def report(
    found: Mapping[str, Table],
    known: Mapping[str, PublicFacts],
    *,
    seeds: int,
    notes: Sequence[str],
) -> Reproduction:
    """Return what was found of every data set."""
    example = calibrate(catalogue=EXAMPLE, epsilon=1.0)
    return Reproduction(
        name="epicrec",
        seeds=seeds,
        results=[one for name in found for one in rows(name, found[name], *RIVALS)],
        published=PUBLISHED,
        extras={"example": list(example.magnitudes)},
        details={
            "example_mean": example.mean,
            "public": {name: one.detail() for name, one in known.items()},
            "references": {name: references(table) for name, table in found.items()},
            "with_public_popularity": [
                one for name in found for one in rows(name, found[name], PUBLIC)
            ],
            "calibration_only": [
                one for name in found for one in rows(name, found[name], CALIBRATION)
            ],
            "spreads": {name: spreads(table) for name, table in found.items()},
        },
        tables=[
            _example_table(example.magnitudes, example.mean),
            _public_table(known),
            *(table for name in found for table in tables(name, found[name])),
        ],
        figures=figures(found),
        notes=[*_notes(found, known), *notes],
    )


def _example_table(magnitudes: Sequence[float], mean: float) -> ResultTable:
    lines = [
        ("published", *(f"{each:.2f}" for each in PUBLISHED["example"]), "2.61"),
        ("ours", *(f"{each:.2f}" for each in magnitudes), f"{mean:.2f}"),
        ("plain Laplace", *(["3"] * 5), "3"),
    ]
    return ResultTable("Figure 4: magnitudes of the example", ["", *"12345", "mean"], lines)


def _public_table(known: Mapping[str, PublicFacts]) -> ResultTable:
    lines = []
    for name, one in known.items():
        for system, (mean, least, most) in one.epsilons.items():
            published = PUBLISHED["quantified_epsilon"].get(name, {}).get(system)
            lines.append(
                (
                    f"{name}, {system}",
                    "–" if published is None else f"{published:g}",
                    f"{mean:g} ({least:g} to {most:g})",
                    f"{one.mean_magnitude:.4f} / {one.plain_magnitude:g}",
                    f"{one.seconds['calibration'] * 1000:.0f}",
                    f"{one.seconds['perturbation_' + system] * 1000:.0f}",
                )
            )
    columns = ("", "published ε", "ε (range)", "magnitude / Laplace", "calibration", "release")
    title = "Quantified epsilon, mean magnitude at ε=1, and milliseconds of one core"
    return ResultTable(title, columns, lines)


def _notes(found: Mapping[str, Table], known: Mapping[str, PublicFacts]) -> list[str]:
    notes = []
    for name, table in found.items():
        one = known[name]
        below = 1 - one.mean_magnitude / one.plain_magnitude
        notes.append(f"{name}: expected error of the counts {below:.1%} below plain Laplace")
        epsilon = one.epsilons["single"][0]
        ours = row(name, table, ("single", "ours", epsilon))
        better = row(name, table, ("single", PUBLIC, epsilon))
        nothing = references(table)["nothing"]
        notes.append(
            f"{name} at the quantified ε={epsilon:g}: MAE loss {ours['mae_loss']:.1%}, with public "
            f"popularity {better['mae_loss']:.1%}; sending nothing at all {nothing['mae_loss']:.1%}"
        )
    return notes


def _found(data: Path | None) -> tuple[Path | None, tuple[str, ...], list[str]]:
    """Return which data sets are there, and notes on those that are not."""
    there = [name for name, sub in FILES.items() if data is not None and (data / sub).is_dir()]
    if data is not None and not there:
        raise InvalidArgument("data", f"{data} has none of {', '.join(FILES.values())}")
    missing = [name for name in FILES if name not in there]
    notes = []
    if missing:
        notes.append(f"left out without data (--data): {', '.join(missing)}")
    if not there:
        return None, ("synthetic",), [*notes, "Figures 5 to 7 are of a synthetic crowd"]
    return data, tuple(there), notes


def _public_facts(catalogue: Catalogue, typical: int, quick: bool) -> PublicFacts:
    """Calibrate and quantify, and time it: public facts only."""
    scope = scope_of(catalogue, PERTURBED)
    start = time.thread_time()
    least_noise(scope.rows)
    seconds = {"calibration": time.thread_time() - start}
    repeats = 3 if quick else 10
    spans: dict[str, tuple[float, float, float]] = {}
    for system in SYSTEMS:
        values = []
        rng = seeded("quantify " + system, 0)
        start = time.thread_time()
        for _ in range(repeats):
            concerns = PERTURBED if system == "single" else _choice(catalogue, rng)
            values.append(
                search(catalogue=catalogue, concerns=concerns, typical=typical, rng=rng).epsilon
            )
        seconds[f"quantification_{system}"] = (time.thread_time() - start) / repeats
        seconds[f"perturbation_{system}"] = _seconds_a_profile(catalogue, system, typical, rng)
        spans[system] = (round(float(np.mean(values)), 2), min(values), max(values))
    return PublicFacts(
        epsilons=spans,
        seconds=seconds,
        mean_magnitude=calibrate(catalogue=catalogue, epsilon=1.0).mean,
        plain_magnitude=plain(catalogue=catalogue, epsilon=1.0, concerns=PERTURBED).mean,
        groups=len(catalogue.members),
        maximal_rows=len(scope.rows),
        typical=typical,
    )


def _seconds_a_profile(
    catalogue: Catalogue, system: str, typical: int, rng: np.random.Generator
) -> float:
    """Time the shipped release with the operating system's noise, after calibration.

    As in the trials, these are seconds of the processor.
    """
    total = 0.0
    for _ in range(_TIMED):
        concerns = PERTURBED if system == "single" else _choice(catalogue, rng)
        history = frozenset(rng.choice(catalogue.items, typical, replace=False).tolist())
        calibrate(catalogue=catalogue, epsilon=0.25, concerns=concerns)
        start = time.thread_time()
        perturb(
            history=history,
            catalogue=catalogue,
            concerns=concerns,
            epsilon=0.25,
            noise=SystemNoise(),
        )
        total += time.thread_time() - start
    return total / _TIMED


def _choice(catalogue: Catalogue, rng: np.random.Generator) -> Concerns:
    """Return levels at random for all categories but one, which is perturbed."""
    levels = tuple(Level)
    chosen = {name: levels[rng.integers(len(levels))] for name in catalogue.categories}
    chosen[str(rng.choice(catalogue.categories))] = Level.PERTURBED
    return Concerns.choose(chosen)


def _added(folds: Iterable[FoldTotals]) -> dict[Key, Floats]:
    total: dict[Key, Floats] = {}
    for totals in folds:
        for key, table in totals.by_method.items():
            total[key] = total[key] + table if key in total else table
    return total
