"""The evaluation of P-DAP again: Figures 6, 7 and 8, Tables II, III and IV.

The authors' data (Sina Weibo users, Youku videos) are not available. A synthetic environment takes
their place: four vendors with five items each, two-dimensional contexts in eight clumps, 30,000
arrivals, a new world for every seed. All algorithms meet the same arrivals with the same luck, and
can reach the same twenty items: DAP, DUP, P-DAP and GP-DAP as four vendors that forward to one
another, CAP and the served recommender as one that owns them all. To tell pooling from the
mechanism, P-DAP is also run as one vendor that owns everything, and the served one as four vendors.

The served recommender runs twice: with exact feedback, as all published algorithms learn, and with
the default epsilon of 1 for each piece of feedback.

Regret is against the best item for each arrival by the world's true means; accuracy is the
paper's: total reward divided by arrivals. The best possible accuracy here is about 0.8, not 1.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from discreet.errors import InvalidArgument
from discreet.research.reproduce.p_dap_algorithms import (
    SERVED,
    MakeWorld,
    PartitionAlgorithm,
    PartitionTrial,
)
from discreet.research.reproduce.p_dap_claims import claims_of
from discreet.research.reproduce.p_dap_outcomes import PartitionOutcome, outcome_of
from discreet.research.reproduce.papers import ProgressWatcher, ReproductionOptions
from discreet.research.reproduce.tables import Figure, Line, Panel, Reproduction, ResultTable
from discreet.research.reproduce.trials import run_all
from discreet.research.worlds.contexts import ClusteredWorld, catalogues_of
from discreet.research.worlds.movielens import MovieLens

VENDORS, ITEMS = 4, 5
ROUNDS, SEEDS = 30_000, 5
QUICK_ROUNDS, QUICK_SEEDS = 20_000, 1
FILMS = 20

EPSILONS = (0.01, 0.1, 1.0)
FEEDBACK = (None, 1.0)
AS_PUBLISHED = (
    PartitionAlgorithm("dap"),
    PartitionAlgorithm("cap"),
    PartitionAlgorithm("dup"),
    PartitionAlgorithm("dup-larger"),
    *(PartitionAlgorithm("p-dap", epsilon) for epsilon in EPSILONS),
    *(PartitionAlgorithm("gp-dap", epsilon) for epsilon in EPSILONS),
)
SERVED_ALONE = tuple(
    PartitionAlgorithm("served", epsilon, feedback)
    for feedback in FEEDBACK
    for epsilon in (*EPSILONS, 4.0)
)
QUICK = (
    *AS_PUBLISHED,
    *(PartitionAlgorithm("served", epsilon) for epsilon in (0.01, 1.0)),
    PartitionAlgorithm("served", 1.0, 1.0),
    PartitionAlgorithm("served-vendors", 1.0),
)
"""What a small run plays: everything that a claim is about, and few of the served ones, which
take most of the time."""
COMPARED = (
    *AS_PUBLISHED,
    *SERVED_ALONE,
    *(PartitionAlgorithm("served-vendors", epsilon) for epsilon in (*EPSILONS, 4.0)),
)
ASIDE = (
    *(PartitionAlgorithm("p-dap-alone", epsilon) for epsilon in (0.01, 1.0)),
    PartitionAlgorithm("served-vendors", 1.0, 1.0),
)
"""In the tables and the details, not among the rows of the comparison."""

PUBLISHED: dict[str, Any] = {
    "data": "Sina Weibo users and Youku videos; four vendors, 1,000 videos each, 200,000 arrivals",
    "table_2": {
        "arrivals": [5_000, 10_000, 20_000, 50_000],
        "cap": [0.7032, 0.7536, 0.7688, 0.7734],
        "dup": [0.7332, 0.7452, 0.7478, 0.7508],
        "dap": [0.8734, 0.9021, 0.9102, 0.9217],
    },
    "table_3": {
        "arrivals": [5_000, 10_000, 20_000, 50_000],
        "p-dap 0.01": [0.7754, 0.7875, 0.7992, 0.8012],
        "p-dap 0.1": [0.7778, 0.7935, 0.8034, 0.8116],
        "p-dap 1": [0.7896, 0.7924, 0.8106, 0.8212],
        "dap": [0.8684, 0.8928, 0.9023, 0.9156],
    },
    "table_4": {
        "arrivals": [5_000, 10_000, 15_000, 20_000, 25_000, 30_000],
        "gp-dap": [0.8244, 0.8436, 0.8523, 0.8674, 0.8733, 0.8817],
        "p-dap 0.01": [0.7731, 0.7787, 0.7842, 0.7914, 0.8006, 0.8164],
    },
    "gp_dap_regret_below_p_dap": 0.32,
    "average_regret_at_most": {"dap": 0.02, "p-dap 0.01": 0.03},
}


def default_world(seed: int) -> ClusteredWorld:
    """Return the default environment of this seed."""
    return ClusteredWorld(catalogues=catalogues_of(vendors=VENDORS, items=ITEMS), seed=seed)


def reproduce(options: ReproductionOptions, watch: ProgressWatcher) -> Reproduction:
    """Run everything and put the paper's numbers beside ours."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    if seeds < 1:
        raise InvalidArgument("seeds", "must be at least 1")
    algorithms = QUICK if options.quick else (*COMPARED, *ASIDE)
    worlds: dict[str, MakeWorld] = {"default": default_world}
    if options.data is not None:
        worlds["movielens"] = partial(MovieLens.load, options.data, vendors=VENDORS, films=FILMS)
        worlds["movielens"](0)  # a folder without the files is an error now, not in an hour
    trials = [
        PartitionTrial(algorithm, world, rounds, seed)
        for world in worlds.values()
        for algorithm in algorithms
        for seed in range(seeds)
    ]
    runs = iter(run_all(trials, watch=watch, processes=options.processes))
    found = {
        name: [
            PartitionOutcome(algorithm, tuple(next(runs) for _ in range(seeds)))
            for algorithm in algorithms
        ]
        for name in worlds
    }
    return report(found, seeds=seeds, rounds=rounds, quick=options.quick)


