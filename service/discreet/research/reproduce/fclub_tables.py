"""The results of CDP-FCLUB-DC as rows, tables and figures."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from discreet.families.fclub.sums import Privatizer
from discreet.privacy.calibration import published_privatizer_scale
from discreet.research.reproduce.fclub_algorithms import PROGRAM
from discreet.research.reproduce.fclub_claims import (
    DISTINCT,
    MOVIELENS,
    OWN,
    SHARED,
    Found,
    outcome_of,
)
from discreet.research.reproduce.fclub_published import (
    AUTHORS_PROGRAM,
    MOVIELENS_MS,
    PUBLISHED,
    SYNTHETIC_MS,
)
from discreet.research.reproduce.fclub_trials import ClusterOutcome
from discreet.research.reproduce.tables import Figure, Line, Panel, Reproduction, ResultTable
from discreet.research.worlds.environments import Floats

_ARRANGED = {"blocks": "users in blocks", "mixed": "users mixed"}
_BETTER = 4
"""Whoever has less than this many times the least regret is drawn once more, larger."""

Studies = Mapping[str, tuple[str, Sequence[float]]]


def report(found: Found, *, studies: Studies, seeds: int) -> Reproduction:
    """Return the outcomes of every part as rows, tables and figures."""
    both = {name: [*found[name], *found[f"{name}, served"]] for name in _ARRANGED}
    real = [name for name in (MOVIELENS, DISTINCT) if name in found]
    return Reproduction(
        name="fclub",
        seeds=seeds,
        results=[one.row() for one in both["blocks"]],
        published=PUBLISHED,
        details={
            "mixed": [one.row() for one in both["mixed"]],
            "environments": {name: [one.detail() for one in many] for name, many in found.items()},
        },
        tables=[
            _authors(found),
            *(_overview(name, many) for name, many in both.items()),
            *(_overview(name, found[name]) for name in real),
            _times("Table 3, synthetic: ms a round", found["blocks"], SYNTHETIC_MS),
            *(
                [_times("Table 3, MovieLens: ms a round", found[MOVIELENS], MOVIELENS_MS)]
                if MOVIELENS in found
                else []
            ),
            *_study_tables(found, studies),
        ],
        figures=[
            *(
                _regrets(f"figure-2a-{name}", f"Figure 2a, {said}", both[name])
                for name, said in _ARRANGED.items()
            ),
            *(
                _regrets(
                    "figure-2b-" + name.replace(", ", "-").replace(" ", "-"),
                    f"Figure 2b, {name}",
                    found[name],
                )
                for name in real
            ),
            _study_figure(found, studies),
            _communications(found),
            _beside_the_paper(found),
            _pays(found),
        ],
        notes=_notes(found),
    )


def _authors(found: Found) -> ResultTable:
    """Put the regrets of the authors' program beside ours, and beside what explains them."""
    rows = []
    for name in AUTHORS_PROGRAM["blocks"]:
        cells = [name]
        for part in _ARRANGED:
            programmed = AUTHORS_PROGRAM[part].get(name)
            cells += [
                f"{programmed:,.0f}" if programmed else "",
                _regret(found[part], name),
                _regret(found[part], f"{name} {PROGRAM}"),
            ]
        rows.append(cells)
    said = ("the authors' program", "ours", f"ours {PROGRAM}")
    columns = ["algorithm", *(f"{part}: {one}" for part in _ARRANGED for one in said)]
    return ResultTable("Regret, the authors' program and ours", columns, rows)


def _regret(outcomes: Iterable[ClusterOutcome], name: str) -> str:
    for one in outcomes:
        if one.algorithm.reading == "published" and one.algorithm.algorithm == name:
            return _spread(one, one.rounds)
    return ""


def _spread(one: ClusterOutcome, rounds: int) -> str:
    mean, deviation = one.regret_at(rounds)
    return f"{mean:,.0f}" if len(one.runs) == 1 else f"{mean:,.0f} ± {deviation:,.0f}"


def _overview(name: str, outcomes: Sequence[ClusterOutcome]) -> ResultTable:
    short, long = (measure(one.rounds for one in outcomes) for measure in (min, max))
    marks = sorted({short, long})
    rows = []
    for one in outcomes:
        regrets = [_spread(one, mark) if mark <= one.rounds else "" for mark in marks]
        rows.append(
            (
                one.algorithm.label,
                *regrets,
                f"{one.communications:,.0f}",
                f"{one.ms_per_round:.3f}",
            )
        )
    columns = [
        "algorithm",
        *(f"regret after {mark:,} rounds" for mark in marks),
        "communications",
        "ms a round",
    ]
    return ResultTable(f"{name}: regret of a uniform draw {_chance(outcomes):,.0f}", columns, rows)


def _chance(outcomes: Sequence[ClusterOutcome]) -> float:
    longest = max(outcomes, key=lambda one: one.rounds)
    return float(np.mean([run.chance for run in longest.runs]))


def _times(
    title: str, outcomes: Sequence[ClusterOutcome], published: Mapping[str, float]
) -> ResultTable:
    rows = [
        (name, f"{theirs:.3f}", f"{outcome_of(outcomes, name).ms_per_round:.3f}")
        for name, theirs in published.items()
    ]
    return ResultTable(title, ("algorithm", "published", "ours"), rows)


