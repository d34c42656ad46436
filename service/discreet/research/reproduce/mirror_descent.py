"""The evaluation of distributed private online learning again: Figures 2 to 5.

The paper's data ("100,000 social data" with 10,000 dimensions) are not named. The social world of
`worlds.mirror_descent` takes their place: as many records, as many dimensions; MovieLens-1M beside
it if a path is given. Four questions: how regret depends on epsilon, on the topology, on sparsity,
and on the number of nodes. Three readings: as served, as published, and published without noise.
The served one calls the family's own `learning` and `model`, record by record; nodes release by a
simulated clock on which the stream lasts 50 seconds.

`accuracy` is that of the last quarter of the records, each predicted before it is learned from:
what the network has become. Regret is over all of them: what becoming it cost.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.research.reproduce.mirror_descent_claims import claims_of
from discreet.research.reproduce.mirror_descent_trials import (
    DELTA,
    MirrorRun,
    MirrorTrial,
    Reading,
)
from discreet.research.reproduce.node_topologies import TOPOLOGIES, Topology
from discreet.research.reproduce.papers import ProgressWatcher, ReproductionOptions
from discreet.research.reproduce.tables import Figure, Line, Panel, Reproduction, ResultTable
from discreet.research.reproduce.trials import run_all
from discreet.research.reproduce.verdicts import PaperClaim
from discreet.research.worlds.mirror_descent import DIMENSION, RECORDS, movielens, social

SEEDS, QUICK_SEEDS = 3, 2
QUICK_RECORDS = 16_000
NODES = 8
TRUNCATION = 2.0
EPSILONS = (0.1, 1.0, 10.0)
TRUNCATIONS = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0)
LASSOS = (0.0, 5.0, 20.0)
COUNTS = (4, 8, 12, 16)

PUBLISHED: dict[str, Any] = {
    "data": "100,000 social data of 10,000 dimensions, not named; 8 cores",
    "figure_2": "regret falls with epsilon; the non-private reading has the least",
    "figure_3": "topologies make no significant difference",
    "figure_4": {"best_sparsity_over_none": 0.18},
    "figure_5": {"accuracy_lost_with_4_more_nodes": 0.04},
}


@dataclass(frozen=True, slots=True)
class MirrorSetting:
    """What distinguishes one row from another. `lasso` is the row's lambda."""

    reading: Reading
    epsilon: float | None
    topology: Topology = "ring"
    nodes: int = NODES
    lasso: float = 0.0


SERVED = MirrorSetting("served", 1.0, lasso=TRUNCATION)
SERVED_EXACT = MirrorSetting("served", None)
NON_PRIVATE = MirrorSetting("non-private", None)


def settings() -> list[MirrorSetting]:
    """Return every setting of the four figures, once each."""
    published: list[tuple[Reading, float | None]] = [("published", 1.0), ("non-private", None)]
    wanted = [
        *(MirrorSetting("served", epsilon, lasso=TRUNCATION) for epsilon in EPSILONS),
        *(MirrorSetting("published", epsilon) for epsilon in (1.0, 10.0)),
        NON_PRIVATE,
        SERVED_EXACT,
        *(MirrorSetting("served", 1.0, topology=kind, lasso=TRUNCATION) for kind in TOPOLOGIES),
        *(MirrorSetting(*one, topology=kind) for one in published for kind in TOPOLOGIES),
        *(MirrorSetting("served", 1.0, lasso=lasso) for lasso in TRUNCATIONS),
        *(MirrorSetting(*one, lasso=lasso) for one in published for lasso in LASSOS),
        *(MirrorSetting("served", 1.0, nodes=nodes, lasso=TRUNCATION) for nodes in COUNTS),
        *(MirrorSetting(*one, nodes=nodes) for one in published for nodes in COUNTS),
        MirrorSetting("laplace-batches", 1.0, lasso=TRUNCATION),
    ]
    return list(dict.fromkeys(wanted))


