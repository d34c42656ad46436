"""Drawing figures as PNG files, with matplotlib if it is there (the extra `plots`)."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from discreet.research.reproduce.tables import Figure, Line, Panel

HOW_TO_DRAW = "no pictures without matplotlib: pip install 'discreet[plots]'"

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe and Ito's palette, which colour-blind readers can tell apart."""

_FEW_VALUES = 8


def can_draw() -> bool:
    """Tell whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """Write every figure into the folder; return the files."""
    # A heavy import, and optional.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    paths = []
    for figure in figures:
        canvas = Canvas(figsize=(4.6 * len(figure.panels), 3.6), layout="constrained")
        FigureCanvasAgg(canvas)
        canvas.suptitle(figure.title, fontsize=11)
        every = canvas.subplots(1, len(figure.panels), squeeze=False)[0]
        for axes, panel in zip(every, figure.panels, strict=True):
            number = -1
            for line in panel.lines:
                number += not line.published
                _draw_line(axes, line, max(number, 0))
            axes.set_title(panel.title, fontsize=10)
            axes.set_xlabel(panel.xlabel)
            axes.set_ylabel(panel.ylabel)
            axes.set_xscale("log" if panel.log_x else "linear")
            if panel.log_x:
                _mark_values(axes, panel)
            axes.grid(alpha=0.25)
            axes.spines[["top", "right"]].set_visible(False)
        # A legend names what no legend before it has named: most panels show the same lines.
        named: set[tuple[str, Any]] = set()
        for axes in every:
            lines, labels = axes.get_legend_handles_labels()
            new = {
                (label, line.get_color()): line for line, label in zip(lines, labels, strict=True)
            }
            fresh = {key: line for key, line in new.items() if key not in named}
            if fresh:
                names = [label for label, _ in fresh]
                axes.legend(fresh.values(), names, fontsize=8, framealpha=0.8, edgecolor="none")
            named |= new.keys()
        path = folder / f"{figure.name}.png"
        canvas.savefig(path, dpi=110)
        paths.append(path)
    return paths


def _mark_values(axes: Any, panel: Panel) -> None:
    """Name the values that there are, if they are few: powers of ten say little about 0.5 to 4."""
    values = sorted({float(x) for line in panel.lines for x in line.x})
    if len(values) <= _FEW_VALUES:
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.minorticks_off()


def _draw_line(axes: Any, line: Line, number: int) -> None:
    """Draw the panel's line of this number; a published one is dotted, in the colour before it."""
    colour = _COLOURS[number % len(_COLOURS)]
    dashes = "-" if number < len(_COLOURS) else "--"
    mark = None
    if len(line.x) <= 12:
        mark = "o" if number < len(_COLOURS) else "s"
    if line.published:
        dashes, mark = ":", "x"
    axes.plot(
        line.x, line.y, label=line.label, color=colour, linestyle=dashes, linewidth=1.6, marker=mark
    )
    if line.spread is not None:
        low = [y - s for y, s in zip(line.y, line.spread, strict=True)]
        high = [y + s for y, s in zip(line.y, line.spread, strict=True)]
        axes.fill_between(line.x, low, high, color=colour, alpha=0.15, linewidth=0)
