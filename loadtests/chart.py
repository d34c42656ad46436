"""One picture of a run: throughput, latency, families, growth, bytes.

Drawn with matplotlib (the extra `plots`) on a white card, so that it reads the same on a white page
and on a dark one.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import report

HOW_TO_DRAW = "no chart without matplotlib: pip install 'discreet[plots]'"

_COLOURS = {"discreet": "#0072b2", "floor": "#999999", "alternative": "#d55e00"}
_SERIES = {
    "arms": "#0072b2",
    "cells": "#009e73",
    "clients": "#d55e00",
    "candidates": "#cc79a7",
    "described": "#56b4e9",
    "dimensions": "#e69f00",
}
"""Okabe and Ito's palette, which colour-blind readers can tell apart."""
_PARTS = {"recommend": "#0072b2", "feedback": "#56b4e9", "batch": "#009e73"}
_INK = "#24292f"
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.axisbelow": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.hashsalt": "discreet",  # the same run gives the same file
}

Found = Mapping[str, Any]


def can_draw() -> bool:
    """Tell whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw(found: Found, path: Path) -> None:
    """Write the picture, as SVG."""
    # A heavy import, and optional.
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(10.5, 11.0), layout="constrained", facecolor="white")
        FigureCanvasSVG(figure)
        panels = {"t": _throughput, "l": _latency, "f": _families, "g": _growth, "m": _memory}
        for name, axes in figure.subplot_mosaic("tl;ff;gm").items():
            panels[str(name)](axes, found)
        figure.supxlabel(_caption(found["machine"]), fontsize=7.5, color="#57606a")
        figure.savefig(path, format="svg", metadata={"Date": None})


def _caption(machine: Found) -> str:
    return (
        f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, "
        f"Valkey {machine['valkey']} with fsync {machine['fsync']}, "
        f"{machine['connections']} connections"
    )


def _groups(found: Found) -> list[tuple[str, Found]]:
    return [
        (f"/{path}\n{workers} worker{'s' if workers != '1' else ''}", row)
        for path in report.PATHS
        if path in found
        for workers, row in found[path]["workers"].items()
    ]


def _empty(axes: Any) -> None:
    axes.text(0.5, 0.5, "not measured", ha="center", va="center", transform=axes.transAxes)
    axes.set_xticks([])
    axes.set_yticks([])


def _throughput(axes: Any, found: Found) -> None:
    axes.set_title("Throughput")
    groups = _groups(found)
    if not groups:
        _empty(axes)
        return
    for place, service in enumerate(report.SERVICES):
        at = [number + 0.27 * (place - 1) for number in range(len(groups))]
        heights = [row[service]["rps"] for _, row in groups]
        axes.bar(at, heights, 0.25, color=_COLOURS[service], label=service)
    for number, (_, row) in enumerate(groups):
        axes.annotate(
            f"{row['ratio_to_floor']['median']:.1f}×",
            (number - 0.27, row["discreet"]["rps"]),
            ha="center", va="bottom", fontsize=8, color=_COLOURS["discreet"],
        )  # fmt: skip
    axes.set_xticks(range(len(groups)), [name for name, _ in groups])
    axes.set_ylabel("requests a second (× the floor)")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.margins(y=0.22)  # room for the legend above the bars
    axes.grid(axis="y")
    axes.legend(loc="upper center", ncols=3)


def _latency(axes: Any, found: Found) -> None:
    axes.set_title("Latency at the same offered load")
    groups = _groups(found)
    if not groups:
        _empty(axes)
        return
    for place, service in enumerate(report.SERVICES):
        at = [number + 0.22 * (place - 1) for number in range(len(groups))]
        p50, p99 = ([row[service][key] for _, row in groups] for key in ("p50_ms", "p99_ms"))
        colour = _COLOURS[service]
        axes.vlines(at, p50, p99, color=colour, linewidth=2.5, alpha=0.5)
        axes.plot(at, p50, "o", color=colour, markersize=5)
        axes.plot(at, p99, "^", color=colour, markersize=6)
    axes.plot([], [], "o", color=_INK, markersize=5, label="p50")
    axes.plot([], [], "^", color=_INK, markersize=6, label="p99")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    names = [f"{name}\n{row['offered_rps']:,} /s" for name, row in groups]
    axes.set_xticks(range(len(groups)), names)
    axes.set_ylabel("milliseconds")
    axes.set_ylim(top=4 * axes.get_ylim()[1])  # room for the legend above the points
    axes.grid(axis="y")
    axes.legend(loc="upper center", ncols=2)


def _families(axes: Any, found: Found) -> None:
    axes.set_title("Every family, one worker: times the floor")
    if "families" not in found:
        _empty(axes)
        return
    kinds = found["families"]["kinds"]
    for place, (path, colour) in enumerate(_PARTS.items()):
        at = [number + 0.27 * (place - 1) for number in range(len(kinds))]
        times = [kind[path]["ratio_to_floor"]["median"] for kind in kinds.values()]
        label = "batches of 1,000" if path == "batch" else f"/{path}"
        axes.bar(at, times, 0.25, color=colour, label=label)
        for x, height in zip(at, times, strict=True):
            axes.annotate(f"{height:.1f}", (x, height), ha="center", va="bottom", fontsize=7)
    axes.axhline(report.FAMILY_TIMES_FLOOR, color=_INK, linewidth=0.9, linestyle="--")
    axes.axhline(1, color=_COLOURS["floor"], linewidth=0.9)
    axes.set_xticks(range(len(kinds)), [name.replace(", ", "\n") for name in kinds])
    axes.set_ylabel("requests a second, times the floor's")
    axes.margins(y=0.2)  # room for the legend above the bars
    axes.grid(axis="y")
    axes.legend(loc="upper center", ncols=3)


def _growth(axes: Any, found: Found) -> None:
    axes.set_title("Cost of a recommendation as things grow")
    if "scaling" not in found:
        _empty(axes)
        return
    highest = 2.0
    for name, colour in _SERIES.items():
        series = found["scaling"].get(name)
        if series is None:
            continue
        costs = list(series["cpu_us"].values())
        sizes = [report.reached(series, size) for size in series["cpu_us"]]
        relative = [cost / costs[0] for cost in costs]
        highest = max(highest, *relative)
        axes.plot(sizes, relative, "o-", color=colour, linewidth=1.6, markersize=4, label=name)
    for limit, names in ((1.5, "arms, cells"), (1.2, "clients")):
        axes.axhline(limit, color=_INK, linewidth=0.9, linestyle="--")
        axes.annotate(
            f" bar {limit}: {names}", (1, limit), xycoords=("axes fraction", "data"),
            ha="left", va="center", fontsize=7.5, annotation_clip=False,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = [0.8, 1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200]
    axes.set_yticks([tick for tick in ticks if tick <= 1.2 * highest])
    axes.set_yticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylim(0.75, 1.2 * highest)
    axes.set_xticks([1, 100, 10_000, 1_000_000])
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("how many")
    axes.set_ylabel("CPU time, times the smallest")
    axes.grid()
    axes.legend(loc="upper left")


def _memory(axes: Any, found: Found) -> None:
    axes.set_title("Bytes in the store")
    if "memory" not in found:
        _empty(axes)
        return
    memory = found["memory"]
    rows = {
        "client's ledger": memory["ledger_bytes"],
        "pending decision": memory["pending_decision_bytes"],
        "… with an event_id": memory["pending_decision_with_event_id_bytes"],
        "counted feedback": memory["claim_bytes"],
        "… until the release, more": memory["unreleased_feedback_bytes"],
        "voter": memory["vote_bytes"]["voter"],
        "vote": memory["vote_bytes"]["vote"],
        **{f"sums, {int(arms):,} arms": size for arms, size in memory["sums_bytes"].items()},
        **{f"model, {size}": weight for size, weight in memory["model_bytes"].items()},
    }
    places = range(len(rows))
    # A logarithmic axis has no place for nothing: the pending decision keeps its label only.
    axes.barh(places, [max(size, 1) for size in rows.values()], color=_COLOURS["discreet"])
    for place, size in zip(places, rows.values(), strict=True):
        axes.annotate(
            f" {size:,.0f}" if size >= 10 else f" {size:.2g}",
            (max(size, 1), place),
            va="center",
            fontsize=8,
        )
    axes.set_xscale("log")
    axes.set_xlim(1, 4 * max(rows.values()))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_yticks(places, list(rows))
    axes.invert_yaxis()
    axes.set_xlabel("bytes each, keys included")
    axes.grid(axis="x")
