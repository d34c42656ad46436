"""The suite's pictures, from its report: learning by round, and what privacy costs."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from discreet.research.reproduce.tables import Figure, Line, Panel

SIDE_BY_SIDE = 3
"""Worlds in one picture."""
_LEARNERS = ("contextual", "p-dap", "linucb", "vw", "popular", "chance")

Entry = Mapping[str, Any]


def suite_figures(report: Mapping[str, Any]) -> list[Figure]:
    """Return every picture that the report has the numbers for."""
    curves: Sequence[Entry] = report["curves"]
    answers = {curve["answers_epsilon"] for curve in curves}
    main = 2.0 if 2.0 in answers else max((one for one in answers if one), default=None)
    figures = list(_by_round(curves, None, "unprotected", "without protection"))
    if main is not None:
        figures += _by_round(curves, main, "private", f"answers at epsilon {main:g}")
        figures += _costs(report["rows"], curves, main)
    return figures


def _by_round(
    curves: Sequence[Entry], epsilon: float | None, name: str, title: str
) -> Iterable[Figure]:
    panels = []
    for world in dict.fromkeys(curve["world"] for curve in curves):
        lines = [
            Line(learner, curve["rounds"], curve["share"])
            for learner in _LEARNERS
            for curve in _matching(
                curves,
                world=world,
                learner=learner,
                answers_epsilon=epsilon,
                feedback_epsilon=None,
            )[:1]
        ]
        if lines:
            panels.append(Panel(world, "visits", "share of the ceiling", lines))
    for number, start in enumerate(range(0, len(panels), SIDE_BY_SIDE), start=1):
        yield Figure(
            f"suite-{name}-{number}",
            f"share of the best rule that knows the truth: {title}, exact feedback",
            panels[start : start + SIDE_BY_SIDE],
        )


def _costs(rows: Sequence[Entry], curves: Sequence[Entry], main: float) -> Iterable[Figure]:
    """Yield a picture a world: reward by the epsilon of answers, and by the number of visits."""
    learner = next((one for one in _LEARNERS if _matching(rows, learner=one)), None)
    for world in dict.fromkeys(row["world"] for row in rows):
        ours = _matching(rows, world=world, learner=learner)
        shortest = min((row["rounds"] for row in _last(ours)), default=0)
        same = [row for row in ours if row["rounds"] == shortest and row["answers_epsilon"]]
        lines = []
        for feedback in sorted({row["feedback_epsilon"] for row in same}, key=_strength):
            points = sorted(
                (row["answers_epsilon"], row["reward_late"])
                for row in _matching(same, feedback_epsilon=feedback)
            )
            lines.append(Line(_dial("feedback", feedback), *zip(*points, strict=True)))
        grown = [
            Line(
                f"{_dial('answers', answers)}, {_dial('feedback', curve['feedback_epsilon'])}",
                curve["rounds"],
                curve["reward"],
            )
            for answers in (None, main)
            for curve in sorted(
                _matching(curves, world=world, learner=learner, answers_epsilon=answers),
                key=lambda one: _strength(one["feedback_epsilon"]),
            )
            if answers is not None or curve["feedback_epsilon"] is None
        ]
        if any(len(line.x) > 1 for line in lines) and grown:
            span = f"late reward of a run of {shortest:,} visits"
            yield Figure(
                f"privacy-cost-{world}",
                f"{world}: what privacy costs ({learner})",
                [
                    Panel(span, "epsilon of answers", "mean reward", lines, log_x=True),
                    Panel("by traffic", "visits", "mean reward", grown, log_x=True),
                ],
            )


def _matching(entries: Iterable[Entry], **wanted: object) -> list[Entry]:
    return [one for one in entries if all(one[name] == value for name, value in wanted.items())]


def _last(rows: Sequence[Entry]) -> list[Entry]:
    """Return every setting's row of the most rounds."""
    longest: dict[tuple[object, object], Entry] = {}
    for row in rows:
        key = (row["answers_epsilon"], row["feedback_epsilon"])
        if key not in longest or longest[key]["rounds"] < row["rounds"]:
            longest[key] = row
    return list(longest.values())


def _strength(epsilon: float | None) -> float:
    """Order dials from exact to the smallest epsilon."""
    return -math.inf if epsilon is None else -epsilon


def _dial(name: str, epsilon: float | None) -> str:
    return f"{name} exact" if epsilon is None else f"{name} {epsilon:g}"