def report(
    found: Mapping[str, Sequence[PartitionOutcome]], *, seeds: int, rounds: int, quick: bool
) -> Reproduction:
    """Return the outcomes of every environment as rows, tables and figures."""
    default = found["default"]
    return Reproduction(
        name="p-dap",
        seeds=seeds,
        quick=quick,
        claims=claims_of(default, rounds=rounds, vendors=VENDORS, items=ITEMS),
        results=[one.row() for one in default if one.algorithm not in ASIDE],
        published=PUBLISHED,
        details={
            "rounds": rounds,
            "environments": {name: [one.detail() for one in many] for name, many in found.items()},
        },
        tables=[
            *(_overview(name, many) for name, many in found.items()),
            *_paper_tables(default),
        ],
        figures=_figures(default),
        notes=_notes(default),
    )


def _overview(name: str, outcomes: Sequence[PartitionOutcome]) -> ResultTable:
    rows = []
    for one in outcomes:
        detail = one.detail()
        rows.append(
            (
                one.algorithm.label,
                f"{detail['regret_mean']:,.0f} ± {detail['regret_std']:,.0f}",
                f"{detail['accuracy']:.1%}",
                f"{detail['share_of_optimal']:.1%}",
                f"{detail['share_of_optimal_in_last_quarter']:.1%}",
            )
        )
    columns = ("algorithm", "regret", "accuracy", "of optimal", "in the last quarter")
    return ResultTable(f"environment: {name}", columns, rows)


def _paper_tables(outcomes: Sequence[PartitionOutcome]) -> list[ResultTable]:
    tables = []
    titles = {"table_2": "Table II", "table_3": "Table III", "table_4": "Table IV"}
    for key, title in titles.items():
        table = PUBLISHED[key]
        names = [name for name in table if name != "arrivals"]
        rows = []
        for at, arrivals in enumerate(table["arrivals"]):
            row = [f"{arrivals:,}"]
            for name in names:
                algorithm, _, epsilon = name.partition(" ")
                if name == "gp-dap":
                    epsilon = "0.01"
                ours = outcome_of(outcomes, algorithm, float(epsilon) if epsilon else None)
                accuracy = ours.accuracy_at(arrivals)
                mine = "–" if accuracy is None else f"{accuracy:.1%}"
                row.append(f"{table[name][at]:.1%} / {mine}")
            rows.append(row)
        tables.append(
            ResultTable(
                f"{title}: accuracy after N arrivals, published / ours", ["N", *names], rows
            )
        )
    return tables


