"""The results of CDP-FCLUB-DC as rows, tables and figures."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.families.fclub.sums import Privatizer
from discreet.privacy.calibration import published_privatizer_scale
from discreet.research.reproduce.fclub_trials import ClusterOutcome
from discreet.research.reproduce.tables import Figure, Line, Panel, Reproduction, ResultTable
from discreet.research.worlds.environments import Floats

PUBLISHED: dict[str, Any] = {
    "setting": "n=40, m=4, L=5, d=10, K=10, U=D=1.01, epsilon=1, delta=0.1",
    "table_3_ms_per_round": {
        "cdp-fclub-dc": 1.707,
        "fclub-dc": 1.814,
        "fclub": 58.870,
        "sclub": 3.805,
        "club": 0.779,
        "linucb": 0.647,
        "homo-dc": 1.277,
        "homo": 29.265,
    },
    "authors_program_regret_100000_rounds": {
        "note": "their program run by us, 3 seeds; its noise never reaches a recommendation",
        "blocks": {
            "cdp-fclub-dc": 605,
            "fclub-dc": 617,
            "fclub": 645,
            "sclub": 1359,
            "club": 1589,
            "linucb": 1588,
            "homo-dc": 4232,
            "homo": 12736,
        },
        "mixed": {"cdp-fclub-dc": 2025, "fclub-dc": 1721, "sclub": 1575, "linucb": 1567},
    },
}

Found = Mapping[str, Sequence[ClusterOutcome]]

_ARRANGED = {"blocks": "users in blocks", "mixed": "users mixed"}


def report(
    found: Found,
    *,
    studies: Mapping[str, tuple[str, Sequence[float]]],
    rounds: Mapping[str, int],
    seeds: int,
) -> Reproduction:
    """Return the outcomes of every part as rows, tables and figures."""
    both = {
        name: [*found[name], *found[f"{name}, long"], *found.get(f"{name}, more", ())]
        for name in ("blocks", "mixed")
    }
    data = [name for name in ("movielens", "last.fm") if name in found]
    return Reproduction(
        name="fclub",
        seeds=seeds,
        results=[one.row(rounds["blocks"]) for one in both["blocks"]],
        published=PUBLISHED,
        details={
            "rounds": dict(rounds),
            "mixed": [one.row(rounds["mixed"]) for one in both["mixed"]],
            "environments": {
                name: [one.detail(rounds[name]) for one in many] for name, many in found.items()
            },
        },
        tables=[
            *(_overview(name, many, rounds[name]) for name, many in both.items()),
            *(_overview(name, found[name], rounds[name]) for name in data),
            _times(both["blocks"], rounds["blocks"]),
            *_study_tables(found, studies, rounds),
        ],
        figures=[
            *(
                _regrets(
                    f"figure-2a-{name}",
                    f"Figure 2a, {_ARRANGED[name]}",
                    [one for one in many if len(one.runs) > 1 or len(many[0].runs) == 1],
                    rounds[name],
                )
                for name, many in both.items()
            ),
            *(
                _regrets(f"figure-2b-{name}", f"Figure 2b, {name}", found[name], rounds[name])
                for name in data
            ),
            *_study_figures(found, studies),
            _communications(both["blocks"], rounds["blocks"]),
            _pays(found),
        ],
        notes=_notes(found, both, rounds),
    )


def _overview(name: str, outcomes: Sequence[ClusterOutcome], rounds: int) -> ResultTable:
    rows = []
    for one in outcomes:
        row = one.row(rounds)
        rows.append(
            (
                one.algorithm.label,
                f"{row['regret_mean']:,.0f} ± {row['regret_std']:,.0f}",
                f"{row['communications']:,.0f}",
                f"{row['ms_per_round']:.3f}",
            )
        )
    columns = ("algorithm", "regret", "communications", "ms a round")
    return ResultTable(f"{name}, {rounds:,} rounds", columns, rows)


def _times(outcomes: Sequence[ClusterOutcome], rounds: int) -> ResultTable:
    ours: dict[str, float] = {}
    for one in outcomes:
        if one.algorithm.reading == "published":
            ours.setdefault(one.algorithm.algorithm, one.row(rounds)["ms_per_round"])
    rows = [
        (name, f"{published:.3f}", f"{ours[name]:.3f}")
        for name, published in PUBLISHED["table_3_ms_per_round"].items()
        if name in ours
    ]
    return ResultTable("Table 3: ms a round", ("algorithm", "published", "ours"), rows)


def _study_tables(
    found: Found, studies: Mapping[str, tuple[str, Sequence[float]]], rounds: Mapping[str, int]
) -> list[ResultTable]:
    tables = []
    for name, (parameter, values) in studies.items():
        played = [value for value in values if f"{name}: {value:g}" in found]
        if not played:
            continue
        rows = []
        for value in played:
            part = f"{name}: {value:g}"
            regrets = [f"{one.regret_at(rounds[part])[0]:,.0f}" for one in found[part]]
            rows.append((f"{value:g}", *regrets))
        tables.append(
            ResultTable(
                f"{name}: regret after {rounds[part]:,} rounds",
                (parameter, "as published", "as served, δ=0.1"),
                rows,
            )
        )
    return tables


def _line(outcome: ClusterOutcome, rounds: float) -> Line:
    at = outcome.runs[0].rounds <= rounds
    curves = np.array([run.regret[at] for run in outcome.runs])
    return Line(
        outcome.algorithm.label,
        outcome.runs[0].rounds[at].tolist(),
        curves.mean(axis=0).tolist(),
        curves.std(axis=0).tolist(),
    )


def _regrets(name: str, title: str, outcomes: Sequence[ClusterOutcome], rounds: int) -> Figure:
    # The better ones first: they then have the same colours in both panels.
    lines = sorted((_line(one, rounds) for one in outcomes), key=lambda line: line.y[-1])
    low = [one for one in lines if one.y[-1] < 4 * min(line.y[-1] for line in lines)]
    return Figure(
        name,
        title,
        [
            Panel("everybody", "rounds", "regret", lines),
            Panel("the better ones", "rounds", "regret", low),
        ],
    )


def _study_figures(
    found: Found, studies: Mapping[str, tuple[str, Sequence[float]]]
) -> list[Figure]:
    figures = []
    for name, (parameter, values) in studies.items():
        played = [value for value in values if f"{name}: {value:g}" in found]
        if not played:
            continue
        panels = []
        for place, title in enumerate(("as published", "as served, δ=0.1")):
            lines = []
            for value in played:
                outcome = found[f"{name}: {value:g}"][place]
                line = _line(outcome, np.inf)
                lines.append(Line(f"{parameter} {value:g}", line.x, line.y, line.spread))
            panels.append(Panel(title, "rounds", "regret", lines))
        figures.append(Figure(name, f"Figure 3: {parameter}", panels))
    return figures


def _communications(outcomes: Sequence[ClusterOutcome], rounds: int) -> Figure:
    lines = []
    for one in outcomes:
        at = one.runs[0].rounds <= rounds
        talks = np.array([run.communications[at] for run in one.runs]).mean(axis=0)
        if talks[-1] > 0:
            lines.append(Line(one.algorithm.label, one.runs[0].rounds[at].tolist(), talks.tolist()))
    lines.sort(key=lambda line: line.y[-1])  # the same colours in both panels
    few = [line for line in lines if line.y[-1] < max(each.y[-1] for each in lines) / 100]
    panels = [Panel("all", "rounds", "communications", lines)]
    if few:
        panels.append(Panel("the fewest", "rounds", "communications", few))
    return Figure("figure-4", "Figure 4: communications", panels)


def saved(found: Found, name: str) -> dict[str, tuple[Floats, Floats]]:
    """Return, by algorithm, how much less regret each seed's run has with sharing, over rounds."""
    alone, *sharing = found[f"{name}, long"]
    return {
        one.algorithm.label: (
            alone.runs[0].rounds,
            np.array([a.regret - b.regret for a, b in zip(alone.runs, one.runs, strict=True)]),
        )
        for one in sharing
    }