def movielens_settings(*, quick: bool) -> list[MirrorSetting]:
    """Return what is worth asking of real ratings."""
    return [
        *(MirrorSetting("served", epsilon, lasso=TRUNCATION) for epsilon in EPSILONS),
        *(MirrorSetting("served", epsilon, lasso=x) for epsilon in (1.0, 10.0) for x in (0.0, 1.0)),
        *(() if quick else (MirrorSetting("published", 1.0),)),
        NON_PRIVATE,
        SERVED_EXACT,
    ]


@dataclass(frozen=True, slots=True)
class MirrorOutcome:
    """A setting's runs, one a seed."""

    setting: MirrorSetting
    runs: tuple[MirrorRun, ...]

    def row(self) -> dict[str, Any]:
        """Return the row that programs read."""
        regrets = [float(run.regret[-1]) for run in self.runs]
        return {
            "reading": self.setting.reading,
            "epsilon": self.setting.epsilon,
            "topology": self.setting.topology,
            "nodes": self.setting.nodes,
            "lambda": self.setting.lasso,
            "sparsity": float(np.mean([run.sparsity for run in self.runs])),
            "regret_mean": float(np.mean(regrets)),
            "regret_std": float(np.std(regrets, ddof=1)) if len(regrets) > 1 else 0.0,
            "accuracy": float(np.mean([run.late_accuracy for run in self.runs])),
        }

    def detail(self) -> dict[str, Any]:
        """Return everything else that is worth keeping."""
        return {
            **self.row(),
            "accuracy_overall": float(np.mean([run.accuracy for run in self.runs])),
            "accuracy_std": float(np.std([run.late_accuracy for run in self.runs])),
            "releases": self.runs[0].releases,
            "seconds": float(np.sum([run.seconds for run in self.runs])),
            "curve": {
                "records": self.runs[0].rounds.tolist(),
                "regret": np.mean([run.regret for run in self.runs], axis=0).tolist(),
                "right": np.mean([run.right for run in self.runs], axis=0).tolist(),
            },
        }