def _study_tables(found: Found, studies: Studies) -> list[ResultTable]:
    tables = []
    for name, (parameter, values) in studies.items():
        parts = [found[f"{name}: {value:g}"] for value in values]
        rows = [
            (f"{value:g}", *(f"{one.regret:,.0f}" for one in part), f"{_chance(part):,.0f}")
            for value, part in zip(values, parts, strict=True)
        ]
        tables.append(
            ResultTable(
                f"{name}: regret after {parts[0][0].rounds:,} rounds",
                (parameter, "as published", "without noise (fclub-dc)", "a uniform draw"),
                rows,
            )
        )
    return tables


def _line(outcome: ClusterOutcome) -> Line:
    curves = np.array([run.regret for run in outcome.runs])
    return Line(
        outcome.algorithm.label,
        outcome.runs[0].rounds.tolist(),
        curves.mean(axis=0).tolist(),
        curves.std(axis=0).tolist(),
    )


def _regrets(name: str, title: str, outcomes: Sequence[ClusterOutcome]) -> Figure:
    shown = [one for one in outcomes if not one.algorithm.algorithm.endswith(PROGRAM)]
    # The better ones first: they then have the same colours in both panels.
    lines = sorted((_line(one) for one in shown), key=lambda line: line.y[-1])
    low = [one for one in lines if one.y[-1] < _BETTER * lines[0].y[-1]]
    return Figure(
        name,
        title,
        [
            Panel("everybody", "rounds", "regret", lines),
            Panel("the better ones", "rounds", "regret", low),
        ],
    )


def _study_figure(found: Found, studies: Studies) -> Figure:
    panels = []
    for name, (parameter, values) in studies.items():
        parts = [found[f"{name}: {value:g}"] for value in values]
        titles = ("as published", "without noise (fclub-dc)")
        lines = [
            Line(title, list(values), [part[place].regret for part in parts])
            for place, title in enumerate(titles)
        ]
        lines.append(Line("a uniform draw", list(values), [_chance(part) for part in parts]))
        panels.append(Panel(name.replace("-", " "), parameter, "regret", lines))
    return Figure("figure-3", "Figure 3: the parameters", panels)


def _communications(found: Found) -> Figure:
    panels = []
    for part, title in (("blocks", "4a, synthetic"), (MOVIELENS, "4b, MovieLens")):
        if part not in found:
            continue
        lines = []
        for name in (*SHARED, OWN):
            one = outcome_of(found[part], name)
            talks = np.array([run.communications for run in one.runs]).mean(axis=0)
            lines.append(Line(one.algorithm.label, one.runs[0].rounds.tolist(), talks.tolist()))
        panels.append(Panel(title, "rounds", "communications", lines))
    program = AUTHORS_PROGRAM["communications"]
    ends = [
        Line(f"{name}, authors' program", [100_000], [program[name]]) for name in (*SHARED, OWN)
    ]
    panels[0] = Panel(panels[0].title, "rounds", "communications", [*panels[0].lines, *ends])
    return Figure("figure-4", "Figure 4: communications", panels)


def _beside_the_paper(found: Found) -> Figure:
    """Draw every number that is printed against ours: one dot an algorithm, both as log10."""
    panels = []
    tables = (("blocks", "synthetic", SYNTHETIC_MS), (MOVIELENS, "MovieLens", MOVIELENS_MS))
    for part, said, times in tables:
        if part in found:
            pairs = {
                name: (theirs, outcome_of(found[part], name).ms_per_round)
                for name, theirs in times.items()
            }
            panels.append(_dots(f"Table 3, {said}: log10 of ms a round", "published", pairs))
    played = {one.algorithm.algorithm: one for one in found["blocks"]}
    pairs = {}
    for name, theirs in AUTHORS_PROGRAM["blocks"].items():
        ours = played.get(f"{name} {PROGRAM}", played[name])
        pairs[ours.algorithm.algorithm] = (theirs, ours.regret)
    regrets = _dots("log10 of regret, users in blocks", "the authors' program", pairs)
    ends = [min(line.x[0] for line in regrets.lines), max(line.x[0] for line in regrets.lines)]
    panels.append(replace(regrets, lines=[*regrets.lines, Line("the same", ends, ends)]))
    return Figure("published-and-ours", "Printed numbers, and ours", panels)


def _dots(title: str, theirs: str, pairs: Mapping[str, tuple[float, float]]) -> Panel:
    logs = {name: np.log10(pair) for name, pair in pairs.items()}
    lines = [Line(name, [float(x)], [float(y)]) for name, (x, y) in logs.items()]
    return Panel(title, theirs, "ours", lines)


def saved(found: Found, name: str) -> dict[str, tuple[Floats, Floats]]:
    """Return, by algorithm, how much less regret each seed's run has with sharing, over rounds."""
    alone, *sharing = found[f"{name}, served"]
    return {
        one.algorithm.label: (
            alone.runs[0].rounds,
            np.array([a.regret - b.regret for a, b in zip(alone.runs, one.runs, strict=True)]),
        )
        for one in sharing
    }


def _pays(found: Found) -> Figure:
    panels = []
    for name, said in _ARRANGED.items():
        lines = [
            Line(
                label,
                (rounds / 1_000).tolist(),
                gaps.mean(axis=0).tolist(),
                gaps.std(axis=0).tolist(),
            )
            for label, (rounds, gaps) in saved(found, name).items()
        ]
        panels.append(Panel(said, "thousand rounds", "regret saved", lines))
    return Figure("sharing-pays", "Regret that private sharing saves, and from where", panels)


def _notes(found: Found) -> list[str]:
    notes = []
    for name in _ARRANGED:
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