def _pays(found: Found) -> Figure:
    panels = []
    for name in ("blocks", "mixed"):
        lines = [
            Line(
                label,
                (rounds / 1_000).tolist(),
                gaps.mean(axis=0).tolist(),
                gaps.std(axis=0).tolist(),
            )
            for label, (rounds, gaps) in saved(found, name).items()
        ]
        panels.append(Panel(_ARRANGED[name], "thousand rounds", "regret saved", lines))
    return Figure("sharing-pays", "Regret that private sharing saves, and from where", panels)


def _notes(found: Found, both: Found, rounds: Mapping[str, int]) -> list[str]:
    notes = []
    for name, outcomes in both.items():
        regret = {one.algorithm.label: one.regret_at(rounds[name])[0] for one in outcomes}
        notes.append(f"{name}: " + ", ".join(f"{who} {how:,.0f}" for who, how in regret.items()))
        for label, (steps, gaps) in saved(found, name).items():
            ahead = np.flatnonzero((gaps > 0).all(axis=0))
            lasting = [at for at in ahead if (gaps[:, at:] > 0).all()]
            notes.append(
                f"{name}: {label} is ahead of not sharing with every seed "
                + (f"from round {steps[lasting[0]]:,.0f} on" if lasting else "at no round yet")
                + f"; at the end it saves {gaps[:, -1].mean():,.0f} ± {gaps[:, -1].std():,.0f}"
            )
    for delta in (0.1, 1e-6):
        ours = Privatizer(dimensions=10, epsilon=1.0, delta=delta).gram_scale
        theirs = published_privatizer_scale(levels=10, epsilon=1.0, delta=0.1)
        notes.append(
            f"noise on an entry at (1, {delta:g}) by observation: {ours:.2f}; "
            f"published, (1, 0.1), 10 levels: {theirs:.1f}"
        )
    return notes
