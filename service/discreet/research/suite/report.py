"""The suite's results: rows for programs, tables and pictures for people."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

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
        earned, counted = float(result.earned[late].sum()), float(result.counted[late].sum())
        for epsilon in trial.compared:
            ceiling = result.ceilings.get(epsilon)
            best = math.nan if ceiling is None else float(ceiling[late].sum())
            yield {
                "world": trial.world,
                "dimensions": result.dimensions,
                "items": result.items,
                "learner": trial.learner,
                "answers_epsilon": epsilon,
                "feedback_epsilon": trial.feedback,
                "rounds": rounds,
                "reward_late": _known(earned / counted if counted else math.nan),
                "share_late": _known(earned / best),
                "share_fixed": _known(best_fixed(result, late) / best),
                "seconds": round(float(result.seconds[:end].sum()), 3),
            }


def best_fixed(result: SuiteResult, blocks: slice) -> float:
    """Return what the best item earned of those that were on offer in all of these blocks."""
    totals = result.fixed[blocks].sum(axis=0)
    present = totals[~np.isnan(totals)]
    return float(present.max()) if len(present) else math.nan


def overall_share(result: SuiteResult, epsilon: float | None) -> float | None:
    """Return the share of the ceiling over the whole run, learning included."""
    ceiling = result.ceilings.get(epsilon)
    return None if ceiling is None else _known(float(result.earned.sum() / ceiling.sum()))


def curve_of(
    trial: SuiteTrial, result: SuiteResult, epsilon: float | None
) -> dict[str, Any] | None:
    """Return the share of the ceiling at this epsilon by round; None if there is no ceiling."""
    ceiling = result.ceilings.get(epsilon)
    if ceiling is None:
        return None
    starts = range(0, len(result.earned) - CURVE_BLOCKS + 1, CURVE_BLOCKS)
    parts = [slice(start, start + CURVE_BLOCKS) for start in starts]
    earned = np.array([result.earned[part].sum() for part in parts])
    counted = np.array([result.counted[part].sum() for part in parts])
    possible = np.array([ceiling[part].sum() for part in parts])
    return {
        "world": trial.world,
        "learner": trial.learner,
        "answers_epsilon": epsilon,
        "feedback_epsilon": trial.feedback,
        "rounds": [part.stop * BLOCK for part in parts],
        "reward": (earned / counted).round(4).tolist(),
        "share": (earned / possible).round(4).tolist(),
        "share_overall": overall_share(result, epsilon),
    }


def suite_report(runs: Sequence[Run], *, quick: bool, seed: int, rate: float) -> dict[str, Any]:
    """Return everything as plain values, for JSON."""
    curves = [
        curve_of(trial, result, epsilon) for trial, result in runs for epsilon in trial.compared
    ]
    return {
        "suite": "quick" if quick else "whole",
        "seed": seed,
        "visits_per_second": rate,
        "rows": [row for trial, result in runs for row in rows_of(trial, result)],
        "curves": [curve for curve in curves if curve is not None],
    }


def suite_tables(runs: Sequence[Run]) -> list[ResultTable]:
    """Return a table for every world: a row a learner and setting, at the end of its run."""
    tables = []
    for world in dict.fromkeys(trial.world for trial, _ in runs):
        here = [(trial, result) for trial, result in runs if trial.world == world]
        first = here[0][1]
        title = f"{world}: {first.items:,} items, {first.dimensions:,} numbers"
        lines = [_line(row, result) for trial, result in here for row in _final_rows(trial, result)]
        tables.append(ResultTable(title, COLUMNS, lines))
    return tables


def _final_rows(trial: SuiteTrial, result: SuiteResult) -> list[dict[str, Any]]:
    return [row for row in rows_of(trial, result) if row["rounds"] == trial.rounds]


def _line(row: Mapping[str, Any], result: SuiteResult) -> tuple[str, ...]:
    return (
        row["learner"],
        _epsilon(row["answers_epsilon"], "none"),
        _epsilon(row["feedback_epsilon"], "exact"),
        f"{row['rounds']:,}",
        _shown(row["reward_late"]),
        _shown(row["share_late"]),
        _shown(overall_share(result, row["answers_epsilon"])),
        _shown(row["share_fixed"]),
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
    "CPU s",
)


def _epsilon(value: float | None, without: str) -> str:
    return without if value is None else f"{value:g}"


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _known(value: float) -> float | None:
    """Return None for what could not be measured: JSON has no NaN."""
    return round(value, 5) if math.isfinite(value) else None