def _line(outcome: PartitionOutcome, of: Literal["regret", "average", "accuracy"]) -> Line:
    rounds = outcome.runs[0].rounds
    curves = np.array([run.reward if of == "accuracy" else run.regret for run in outcome.runs])
    if of != "regret":
        curves = curves / rounds
    spread = curves.std(axis=0)
    return Line(
        outcome.algorithm.label, rounds.tolist(), curves.mean(axis=0).tolist(), spread.tolist()
    )


def _accuracies(picked: Sequence[PartitionOutcome], table: Mapping[str, Any]) -> Panel:
    """Draw accuracies, each with the paper's behind it."""
    lines = []
    for one in picked:
        lines.append(_line(one, "accuracy"))
        name = _table_name(one.algorithm)
        if name in table:
            lines.append(Line(f"{name}, the paper", table["arrivals"], table[name], published=True))
    return Panel("accuracy", "arrivals", "reward / arrivals", lines)


def _averages(picked: Sequence[PartitionOutcome], most_of: Mapping[str, float]) -> Panel:
    """Draw average regrets, with what the paper says they end below."""
    lines = []
    for one in picked:
        lines.append(_line(one, "average"))
        most = most_of.get(_table_name(one.algorithm))
        if most is not None:
            ends = [lines[-1].x[0], lines[-1].x[-1]]
            lines.append(Line(f"the paper: below {most:g}", ends, [most, most], published=True))
    return Panel("average regret", "arrivals", "regret / arrivals", lines)


def _table_name(algorithm: PartitionAlgorithm) -> str:
    """Return how the paper's tables call an algorithm; Table IV's GP-DAP begins at 0.01."""
    if algorithm.epsilon is None or (algorithm.algorithm, algorithm.epsilon) == ("gp-dap", 0.01):
        return algorithm.algorithm
    return f"{algorithm.algorithm} {algorithm.epsilon:g}"


def _figures(outcomes: Sequence[PartitionOutcome]) -> list[Figure]:
    chosen: dict[str, tuple[str, list[tuple[str, float | None] | tuple[str, float, float]]]] = {
        "figure-6": (
            "Figure 6: CAP, DUP and DAP",
            [("cap", None), ("dup", None), ("dup-larger", None), ("dap", None)],
        ),
        "figure-7": (
            "Figure 7: P-DAP and DAP",
            [*(("p-dap", epsilon) for epsilon in EPSILONS), ("dap", None)],
        ),
        "figure-8": (
            "Figure 8: GP-DAP and P-DAP",
            [(name, epsilon) for epsilon in EPSILONS for name in ("p-dap", "gp-dap")],
        ),
        "served": (
            "As published and as served",
            [
                *(("p-dap", epsilon) for epsilon in (0.01, 1.0)),
                ("dap", None),
                *(("served", epsilon) for epsilon in (0.01, 1.0, 4.0)),
                *(("served-vendors", epsilon) for epsilon in (1.0, 4.0)),
                *(("served", epsilon, 1.0) for epsilon in (1.0, 4.0)),
            ],
        ),
    }
    tables = {"figure-6": "table_2", "figure-7": "table_3", "figure-8": "table_4"}
    figures = []
    for name, (title, wanted) in chosen.items():
        known = {one.algorithm for one in outcomes}
        picked = [outcome_of(outcomes, *one) for one in wanted if PartitionAlgorithm(*one) in known]
        panels = [
            Panel("regret", "arrivals", "regret", [_line(one, "regret") for one in picked]),
            _averages(picked, PUBLISHED["average_regret_at_most"] if name in tables else {}),
        ]
        if name in tables:
            panels.append(_accuracies(picked, PUBLISHED[tables[name]]))
        figures.append(Figure(name, title, panels))
    return figures


def _notes(outcomes: Sequence[PartitionOutcome]) -> list[str]:
    def regret(algorithm: str, epsilon: float | None) -> float:
        return outcome_of(outcomes, algorithm, epsilon).regret

    notes = []
    for one in outcomes:
        served = one.algorithm
        if served.algorithm in SERVED and served.epsilon in EPSILONS:
            times = regret("p-dap", served.epsilon) / one.regret
            notes.append(f"{served.label}: {times:.1f} times less regret than P-DAP")
    for epsilon in EPSILONS:
        below = 1 - regret("gp-dap", epsilon) / regret("p-dap", epsilon)
        notes.append(
            f"GP-DAP at ε₀={epsilon:g}: regret {below:.1%} below P-DAP (published: 32% at 0.01)"
        )
    return notes
