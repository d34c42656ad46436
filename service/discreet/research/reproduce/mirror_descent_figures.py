"""Figures 2 to 5 of the paper on distributed private online learning, redrawn.

The paper prints two numbers, both about figures: 18% (figure 4) and 4% (figure 5). They are drawn
in as what they would be for the line before them.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from discreet.research.reproduce.mirror_descent_settings import (
    COUNTS,
    DROWNED,
    LASSOS,
    NON_PRIVATE,
    PUBLISHED_EPSILONS,
    SERVED,
    SERVED_EPSILONS,
    TRUNCATIONS,
    MirrorOutcome,
    MirrorSetting,
    outcome_of,
)
from discreet.research.reproduce.node_topologies import TOPOLOGIES
from discreet.research.reproduce.tables import Figure, Line, Panel

GAIN, LOSS = 0.18, 0.04
_LATE = "accuracy of the last quarter"

Named = Sequence[tuple[str, MirrorSetting]]


def figures_of(outcomes: Sequence[MirrorOutcome], *, learns: float) -> list[Figure]:
    """Return the four figures; the published algorithm is shown where it learns anything."""
    judged = replace(DROWNED, epsilon=learns)
    plain: Named = [
        *((f"served, ε={e:g}", replace(SERVED, epsilon=e)) for e in SERVED_EPSILONS),
        ("published, no noise", NON_PRIVATE),
    ]
    learned, drowned = (
        [
            (f"published, ε={e:,g}", replace(DROWNED, epsilon=e))
            for e in PUBLISHED_EPSILONS
            if (e >= learns) == does
        ]
        for does in (True, False)
    )
    kinds: Named = [
        *((f"served, ε=1, {kind}", replace(SERVED, topology=kind)) for kind in TOPOLOGIES),
        *(
            (f"published, ε={learns:,g}, {kind}", replace(judged, topology=kind))
            for kind in TOPOLOGIES
        ),
    ]

    def panels(regrets: Named, accuracies: Named) -> list[Panel]:
        return [
            Panel("regret", "records", "regret", _curves(outcomes, regrets, accuracy=False)),
            Panel(
                "accuracy so far",
                "records",
                "right / records",
                _curves(outcomes, accuracies, accuracy=True),
            ),
        ]

    return [
        Figure(
            "figure-2",
            "Figure 2: privacy",
            # Regrets where nothing is learned are a thousand times larger than all others.
            panels([*plain, *learned], [*plain, *learned, *drowned]),
        ),
        Figure("figure-3", "Figure 3: topology", panels(kinds, kinds)),
        _sparsity(outcomes, judged),
        _nodes(outcomes, judged),
    ]


def _sparsity(outcomes: Sequence[MirrorOutcome], judged: MirrorSetting) -> Figure:
    lines = []
    for name, base, values in (
        ("served, ε=1", SERVED, TRUNCATIONS),
        ("published, no noise", NON_PRIVATE, LASSOS),
        (f"published, ε={judged.epsilon:,g}", judged, LASSOS),
    ):
        found = [outcome_of(outcomes, replace(base, lasso=x)) for x in values]
        lines.append(_points(name, [one.sparsity for one in found], found))
    none = lines[-1].y[0]
    told = Line(
        f"the paper: {GAIN:.0%} over none",
        *([0.0, 1.0], [(1 + GAIN) * none] * 2),
        published=True,
    )
    panel = Panel(_LATE, "share of features that do not count", "accuracy", [*lines, told])
    return Figure("figure-4", "Figure 4: sparsity", [panel])


def _nodes(outcomes: Sequence[MirrorOutcome], judged: MirrorSetting) -> Figure:
    lines = []
    for name, base in (
        ("served, ε=1", SERVED),
        ("published, no noise", NON_PRIVATE),
        (f"published, ε={judged.epsilon:,g}", judged),
    ):
        found = [outcome_of(outcomes, replace(base, nodes=nodes)) for nodes in COUNTS]
        lines.append(_points(name, COUNTS, found))
    first = lines[-1].y[0]
    told = Line(
        f"the paper: at most {LOSS:.0%} for 4 nodes",
        COUNTS,
        [first - LOSS * (nodes - COUNTS[0]) / 4 for nodes in COUNTS],
        published=True,
    )
    return Figure(
        "figure-5",
        "Figure 5: number of nodes",
        [Panel(_LATE, "nodes", "accuracy", [*lines, told])],
    )


def _curves(outcomes: Sequence[MirrorOutcome], named: Named, *, accuracy: bool) -> list[Line]:
    lines = []
    for label, setting in named:
        runs = outcome_of(outcomes, setting).runs
        records = runs[0].rounds
        curves = np.array([run.right / records if accuracy else run.regret for run in runs])
        mean, spread = curves.mean(axis=0).tolist(), curves.std(axis=0).tolist()
        lines.append(Line(label, records.tolist(), mean, spread))
    return lines


def _points(label: str, x: Sequence[float], outcomes: Sequence[MirrorOutcome]) -> Line:
    found = np.array([[run.late_accuracy for run in one.runs] for one in outcomes])
    return Line(label, x, found.mean(axis=1).tolist(), found.std(axis=1).tolist())