def reproduce(options: ReproductionOptions, watch: ProgressWatcher) -> Reproduction:
    """Run everything and put the paper's statements beside ours."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    records = options.rounds or (QUICK_RECORDS if options.quick else RECORDS)
    # A tenth of the features and of the interests: a sixth of the records then says as much.
    small = {"dimension": 1_000, "interests": 10} if options.quick else {}
    plans = {"social": (partial(social, records=records, **small), settings())}
    if options.data is not None:
        folder = options.data
        movielens(
            0, folder, records=records
        )  # a folder without the files is an error now, not in an hour
        world = partial(movielens, folder=folder, records=records)
        plans["movielens"] = (world, movielens_settings(quick=options.quick))
    # Seed by seed, so that a process keeps the records that it has just made.
    places = [
        (name, seed, setting)
        for name, (_, wanted) in plans.items()
        for seed in range(seeds)
        for setting in wanted
    ]
    trials = [
        MirrorTrial(
            reading=setting.reading,
            world=plans[name][0],
            rounds=records,
            seed=seed,
            epsilon=setting.epsilon,
            topology=setting.topology,
            nodes=setting.nodes,
            lasso=setting.lasso,
        )
        for name, seed, setting in places
    ]
    played = run_all(trials, watch=watch, processes=options.processes)
    runs = dict(zip(places, played, strict=True))
    found = {
        name: [
            MirrorOutcome(setting, tuple(runs[name, seed, setting] for seed in range(seeds)))
            for setting in wanted
        ]
        for name, (_, wanted) in plans.items()
    }
    outcomes = found["social"]
    return Reproduction(
        name="mirror-descent",
        seeds=seeds,
        quick=options.quick,
        claims=_claims(outcomes, dimension=small.get("dimension", DIMENSION), records=records),
        results=[one.row() for one in outcomes if one.setting.reading != "laplace-batches"],
        published=PUBLISHED,
        details={
            "records": records,
            "delta": DELTA,
            "environments": {name: [one.detail() for one in many] for name, many in found.items()},
        },
        tables=[_overview(name, many) for name, many in found.items()],
        figures=_figures(outcomes),
        notes=_notes(outcomes),
    )


def _claims(outcomes: Sequence[MirrorOutcome], *, dimension: int, records: int) -> list[PaperClaim]:
    usual = {"published": MirrorSetting("published", 1.0), "non-private": NON_PRIVATE}
    usual["served"] = SERVED

    def accuracy(reading: str, other: Mapping[str, Any]) -> float:
        return float(_of(outcomes, replace(usual[reading], **other)).row()["accuracy"])

    chosen = (MirrorSetting("published", 1.0), MirrorSetting("published", 10.0), NON_PRIVATE)
    return claims_of(
        accuracy,
        {one.epsilon: float(_of(outcomes, one).row()["regret_mean"]) for one in chosen},
        lassos=LASSOS,
        truncations=TRUNCATIONS,
        counts=COUNTS,
        dimension=dimension,
        records=records,
        nodes=NODES,
    )


def _overview(name: str, outcomes: Sequence[MirrorOutcome]) -> ResultTable:
    rows = []
    for one in outcomes:
        row = one.detail()
        rows.append(
            (
                row["reading"],
                "–" if row["epsilon"] is None else f"{row['epsilon']:g}",
                row["topology"],
                str(row["nodes"]),
                f"{row['lambda']:g}",
                f"{row['sparsity']:.1%}",
                f"{row['regret_mean']:,.0f} ± {row['regret_std']:,.0f}",
                f"{row['accuracy']:.1%}",
                f"{row['accuracy_overall']:.1%}",
                str(row["releases"]),
            )
        )
    columns = (
        *("reading", "ε", "topology", "nodes", "λ", "sparsity"),
        *("regret", "accuracy", "overall", "releases"),
    )
    return ResultTable(f"records: {name}", columns, rows)


def _of(outcomes: Sequence[MirrorOutcome], setting: MirrorSetting) -> MirrorOutcome:
    return next(one for one in outcomes if one.setting == setting)


def _curve(label: str, outcome: MirrorOutcome, *, accuracy: bool) -> Line:
    records = outcome.runs[0].rounds
    chosen = [run.right / records if accuracy else run.regret for run in outcome.runs]
    curves = np.array(chosen)
    return Line(label, records.tolist(), curves.mean(axis=0).tolist(), curves.std(axis=0).tolist())


def _points(label: str, x: Sequence[float], outcomes: Sequence[MirrorOutcome]) -> Line:
    found = np.array([[run.late_accuracy for run in one.runs] for one in outcomes])
    return Line(label, x, found.mean(axis=1).tolist(), found.std(axis=1).tolist())


def _figures(outcomes: Sequence[MirrorOutcome]) -> list[Figure]:
    served = [(f"served, ε={e:g}", MirrorSetting("served", e, lasso=TRUNCATION)) for e in EPSILONS]
    published = [
        (f"published, ε={one.setting.epsilon:g}", one.setting)
        for one in outcomes
        if one.setting.reading == "published"
    ]
    plain = [("non-private", NON_PRIVATE)]
    kinds = [
        (f"served, {kind}", MirrorSetting("served", 1.0, topology=kind, lasso=TRUNCATION))
        for kind in TOPOLOGIES
    ]
    as_published = [
        (f"published, {kind}", MirrorSetting("published", 1.0, topology=kind))
        for kind in TOPOLOGIES
    ]

    def curves(chosen: Sequence[tuple[str, MirrorSetting]], *, accuracy: bool) -> list[Line]:
        return [_curve(name, _of(outcomes, one), accuracy=accuracy) for name, one in chosen]

    def rows(chosen: Sequence[MirrorSetting]) -> Iterator[MirrorOutcome]:
        return (_of(outcomes, one) for one in chosen)

    by_truncation = list(rows([MirrorSetting("served", 1.0, lasso=x) for x in TRUNCATIONS]))
    by_lasso = list(rows([MirrorSetting("non-private", None, lasso=x) for x in LASSOS]))
    by_count = list(rows([MirrorSetting("served", 1.0, nodes=m, lasso=TRUNCATION) for m in COUNTS]))
    plain_by_count = list(rows([MirrorSetting("non-private", None, nodes=m) for m in COUNTS]))
    noisy_by_count = list(rows([MirrorSetting("published", 1.0, nodes=m) for m in COUNTS]))
    noisy_by_lasso = list(rows([MirrorSetting("published", 1.0, lasso=x) for x in LASSOS]))

    def sparsity(many: Sequence[MirrorOutcome]) -> list[float]:
        return [float(np.mean([run.sparsity for run in one.runs])) for one in many]

    return [
        Figure(
            "figure-2",
            "Figure 2: privacy",
            [
                Panel("regret", "records", "regret", curves([*served, *plain], accuracy=False)),
                Panel(
                    "accuracy so far",
                    "records",
                    "right / records",
                    curves([*served, *published, *plain], accuracy=True),
                ),
            ],
        ),
        Figure(
            "figure-3",
            "Figure 3: topology, at ε=1",
            [
                Panel("regret", "records", "regret", curves(kinds, accuracy=False)),
                Panel(
                    "accuracy so far",
                    "records",
                    "right / records",
                    curves([*kinds, *as_published], accuracy=True),
                ),
            ],
        ),
        Figure(
            "figure-4",
            "Figure 4: sparsity",
            [
                Panel(
                    "accuracy of the last quarter",
                    "share of features that do not count",
                    "accuracy",
                    [
                        _points("served, ε=1", sparsity(by_truncation), by_truncation),
                        _points("non-private", sparsity(by_lasso), by_lasso),
                        _points("published, ε=1", sparsity(noisy_by_lasso), noisy_by_lasso),
                    ],
                )
            ],
        ),
        Figure(
            "figure-5",
            "Figure 5: number of nodes",
            [
                Panel(
                    "accuracy of the last quarter",
                    "nodes",
                    "accuracy",
                    [
                        _points("served, ε=1", COUNTS, by_count),
                        _points("non-private", COUNTS, plain_by_count),
                        _points("published, ε=1", COUNTS, noisy_by_count),
                    ],
                )
            ],
        ),
    ]


def _notes(outcomes: Sequence[MirrorOutcome]) -> list[str]:
    def accuracy(setting: MirrorSetting) -> float:
        return float(_of(outcomes, setting).row()["accuracy"])

    exact = accuracy(NON_PRIVATE)
    best = max(accuracy(MirrorSetting("served", 1.0, lasso=x)) for x in TRUNCATIONS)
    none = accuracy(MirrorSetting("served", 1.0, lasso=0.0))
    kinds = [
        accuracy(MirrorSetting("served", 1.0, topology=k, lasso=TRUNCATION)) for k in TOPOLOGIES
    ]
    counts = [accuracy(MirrorSetting("served", 1.0, nodes=m, lasso=TRUNCATION)) for m in COUNTS]
    lost = max(a - b for a, b in pairwise(counts))
    published = accuracy(MirrorSetting("published", 1.0))
    return [
        f"served at ε=1: {accuracy(SERVED):.1%}, {1 - accuracy(SERVED) / exact:.1%} below the "
        f"non-private {exact:.1%}; served with exact sums: {accuracy(SERVED_EXACT):.1%}; "
        f"published at ε=1: {published:.1%}",
        f"the best sparsity is {best / none - 1:.1%} more accurate than none (published: 18%)",
        f"topologies differ by {max(kinds) - min(kinds):.1%}",
        f"4 more nodes cost at most {lost:.1%} (published: 4%)",
        f"Laplace noise for the L1 norm instead of Gaussian noise for the L2 norm: "
        f"{accuracy(MirrorSetting('laplace-batches', 1.0, lasso=TRUNCATION)):.1%} at ε=1",
    ]
