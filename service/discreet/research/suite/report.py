"""The suite's results: rows for programs, tables for people. An earlier report can be completed."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.research.reproduce.tables import ResultTable
from discreet.research.suite.stretches import BLOCK
from discreet.research.suite.trials import SuiteResult, SuiteTrial

HORIZONS = (3_000, 12_000)
"""Rounds at which a longer run is looked at as well."""
LATE = 4
"""The last one of so many parts is `late`."""
CURVE_BLOCKS = 4
"""Blocks behind one point of a curve: 1,000 rounds."""

Run = tuple[SuiteTrial, SuiteResult]


def rows_of(trial: SuiteTrial, result: SuiteResult) -> Iterator[dict[str, Any]]:
    """Yield a row for every number of rounds and every epsilon of answers it stands beside."""
    for rounds in sorted({*(one for one in HORIZONS if one < trial.rounds), trial.rounds}):
        end = rounds // BLOCK
        late = slice(end - end // LATE, end)
        earned = float(result.earned[late].sum())
        for epsilon in trial.compared:
            best = float(result.ceilings[epsilon][late].sum())
            yield {
                "world": trial.world,
                "dimensions": result.dimensions,
                "items": result.items,
                "learner": trial.learner,
                "answers_epsilon": epsilon,
                "feedback_epsilon": trial.feedback,
                "rounds": rounds,
                "reward_late": _known(earned / (BLOCK * (late.stop - late.start))),
                "share_late": _share(earned, best),
                "share_fixed": _share(best_fixed(result, late), best),
                "seconds": round(float(result.seconds[:end].sum()), 3),
            }


def best_fixed(result: SuiteResult, blocks: slice) -> float:
    """Return what the best item earned of those that were on offer in all of these blocks."""
    totals = result.fixed[blocks].sum(axis=0)
    present = totals[~np.isnan(totals)]
    return float(present.max()) if len(present) else math.nan


def curve_of(trial: SuiteTrial, result: SuiteResult, epsilon: float | None) -> dict[str, Any]:
    """Return the share of the ceiling at this epsilon by round, and over the whole run."""
    ceiling = result.ceilings[epsilon]
    starts = range(0, len(result.earned) - CURVE_BLOCKS + 1, CURVE_BLOCKS)
    parts = [slice(start, start + CURVE_BLOCKS) for start in starts]
    earned = [float(result.earned[part].sum()) for part in parts]
    possible = [float(ceiling[part].sum()) for part in parts]
    return {
        "world": trial.world,
        "learner": trial.learner,
        "answers_epsilon": epsilon,
        "feedback_epsilon": trial.feedback,
        "rounds": [part.stop * BLOCK for part in parts],
        "reward": [round(one / (CURVE_BLOCKS * BLOCK), 5) for one in earned],
        "share": [_share(*both) for both in zip(earned, possible, strict=True)],
        "share_overall": _share(float(result.earned.sum()), float(ceiling.sum())),
    }


def suite_report(runs: Sequence[Run], *, quick: bool, seed: int, rate: float) -> dict[str, Any]:
    """Return everything as plain values, for JSON."""
    return {
        "suite": "quick" if quick else "whole",
        "seed": seed,
        "visits_per_second": rate,
        "rows": [row for trial, result in runs for row in rows_of(trial, result)],
        "curves": [
            curve_of(trial, result, epsilon) for trial, result in runs for epsilon in trial.compared
        ],
    }


def completed(report: Mapping[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report that has what an earlier one has besides, of the same seed and rate."""
    for name in ("seed", "visits_per_second"):
        if earlier[name] != report[name]:
            raise InvalidArgument("--beside", f"has {name} {earlier[name]}, not {report[name]}")
    both = dict(report)
    for name in ("rows", "curves"):
        anew = {_setting(one) for one in report[name]}
        kept = [one for one in earlier[name] if _setting(one) not in anew]
        order = {world: at for at, world in enumerate(dict.fromkeys(map(_world, earlier[name])))}
        both[name] = sorted(
            [*report[name], *kept], key=lambda one: order.get(_world(one), len(order))
        )
    return both


def suite_tables(report: Mapping[str, Any]) -> list[ResultTable]:
    """Return a table for every world: a row a learner and setting, at the end of its run."""
    overall = {_setting(curve): curve["share_overall"] for curve in report["curves"]}
    final = {_setting(row): row for row in sorted(report["rows"], key=lambda row: row["rounds"])}
    popular = {
        (*_setting(row), row["rounds"]): row["share_late"]
        for row in report["rows"]
        if row["learner"] == "popular"
    }
    tables = []
    for world in dict.fromkeys(map(_world, report["rows"])):
        settings = dict.fromkeys(_setting(row) for row in report["rows"] if _world(row) == world)
        here = [final[setting] for setting in settings]
        title = f"{world}: {here[0]['items']:,} items, {here[0]['dimensions']:,} numbers"
        lines = [_line(row, overall[_setting(row)], popular.get(_learned(row))) for row in here]
        tables.append(ResultTable(title, COLUMNS, lines))
    return tables


def _world(entry: Mapping[str, Any]) -> str:
    return str(entry["world"])


def _setting(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(
        entry[name] for name in ("world", "learner", "answers_epsilon", "feedback_epsilon")
    )


def _learned(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return where the best fixed item stands that was learned under the same privacy."""
    return (*_setting({**row, "learner": "popular"}), row["rounds"])


def _line(row: Mapping[str, Any], overall: float | None, popular: float | None) -> tuple[str, ...]:
    return (
        row["learner"],
        _epsilon(row["answers_epsilon"], "none"),
        _epsilon(row["feedback_epsilon"], "exact"),
        f"{row['rounds']:,}",
        _shown(row["reward_late"]),
        _shown(row["share_late"]),
        _shown(overall),
        _shown(row["share_fixed"]),
        _shown(popular),
        f"{row['seconds']:.1f}",
    )


COLUMNS = (
    "learner",
    "answers",
    "feedback",
    "rounds",
    "reward late",
    "share late",
    "share overall",
    "best fixed item",
    "the same, learned",
    "CPU s",
)


def _epsilon(value: float | None, without: str) -> str:
    return without if value is None else f"{value:g}"


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _share(part: float, whole: float) -> float | None:
    return _known(part / whole) if whole else None


def _known(value: float) -> float | None:
    """Return None for what could not be measured: JSON has no NaN."""
    return round(value, 5) if math.isfinite(value) else None
