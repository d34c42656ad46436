"""The evaluation of distributed private online learning again: Figures 2 to 5.

The paper's data ("100,000 social data" with 10,000 dimensions) are not named. The social world of
`worlds.mirror_descent` takes their place: as many records, as many dimensions; MovieLens-1M beside
it if a path is given. Four questions: how regret depends on epsilon, on the topology, on sparsity,
and on the number of nodes. Three readings: as served, as published, and published without noise.
The served one calls the family's own `learning` and `model`, many records at once; that the shipped
decisions, asked record by record, come to the same is a test. Nodes release by a simulated clock on
which the stream lasts 50 seconds.

`accuracy` is that of the last quarter of the records, each predicted before it is learned from:
what the network has become. Regret is over all of them: what becoming it cost.
"""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.research.reproduce.mirror_descent_claims import MirrorFindings, claims_of
from discreet.research.reproduce.mirror_descent_figures import figures_of
from discreet.research.reproduce.mirror_descent_settings import (
    COUNTS,
    DROWNED,
    LEARNS,
    NON_PRIVATE,
    QUICK_LEARNS,
    SERVED,
    SERVED_EXACT,
    TRUNCATION,
    TRUNCATIONS,
    MirrorOutcome,
    MirrorSetting,
    movielens_settings,
    outcome_of,
    settings,
)
from discreet.research.reproduce.mirror_descent_trials import DELTA, MirrorTrial, side_by_side
from discreet.research.reproduce.node_topologies import TOPOLOGIES
from discreet.research.reproduce.papers import ProgressWatcher, ReproductionOptions
from discreet.research.reproduce.tables import Reproduction, ResultTable
from discreet.research.reproduce.trials import run_all
from discreet.research.worlds.mirror_descent import (
    DIMENSION,
    NONZEROS,
    RECORDS,
    movielens,
    social,
)

SEEDS, QUICK_SEEDS = 3, 2
QUICK_RECORDS = 16_000

PUBLISHED: dict[str, Any] = {
    "data": "100,000 social data of 10,000 dimensions, not named; 8 cores",
    "figure_2": "regret falls with epsilon; the non-private reading has the least",
    "figure_3": "topologies make no significant difference",
    "figure_4": {"best_sparsity_over_none": 0.18},
    "figure_5": {"accuracy_lost_with_4_more_nodes": 0.04},
}


def reproduce(options: ReproductionOptions, watch: ProgressWatcher) -> Reproduction:
    """Run everything and put the paper's statements beside ours."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    records = options.rounds or (QUICK_RECORDS if options.quick else RECORDS)
    # A tenth of the features and of the interests: a sixth of the records then says as much.
    small = {"dimension": 1_000, "interests": 10} if options.quick else {}
    learns = QUICK_LEARNS if options.quick else LEARNS
    plans = {"social": (partial(social, records=records, **small), settings(learns))}
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
    trials = {
        (name, seed, setting): MirrorTrial(
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
    }
    groups = side_by_side(list(trials.values()))
    played = {
        trial: run
        for group, many in zip(
            groups, run_all(groups, watch=watch, processes=options.processes), strict=True
        )
        for trial, run in zip(group.trials, many, strict=True)
    }
    found = {
        name: [
            MirrorOutcome(
                setting, tuple(played[trials[name, seed, setting]] for seed in range(seeds))
            )
            for setting in wanted
        ]
        for name, (_, wanted) in plans.items()
    }
    outcomes = found["social"]
    findings = MirrorFindings(
        outcomes,
        learns=learns,
        dimension=small.get("dimension", DIMENSION),
        records=records,
        longest=float(np.sqrt(NONZEROS)),  # as many values of one over its root
    )
    return Reproduction(
        name="mirror-descent",
        seeds=seeds,
        quick=options.quick,
        claims=claims_of(findings),
        results=[one.row() for one in outcomes if one.setting.reading != "laplace-batches"],
        published=PUBLISHED,
        details={
            "records": records,
            "delta": DELTA,
            "environments": {name: [one.detail() for one in many] for name, many in found.items()},
        },
        tables=[_overview(name, many) for name, many in found.items()],
        figures=figures_of(outcomes, learns=learns),
        notes=_notes(outcomes),
    )


def _overview(name: str, outcomes: Sequence[MirrorOutcome]) -> ResultTable:
    rows = []
    for one in outcomes:
        row = one.detail()
        rows.append(
            (
                row["reading"],
                "–" if row["epsilon"] is None else f"{row['epsilon']:,g}",
                row["topology"],
                str(row["nodes"]),
                f"{row['lambda']:,g}",
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


def _notes(outcomes: Sequence[MirrorOutcome]) -> list[str]:
    def accuracy(setting: MirrorSetting) -> float:
        return outcome_of(outcomes, setting).accuracy

    exact = accuracy(NON_PRIVATE)
    best = max(accuracy(MirrorSetting("served", 1.0, lasso=x)) for x in TRUNCATIONS)
    none = accuracy(MirrorSetting("served", 1.0, lasso=0.0))
    kinds = [
        accuracy(MirrorSetting("served", 1.0, topology=k, lasso=TRUNCATION)) for k in TOPOLOGIES
    ]
    counts = [accuracy(MirrorSetting("served", 1.0, nodes=m, lasso=TRUNCATION)) for m in COUNTS]
    lost = max(a - b for a, b in pairwise(counts))
    published = accuracy(DROWNED)
    return [
        f"served at ε=1: {accuracy(SERVED):.1%}, {1 - accuracy(SERVED) / exact:.1%} below the "
        f"non-private {exact:.1%}; served with exact sums: {accuracy(SERVED_EXACT):.1%}; "
        f"published at ε=1: {published:.1%}",
        f"served at ε=1: the best sparsity is {best / none - 1:.1%} more accurate than none, "
        f"topologies differ by {max(kinds) - min(kinds):.1%}, 4 more nodes cost at most {lost:.1%}",
        f"Laplace noise for the L1 norm instead of Gaussian noise for the L2 norm: "
        f"{accuracy(MirrorSetting('laplace-batches', 1.0, lasso=TRUNCATION)):.1%} at ε=1",
    ]
