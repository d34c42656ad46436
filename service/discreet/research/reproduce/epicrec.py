"""The evaluation of EpicRec again: Figures 4, 5, 6 and 7, Theorems 2 to 5.

Figure 4 needs no data. Figures 5 to 7 are regenerated on MovieLens-1M and on the Yelp graph from
the folder of data sets, which takes the place of the Yelp data of a closed challenge; where neither
is at hand, on a synthetic crowd. `epicrec_trials` says how people and server are set up: as in the
paper, everybody is perturbed, and the rivals share the paper's phase 2 as published. The paper
compares with nobody who sends nothing; here the raw history and nothing at all stand beside it.

"Served" is what a hub sends (`discreet.families.collaborative.on_device.perturbation`), with and
without public popularity. It is no part of any claim.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
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
from discreet.research.noise import SeededNoise
from discreet.research.published.epicrec import published
from discreet.research.published.epicrec_budget import quantified
from discreet.research.reproduce.epicrec_claims import SECONDS, claims_of
from discreet.research.reproduce.epicrec_crowd import Floats, load, random_concerns
from discreet.research.reproduce.epicrec_tables import (
    QUANTIFIED,
    SYSTEMS,
    Table,
    figures,
    loss,
    references,
    rows,
    tables,
)
from discreet.research.reproduce.epicrec_theorems import BEYOND, EXAMPLE, LeakRuns, PublicFacts
from discreet.research.reproduce.epicrec_trials import (
    COUNTED_ONLY,
    METHODS,
    NOTHING,
    PUBLISHED,
    RAW,
    SERVED,
    SPARSE,
    CrowdTotals,
    Key,
    PerturbedCrowd,
)
from discreet.research.reproduce.papers import ProgressWatcher, ReproductionOptions
from discreet.research.reproduce.tables import Reproduction, ResultTable
from discreet.research.reproduce.trials import run_all
from discreet.research.rivals.epicrec import plain
from discreet.research.worlds.environments import seeded

EPSILONS = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
COUNTED = (0.05, 0.2, 1.0)
"""Those of the methods of which only the counts are looked at."""
QUICK_EPSILONS = (0.05, 0.2, 0.3, 1.0)
PEOPLE, QUICK_PEOPLE = 500, 50
_TIMED = 20
_LEAK_RUNS = 40
FILES = {"movielens": "ml-1m", "yelp": "yelp-hin"}

FIVE_ITEMS = Catalogue.of(
    {
        "item 1": ("1", "2", "3"),
        "item 2": ("1", "3"),
        "item 3": ("1", "3", "4"),
        "item 4": ("1", "5"),
        "item 5": ("2", "4"),
    }
)
TELLING = Catalogue.of({"told": ("A", "P"), **{f"other {at}": ("P",) for at in range(9)}})
"""The item "told" is protected, being in P, and the only one in A, which says "all"."""

PRINTED: dict[str, Any] = {
    "example": list(EXAMPLE),
    "example_mean": 2.61,
    "example_laplace": 3.0,
    "quantified_epsilon": QUANTIFIED,
    "mae_loss": {"movielens": "up to 5% at 0.2", "yelp": "up to 3% at 0.3"},
    "aggregate_mae": "up to 10% below the rivals",
    "no_release": "less than 5% worse",
    "seconds": SECONDS,
}


def reproduce(options: ReproductionOptions, watch: ProgressWatcher) -> Reproduction:
    """Run everything and put the paper's numbers beside ours."""
    quick = options.quick
    seeds = options.seeds or 1
    people = options.rounds or (QUICK_PEOPLE if quick else PEOPLE)
    folder, datasets, notes = _found(options.data)
    known: dict[str, PublicFacts] = {}
    for at, name in enumerate(datasets):
        watch(at, len(datasets), f"{name}: calibrating and quantifying")
        rated = load(name, folder)
        known[name] = _public_facts(rated.catalogue, rated.typical, quick)
    trials = [
        PerturbedCrowd(name, folder, people, seed, system, method, several)
        for name in datasets
        for seed in range(seeds)
        for system, method, several in _settings(quick)
    ]
    outcomes = run_all(trials, watch=watch, processes=options.processes)
    found = {
        name: _stacked(one for one in outcomes if one.trial.dataset == name) for name in datasets
    }
    each = "of a data set, drawn anew for each seed" if seeds > 1 else "of each data set"
    notes = [*notes, f"{'quick: ' if quick else ''}{people} people {each}, all of them perturbed"]
    return report(found, known, seeds=seeds, notes=notes, quick=quick)


def _settings(quick: bool) -> list[tuple[str, str, tuple[float, ...]]]:
    every = QUICK_EPSILONS if quick else EPSILONS
    settings: list[tuple[str, str, tuple[float, ...]]] = [
        (RAW, RAW, ()),
        (NOTHING, NOTHING, ()),
    ]
    for system in SYSTEMS:
        for method in METHODS:
            several = COUNTED if method in COUNTED_ONLY else every
            beyond = (BEYOND,) if method in (PUBLISHED, SPARSE) else ()
            settings.append((system, method, (*several, *beyond)))
    return settings


