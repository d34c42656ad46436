"""Pictures as SVG, without a library: they are put into the page itself."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 680
_LEFT, _RIGHT, _ROW = 190, 90, 34


@dataclass(frozen=True, slots=True)
class Bar:
    """A mean with its interval, by name; `main` is the one that the page is about."""

    label: str
    mean: float
    low: float
    high: float
    main: bool = False


CurvePoint = tuple[float | None, float, float, float]
"""An epsilon (None: no protection), a mean, and the ends of its interval."""


def bars(many: Sequence[Bar]) -> str:
    """Return a picture of means with their intervals, one below the other."""
    known = [one for one in many if math.isfinite(one.mean)]
    ticks = _ticks(
        min((one.low for one in known if math.isfinite(one.low)), default=0.0),
        max((one.high for one in known if math.isfinite(one.high)), default=1.0),
    )
    low, high = ticks[0], ticks[-1]
    height = _ROW * len(known) + 34

    def x(value: float) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * (value - low) / (high - low)

    parts = []
    for tick in ticks:
        parts.append(_line(x(tick), 4, x(tick), height - 26, "grid"))
        parts.append(_text(x(tick), height - 8, f"{tick:g}", "middle", "tick"))
    for row, one in enumerate(known):
        y = _ROW * (row + 0.5) + 2
        kind = "main" if one.main else "other"
        parts.append(_text(_LEFT - 12, y + 5, one.label, "end", kind))
        if math.isfinite(one.low):
            parts.append(_line(x(max(one.low, low)), y, x(min(one.high, high)), y, f"span {kind}"))
        parts.append(f'<circle cx="{x(one.mean):.1f}" cy="{y:.1f}" r="6" class="{kind}"/>')
        parts.append(_text(WIDTH - _RIGHT + 14, y + 5, f"{one.mean:.3f}", "start", kind))
    return _svg(height, "What each would earn, with 95% intervals", parts)


def curve(points: Sequence[CurvePoint], *, xlabel: str) -> str:
    """Return a picture of means by epsilon, with a band for their intervals."""
    points = [point for point in points if all(map(math.isfinite, point[1:]))]
    values = [value for point in points for value in point[1:]]
    ticks = _ticks(min(values, default=0.0), max(values, default=1.0))
    low, high = ticks[0], ticks[-1]
    places = [*sorted({point[0] for point in points if point[0] is not None}), None]
    height, top, bottom, left = 260, 10, 48, 60

    def x(epsilon: float | None) -> float:
        return left + 20 + (WIDTH - left - 60) * places.index(epsilon) / max(1, len(places) - 1)

    def y(value: float) -> float:
        return top + (height - top - bottom) * (high - value) / (high - low)

    parts = []
    for tick in ticks:
        parts.append(_line(left, y(tick), WIDTH - 20, y(tick), "grid"))
        parts.append(_text(left - 8, y(tick) + 4, f"{tick:g}", "end", "tick"))
    for epsilon in places:
        shown = "off" if epsilon is None else f"{epsilon:g}"
        parts.append(_text(x(epsilon), height - 28, shown, "middle", "tick"))
    parts.append(_text((left + WIDTH) / 2, height - 8, xlabel, "middle", "tick"))
    points = sorted(points, key=lambda point: places.index(point[0]))
    over = [f"{x(epsilon):.1f},{y(high):.1f}" for epsilon, _, _, high in points]
    under = [f"{x(epsilon):.1f},{y(low):.1f}" for epsilon, _, low, _ in points]
    line = [f"{x(epsilon):.1f},{y(mean):.1f}" for epsilon, mean, _, _ in points]
    parts.append(f'<polygon points="{" ".join(over + under[::-1])}" class="band"/>')
    parts.append(f'<polyline points="{" ".join(line)}" class="curve"/>')
    parts += [
        f'<circle cx="{x(epsilon):.1f}" cy="{y(mean):.1f}" r="4" class="main"/>'
        for epsilon, mean, _, _ in points
    ]
    return _svg(height, f"What it would earn by {xlabel}", parts)


def _ticks(low: float, high: float) -> list[float]:
    """Return a few round numbers around a range."""
    span = max(high - low, 1e-6)
    rough = span / 4
    step = 10.0 ** math.floor(math.log10(rough))
    step *= next(factor for factor in (1, 2, 5, 10) if factor * step >= rough)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(number * step, 10) for number in range(first, max(last, first + 1) + 1)]


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _text(x: float, y: float, text: str, anchor: str, kind: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escape(text)}</text>'
    )


def _svg(height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
        + "".join(parts)
        + "</svg>"
    )
