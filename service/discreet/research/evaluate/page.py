"""The report as one HTML page: what we would earn, compared with what, how sure, at what price.

It needs no other file and no script, so that it can be sent by mail.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from discreet.research.evaluate.drawings import Bar, bars, curve
from discreet.research.evaluate.policies import POPULAR

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1f24; max-width: 720px; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin: 1.8rem 0 .3rem; }
.lead { font-size: 1.15rem; } .small { color: #57606a; font-size: .88rem; }
.warning { background: #fff4d6; border-left: 4px solid #d4a300; padding: .5rem .8rem; }
svg { width: 100%; height: auto; } svg text { font: 14px system-ui, sans-serif; fill: #1b1f24; }
svg text.tick { font-size: 12px; fill: #57606a; } svg text.main { font-weight: 700; }
.grid { stroke: #d8dee4; stroke-width: 1; } .span { stroke-width: 4; stroke: #8c959f; }
.span.main { stroke: #0072b2; } circle.main { fill: #0072b2; } circle.other { fill: #57606a; }
.band { fill: #0072b2; fill-opacity: .15; }
.curve { fill: none; stroke: #0072b2; stroke-width: 2.5; }
table { border-collapse: collapse; width: 100%; font-size: .85rem; }
td, th { text-align: right; padding: .25rem .4rem; border-bottom: 1px solid #d8dee4; }
td:first-child, th:first-child { text-align: left; }
@media print { body { margin: 0 auto; } }
"""


def page(found: Mapping[str, Any]) -> str:
    """Return the page."""
    main = found["policies"][0]
    parts = [
        f"<h1>What “{escape(found['recommender'])}” would earn</h1>",
        f'<p class="small">{_about(found)}</p>',
        f'<p class="lead">{headline(found)}</p>',
        "<h2>Compared with what</h2>",
        bars(
            [
                Bar(_name(one, found), *_interval(one["dr"]), main=one is main)
                for one in found["policies"]
            ]
        ),
        f"<p>{_compared(found)}</p>",
        "<h2>How sure</h2>",
        f"<p>{_sure(found)}</p>",
        *(
            f'<p class="warning">{escape(one)}.</p>'
            for one in (*found["refusals"], *found["warnings"])
        ),
    ]
    if found["curve"]:
        parts += ["<h2>What privacy costs</h2>", f"<p>{_price(found)}</p>"]
        parts += [_curve(found, dial) for dial in ("answers", "feedback")]
    parts += ["<h2>All figures</h2>", _table(found), f'<p class="small">{_method(found)}</p>']
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>What {escape(found['recommender'])} would earn</title>"
        f"<style>{_STYLE}</style></head><body>" + "\n".join(parts) + "</body></html>\n"
    )


def headline(found: Mapping[str, Any]) -> str:
    """Return the first sentence: what it would earn, against the best that needs no learner."""
    main = found["policies"][0]
    popular = next(one for one in found["policies"] if one["policy"] == POPULAR)
    over = next(one for one in found["differences"] if one["over"] == POPULAR)
    mean, low, high = _interval(main["dr"])
    said = f"It would earn {mean:.3f} a visit ({low:.3f} to {high:.3f})"
    against = f"always showing the most popular item, {popular['dr']['mean']:.3f}"
    if over["low"] is None:
        return f"{said}; {against}."
    if over["low"] > 0:
        return f"{said}: more than {against}. The difference is no accident."
    if over["high"] < 0:
        return f"{said}: less than {against}. Show the most popular item, or ask for more epsilon."
    return f"{said}; {against}. The log cannot tell which is better."


def _about(found: Mapping[str, Any]) -> str:
    log, dials = found["log"], found["dials"]
    clients = "" if log["clients"] is None else f" of {log['clients']:,} clients"
    return (
        f"{escape(found['algorithm'])}, answers {_dial(dials['answers'])}, feedback "
        f"{_dial(dials['feedback'])}; judged by {log['rows']:,} logged visits{clients} with "
        f"{log['items']:,} items. A reward is a number from 0 to 1: with clicks, the share of "
        "visits with a click."
    )