def report(
    found: Mapping[str, Table],
    known: Mapping[str, PublicFacts],
    *,
    seeds: int,
    notes: Sequence[str],
    quick: bool,
) -> Reproduction:
    """Return what was found of every data set."""
    example = calibrate(catalogue=FIVE_ITEMS, epsilon=1.0)
    return Reproduction(
        name="epicrec",
        seeds=seeds,
        quick=quick,
        claims=claims_of(found, known, example=example.magnitudes, leak=_leak()),
        results=[one for name in found for one in rows(name, found[name])],
        published=PRINTED,
        extras={"example": list(example.magnitudes)},
        details={
            "example_mean": example.mean,
            "public": {name: one.detail() for name, one in known.items()},
            "references": {name: references(table) for name, table in found.items()},
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
        ("published", *(f"{each:.2f}" for each in PRINTED["example"]), "2.61"),
        ("ours", *(f"{each:.2f}" for each in magnitudes), f"{mean:.2f}"),
        ("plain Laplace", *(["3"] * 5), "3"),
    ]
    return ResultTable("Figure 4: magnitudes of the example", ["", *"12345", "mean"], lines)


def _public_table(known: Mapping[str, PublicFacts]) -> ResultTable:
    lines = []
    for name, one in known.items():
        for system in SYSTEMS:
            printed = QUANTIFIED.get(name, {}).get(system)
            shown = [one.epsilons[system]] if system == "single" else [one.by_category]
            shown.append(one.epsilons[system])
            lines.append(
                (
                    f"{name}, {system}",
                    "–" if printed is None else f"{printed:g}",
                    *(f"{mean:g} ({least:g} to {most:g})" for mean, least, most in shown),
                    f"{one.mean_magnitude:.4f} / {one.plain_magnitude:g}",
                    f"{one.seconds['calibration'] * 1000:.0f}",
                    f"{one.seconds['perturbation_' + system] * 1000:.0f}",
                )
            )
    columns = ("", "published", "as published", "served", "magnitude / Laplace", "calibration")
    title = "Quantified epsilon, mean magnitude at ε=1, and milliseconds of one core, as served"
    return ResultTable(title, (*columns, "release"), lines)


def _notes(found: Mapping[str, Table], known: Mapping[str, PublicFacts]) -> list[str]:
    notes = []
    for name, table in found.items():
        one = known[name]
        less = 1 - one.mean_magnitude / one.plain_magnitude
        notes.append(f"{name}: expected error of the counts {less:.1%} below plain Laplace")
        as_served = loss(table["single", SERVED, 0.2])
        nothing = references(table)[NOTHING]
        notes.append(
            f"{name} at ε=0.2, as served: MAE loss {as_served.percent()}; sending nothing at all "
            f"{nothing['mae_loss']:.1%}"
        )
    return notes


def _leak() -> LeakRuns:
    """Let M-DPDP send a history with an item, and the same one without it."""
    sent = [
        "told"
        in published(
            history=history,
            catalogue=TELLING,
            concerns=Concerns.choose({"A": Level.ALL}),
            epsilon=0.1,
            noise=SeededNoise(seed),
        ).items
        for history in ({"told", "other 1"}, {"other 1"})
        for seed in range(_LEAK_RUNS)
    ]
    return LeakRuns(_LEAK_RUNS, sum(sent[:_LEAK_RUNS]), sum(sent[_LEAK_RUNS:]))


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
        rng = seeded("quantify " + system, 0)
        levels = [
            PERTURBED if system == "single" else random_concerns(catalogue, rng)
            for _ in range(repeats)
        ]
        start = time.thread_time()
        spans[system] = _span(
            search(catalogue=catalogue, concerns=one, typical=typical, rng=rng).epsilon
            for one in levels
        )
        seconds[f"quantification_{system}"] = (time.thread_time() - start) / repeats
        seconds[f"perturbation_{system}"] = _seconds_a_profile(catalogue, system, typical, rng)
    calibration = calibrate(catalogue=catalogue, epsilon=1.0)
    return PublicFacts(
        epsilons=spans,
        by_category=_span(
            quantified(catalogue=catalogue, concerns=one, typical=typical, rng=rng)
            for one in levels
        ),
        line_7=_span(
            quantified(
                catalogue=catalogue, concerns=PERTURBED, typical=typical, rng=rng, rule="line 7"
            )
            for _ in range(repeats)
        ),
        seconds=seconds,
        mean_magnitude=calibration.mean,
        plain_magnitude=plain(catalogue=catalogue, epsilon=1.0, concerns=PERTURBED).mean,
        exact_loss=float(calibration.loss),
        groups=len(catalogue.members),
        maximal_rows=len(scope.rows),
        typical=typical,
    )


def _span(values: Iterable[float]) -> tuple[float, float, float]:
    many = list(values)
    return round(float(np.mean(many)), 2), min(many), max(many)


def _seconds_a_profile(
    catalogue: Catalogue, system: str, typical: int, rng: np.random.Generator
) -> float:
    """Time the shipped release with the operating system's noise, after calibration.

    As in the trials, these are seconds of the processor.
    """
    total = 0.0
    for _ in range(_TIMED):
        concerns = PERTURBED if system == "single" else random_concerns(catalogue, rng)
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


def _stacked(outcomes: Iterable[CrowdTotals]) -> dict[Key, Floats]:
    """Put the tenths of all seeds below each other."""
    parts: dict[Key, list[Floats]] = {}
    for one in outcomes:
        for key, table in one.by_method.items():
            parts.setdefault(key, []).append(table)
    return {key: np.concatenate(many) for key, many in parts.items()}
