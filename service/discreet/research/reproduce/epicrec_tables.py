"""The evaluation of profile perturbation as rows, tables and figures."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.research.reproduce.epicrec_trials import FIELDS, METHODS, NOTHING, RAW, Key
from discreet.research.reproduce.tables import Figure, Line, Panel, ResultTable

Floats = npt.NDArray[np.float64]
Table = Mapping[Key, Floats]
"""Sums of the trials' fields, a row a seed."""

SYSTEMS = ("single", "category")
ORDER = (*SYSTEMS, RAW, NOTHING)
TITLES = {"single": "overall control", "category": "control by category"}


def column(table: Floats, name: str) -> Floats:
    """Return a field's sums, one a seed."""
    values: Floats = table[:, FIELDS.index(name)]
    return values


def mean_of(table: Floats, name: str) -> Floats:
    """Return a field's mean over people, one a seed."""
    values: Floats = column(table, name) / column(table, "people")
    return values


def _error(table: Floats) -> Floats:
    values: Floats = column(table, "error") / column(table, "ratings")
    return values


def losses(found: Table, key: Key) -> Floats:
    """Return the MAE loss against the raw history, one a seed."""
    values: Floats = _error(found[key]) / _error(found[RAW, RAW, 0.0]) - 1
    return values


def row(dataset: str, found: Table, key: Key) -> dict[str, Any]:
    """Return the row that programs read."""
    system, method, epsilon = key
    table = found[key]
    return {
        "dataset": dataset,
        "system": system,
        "method": method,
        "epsilon": epsilon,
        "aggregate_mae": float(mean_of(table, "aggregate").mean()),
        "mae_loss": float(losses(found, key).mean()),
        "ndcg10": float(mean_of(table, "ndcg").mean()),
        "seconds": float(mean_of(table, "seconds").mean()),
    }


def rows(dataset: str, found: Table, *methods: str) -> list[dict[str, Any]]:
    """Return the rows of these methods."""
    return [
        row(dataset, found, key)
        for key in sorted(found, key=lambda key: ORDER.index(key[0]))
        if key[0] in SYSTEMS and key[1] in methods
    ]


def references(found: Table) -> dict[str, dict[str, float]]:
    """Return what the raw history gives, and what nothing at all gives."""
    return {
        name: {
            "mae": float(_error(found[name, name, 0.0]).mean()),
            "mae_loss": float(losses(found, (name, name, 0.0)).mean()),
            "ndcg10": float(mean_of(found[name, name, 0.0], "ndcg").mean()),
        }
        for name in (RAW, NOTHING)
    }


def spreads(found: Table) -> list[dict[str, Any]]:
    """Return standard deviations over seeds, and Figure 6's losses by kind of category."""
    found_spreads = []
    for key, table in found.items():
        if key[0] not in SYSTEMS:
            continue
        one: dict[str, Any] = {"system": key[0], "method": key[1], "epsilon": key[2]}
        if len(table) > 1:
            one["aggregate_mae_std"] = float(mean_of(table, "aggregate").std(ddof=1))
            one["mae_loss_std"] = float(losses(found, key).std(ddof=1))
            one["ndcg10_std"] = float(mean_of(table, "ndcg").std(ddof=1))
        for kind in ("protected", "hidden"):
            raw = float(column(table, f"{kind}_raw").sum())
            if raw > 0:
                one[f"mae_loss_{kind}"] = float(column(table, f"{kind}_error").sum()) / raw - 1
        found_spreads.append(one)
    return found_spreads


def tables(dataset: str, found: Table) -> list[ResultTable]:
    """Return a table for each system."""
    columns = ("method", "epsilon", "aggregate error", "MAE loss", "NDCG@10", "ms a profile")
    made = []
    for system in SYSTEMS:
        lines: list[Sequence[str]] = []
        for name in (RAW, NOTHING):
            seen = references(found)[name]
            loss, gain = f"{seen['mae_loss']:.1%}", f"{seen['ndcg10']:.3f}"
            lines.append((name, "–", "–", loss, gain, "–"))
        shown = [one for method in METHODS for one in rows(dataset, found, method)]
        lines += [
            (
                one["method"],
                f"{one['epsilon']:g}",
                f"{one['aggregate_mae']:.2f}",
                f"{one['mae_loss']:.1%}",
                f"{one['ndcg10']:.3f}",
                f"{one['seconds'] * 1000:.1f}",
            )
            for one in shown
            if one["system"] == system
        ]
        made.append(ResultTable(f"{dataset}, {TITLES[system]}", columns, lines))
    return made


def figures(found: Mapping[str, Table]) -> list[Figure]:
    """Return Figures 5, 6 and 7, and one of NDCG."""
    made = []
    for number, system in ((5, "single"), (6, "category")):
        panels = []
        for dataset, table in found.items():
            panels.append(_panel(dataset, "aggregate error", table, system, "aggregate"))
            panels.append(_panel(dataset, "MAE loss", table, system, "loss"))
            panels.append(_panel(dataset, "NDCG@10", table, system, "ndcg"))
        made.append(Figure(f"figure-{number}", f"Figure {number}: {TITLES[system]}", panels))
    panels = []
    for dataset, table in found.items():
        lines = [_line(TITLES[system], table, system, "ours", "seconds") for system in SYSTEMS]
        panels.append(Panel(dataset, "epsilon", "seconds a profile", lines, log_x=True))
    return [*made, Figure("figure-7", "Figure 7: running time", panels)]


def _panel(dataset: str, ylabel: str, found: Table, system: str, what: str) -> Panel:
    methods = dict.fromkeys(key[1] for key in found if key[0] == system)
    lines = [_line(method, found, system, method, what) for method in methods]
    return Panel(dataset, "epsilon", ylabel, lines, log_x=True)


def _line(label: str, found: Table, system: str, method: str, what: str) -> Line:
    keys = sorted(key for key in found if key[:2] == (system, method))
    values = [losses(found, key) if what == "loss" else mean_of(found[key], what) for key in keys]
    return Line(
        label,
        [key[2] for key in keys],
        [float(each.mean()) for each in values],
        [float(each.std()) for each in values],
    )