def _name(one: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    return found["recommender"] if one is found["policies"][0] else str(one["policy"])


def _compared(found: Mapping[str, Any]) -> str:
    said = []
    for one in found["differences"]:
        if one["mean"] is None or one["low"] is None:
            continue
        said.append(
            f"{one['mean']:+.3f} against {escape(one['over'])} "
            f"({one['low']:+.3f} to {one['high']:+.3f})"
        )
    return "A visit earns " + "; ".join(said) + "."


def _sure(found: Mapping[str, Any]) -> str:
    main = found["policies"][0]
    mean, _, high = _interval(main["dr"])
    late, _, _ = _interval(main["dr_last_quarter"])
    said = (
        f"The true figure lies within ±{high - mean:.3f} with 95% confidence, if the log's "
        f"propensities are right. {main['effective_sample_size']:,.0f} visits of its own would say "
        f"as much as this log does. The figure includes the time in which it still had to learn: "
        f"in the last quarter of the log it is {late:.3f}."
    )
    if not main["reliable"]:
        said += " <strong>That is too little evidence for a decision.</strong>"
    if main["degraded_answers"]:
        said += (
            f" {main['degraded_answers']:.1%} of the answers were not personalised, because the "
            "client's budget was spent."
        )
    if main["feedback_not_learned"]:
        said += (
            f" {main['feedback_not_learned']:.1%} of the feedback was not learned from, because "
            "its client's budget was spent."
        )
    return said


def _price(found: Mapping[str, Any]) -> str:
    free = found["curve"][0]
    dials = found["dials"]
    here = next(
        (
            one
            for one in found["curve"]
            if (one["answers_epsilon"], one["feedback_epsilon"])
            == (dials["answers"], dials["feedback"])
        ),
        None,
    )
    said = f"Without any protection a visit would earn {_shown(free['dr']['mean'])}"
    if here is not None and here is not free:
        said += f"; as configured, with budgets that never run out, {_shown(here['dr']['mean'])}"
    rows = free["rows"]
    return (
        f"{said} (over the first {rows:,} rows). A smaller epsilon protects more. “Answers” is "
        "what an answer may tell about the visitor, “feedback” what all answers to others may "
        "tell about one click."
    )


def _curve(found: Mapping[str, Any], dial: str) -> str:
    other = "feedback" if dial == "answers" else "answers"
    points = [
        (one[f"{dial}_epsilon"], *_interval(one["dr"]))
        for one in found["curve"]
        if one[f"{other}_epsilon"] == found["dials"][other]
    ]
    xlabel = f"epsilon of {dial} ({other} {_dial(found['dials'][other])})"
    return curve(points, xlabel=xlabel)


def _table(found: Mapping[str, Any]) -> str:
    heads = ("", "DR", "IPS", "SNIPS", "replay", "last quarter", "effective rows")
    rows = []
    for one in found["policies"]:
        cells = [_cell(one[name]) for name in ("dr", "ips", "snips", "replay", "dr_last_quarter")]
        size = f"{one['effective_sample_size']:,.0f}"
        rows.append(_row("td", [escape(_name(one, found)), *cells, size]))
    return f"<table>{_row('th', heads)}{''.join(rows)}</table>"


def _row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


def _cell(one: Mapping[str, Any] | None) -> str:
    if one is None or one["mean"] is None:
        return "–"
    spread = "" if one["high"] is None else f" ± {one['high'] - one['mean']:.3f}"
    return f"{one['mean']:.3f}{spread}"


def _method(found: Mapping[str, Any]) -> str:
    main = found["policies"][0]
    said = (
        "DR, IPS and SNIPS weigh every row of the log by how much likelier the policy was to show "
        "what was shown; the policy learns from the rows before. Replay plays the policy live on "
        "the log and counts only rows where it showed the same"
    )
    if main["replay_rows"]:
        said += f": {main['replay_rows']:,} of {found['log']['rows']:,} rows, so it learned less"
    notes = "".join(f" {escape(one[:1].upper() + one[1:])}." for one in found["notes"])
    return f"{said}.{notes} All intervals are 95%."


def _interval(one: Mapping[str, float | None]) -> tuple[float, float, float]:
    return tuple(math.nan if one[name] is None else one[name] for name in ("mean", "low", "high"))  # type: ignore[return-value]


def _dial(epsilon: float | None) -> str:
    return "unprotected" if epsilon is None else f"epsilon {epsilon:g}"


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
