"""`discreet evaluate`: what your recommenders would earn, from a log of random choices."""

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from discreet import configuration
from discreet.commands.progress import progress_bar
from discreet.commands.reproduce import wide_console
from discreet.errors import InvalidArgument
from discreet.families.documents import RecommenderDocument
from discreet.research.evaluate.described import described_by
from discreet.research.evaluate.estimators import PolicyResult, averaged
from discreet.research.evaluate.evaluation import (
    CURVE_ROWS,
    EvaluationTrial,
    Setting,
    baselines,
    curve_settings,
    log_and_model,
    report,
    written,
)
from discreet.research.evaluate.logs import LogOptions
from discreet.research.evaluate.page import headline, page
from discreet.research.evaluate.randomness import FLOOR, examine
from discreet.research.reproduce.trials import run_all
from discreet.research.simulate.server import ARRIVALS_PER_SECOND

EXAMPLES = """\
examples:
  discreet evaluate --log log.csv --config discreet.yaml
  discreet evaluate --log log.parquet --config discreet.yaml --recommender films --html report.html
  discreet evaluate --log decisions.jsonl --config discreet.yaml --missing-reward 0
  discreet evaluate --log log.csv --config discreet.yaml --epsilons '' --json > out.json

columns of the log (docs/evaluate.md):
  item         what was shown (or: action)
  reward       what came of it, from 0 to 1
  propensity   the probability with which it was shown (or say --uniform)
  context      as the recommender takes it: JSON, or columns context_0 … or context.NAME
  client, time, candidates     if known: who came, when, and what could have been shown

Choices must have been random: a log that is not, or whose propensities are wrong, is refused.
"""
EPSILONS = "0.25,0.5,1,2,4"
FEEDBACK_EPSILONS = "0.5,1,4"
SEEDS = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument(
        "--log",
        type=Path,
        required=True,
        metavar="FILE",
        help="CSV, Parquet or JSON lines; .gz is unpacked",
    )
    parser.add_argument(
        "--config",
        type=Path,
        required=True,
        metavar="FILE",
        help="the configuration with the recommender, as for serve",
    )
    parser.add_argument("--recommender", metavar="NAME", help="which one, if the file has several")
    reading = parser.add_argument_group("how the log is read")
    reading.add_argument(
        "--uniform",
        action="store_true",
        help="every candidate was equally likely, so there need be no propensities; it is tested",
    )
    reading.add_argument(
        "--missing-reward",
        metavar="NUMBER",
        help="what rows without a reward earned (0 if only clicks were recorded), or skip",
    )
    reading.add_argument("--rows", type=int, metavar="N", help="read so many rows (default: all)")
    reading.add_argument(
        "--floor",
        type=float,
        default=FLOOR,
        metavar="P",
        help="warn of propensities below this (default: %(default)g)",
    )
    reading.add_argument(
        "--anyway",
        action="store_true",
        help="evaluate though the choices were not random; the figures then mean little",
    )
    running = parser.add_argument_group("what is run")
    running.add_argument(
        "--epsilons",
        default=EPSILONS,
        metavar="LIST",
        help="epsilons of answers for the curve (default: %(default)s; '' for no curve)",
    )
    running.add_argument(
        "--feedback-epsilons",
        default=FEEDBACK_EPSILONS,
        metavar="LIST",
        help="epsilons of feedback for the curve (default: %(default)s)",
    )
    running.add_argument(
        "--curve-rows",
        type=int,
        default=CURVE_ROWS,
        metavar="N",
        help="rows that each point of the curve is made from, at most (default: %(default)d)",
    )
    running.add_argument(
        "--rate",
        type=float,
        default=ARRIVALS_PER_SECOND,
        help="visits a second, for a log without times (default: %(default)g)",
    )
    running.add_argument(
        "--no-replay", action="store_true", help="leave out the second pass, which replays the log"
    )
    running.add_argument("--seed", type=int, default=0, help="of all draws (default: %(default)d)")
    running.add_argument(
        "--seeds",
        type=int,
        default=SEEDS,
        metavar="N",
        help="runs of each, whose noise differs (default: %(default)d)",
    )
    running.add_argument(
        "--processes", type=int, metavar="N", help="runs at a time (default: one per core)"
    )
    writing = parser.add_argument_group("what is written")
    writing.add_argument("--json", action="store_true", help="print the results as JSON")
    writing.add_argument(
        "--html", type=Path, metavar="FILE", help="write the report, one page with pictures"
    )


def run(args: argparse.Namespace) -> int:
    """Evaluate; refuse a log that cannot bear it."""
    name, document = _recommender(args)
    found = evaluate(args, name, document)
    if args.html is not None:
        try:
            args.html.write_text(page(found), encoding="utf-8")
        except OSError as error:
            raise InvalidArgument(
                "--html", f"{args.html} cannot be written: {error.strerror}"
            ) from None
    if args.json:
        print(json.dumps(found, indent=1))
    else:
        _print(found)
        if args.html is not None:
            print(f"written: {args.html}")
    return 0


def evaluate(args: argparse.Namespace, name: str, document: RecommenderDocument) -> dict[str, Any]:
    """Return everything that is found."""
    answers = _epsilons("--epsilons", args.epsilons)
    feedback = _epsilons("--feedback-epsilons", args.feedback_epsilons) if answers else []
    options = LogOptions(
        uniform=args.uniform,
        missing=_missing(args.missing_reward),
        most=_positive("--rows", args.rows),
    )
    _positive("--curve-rows", args.curve_rows)
    _positive("--seeds", args.seeds)
    log, model = log_and_model(args.log, document, options)
    randomness = examine(log, floor=args.floor)
    if randomness.refusals and not args.anyway:
        raise InvalidArgument(
            "--log", f"{'; '.join(randomness.refusals)} (--anyway evaluates all the same)"
        )
    for warning in (*randomness.refusals, *randomness.warnings):
        print(f"discreet: warning: {warning}", file=sys.stderr)
    settings = curve_settings(document, answers, feedback) if answers else []

    first, *trials = _trials(args, name, document, options, settings, len(log))
    with progress_bar(name) as watch:
        done, total = 0, first.passes * first.rounds

        def row_by_row(rows: int) -> None:
            nonlocal done
            done += rows
            watch(done, total, "rows")

        main = first.play(row_by_row)
    runs: list[PolicyResult] = []
    if trials:
        with progress_bar("other runs") as watch:
            runs = run_all(trials, watch=watch, processes=args.processes)
    runs.insert(0, main)
    by_setting = [runs[at : at + args.seeds] for at in range(0, len(runs), args.seeds)]
    main, *curve = map(averaged, by_setting)
    return report(
        name=name,
        log=log,
        randomness=randomness,
        main=main,
        compared=baselines(log, model),
        curve=list(zip(settings, curve, strict=True)),
        document=document,
        rate=args.rate,
    )


def _trials(
    args: argparse.Namespace,
    name: str,
    document: RecommenderDocument,
    options: LogOptions,
    settings: Sequence[Setting],
    rows: int,
) -> list[EvaluationTrial]:
    """Return the runs: the recommender as written on every seed, then each setting on every."""
    return [
        EvaluationTrial(
            name=name,
            document=document,
            setting=setting,
            path=args.log,
            options=options,
            rounds=rows if setting.as_written else min(rows, args.curve_rows),
            seed=args.seed + seed,
            rate=args.rate,
            with_replay=setting.as_written and not args.no_replay,
        )
        for setting in (written(document), *settings)
        for seed in range(args.seeds)
    ]


def _recommender(args: argparse.Namespace) -> tuple[str, RecommenderDocument]:
    described = configuration.read(args.config).recommenders
    names = ", ".join(sorted(described))
    if not described:
        raise InvalidArgument("--config", f"{args.config} has no recommenders")
    name = args.recommender
    if name is None and len(described) > 1:
        raise InvalidArgument("--recommender", f"say which one the log is of: {names}")
    name = name or next(iter(described))
    if name not in described:
        raise InvalidArgument(
            "--recommender", f"{args.config} has no such recommender; it has {names}"
        )
    described_by(described[name])  # a family that a log cannot judge is an error now
    return name, described[name]


def _epsilons(option: str, text: str) -> list[float]:
    if not text.strip():
        return []
    try:
        epsilons = sorted({float(part) for part in text.split(",")})
    except ValueError:
        raise InvalidArgument(option, "must be numbers with commas between") from None
    if not 0 < epsilons[0] <= epsilons[-1] <= 50:
        raise InvalidArgument(option, "each must be greater than 0 and at most 50")
    return epsilons


def _missing(text: str | None) -> float | None:
    if text is None:
        return None
    if text == "skip":
        return math.nan
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidArgument("--missing-reward", "must be a number, or skip")
    return value


def _positive(option: str, value: int | None) -> int | None:
    if value is not None and value < 1:
        raise InvalidArgument(option, "must be at least 1")
    return value


def _print(found: Mapping[str, Any]) -> None:
    console = wide_console()
    log = found["log"]
    title = f"{found['recommender']}: {log['rows']:,} rows, {log['items']:,} items"
    console.print(title, style="bold", highlight=False, soft_wrap=True)
    _print_table(
        console,
        ("", "DR", "IPS", "SNIPS", "replay", "last quarter", "effective rows", "replay rows"),
        [
            [
                one["policy"],
                *(_cell(one[kind]) for kind in ("dr", "ips", "snips", "replay", "dr_last_quarter")),
                f"{one['effective_sample_size']:,.0f}",
                f"{one['replay_rows']:,}" if one["replay_rows"] else "–",
            ]
            for one in found["policies"]
        ],
    )
    if found["curve"]:
        console.print()
        _print_table(
            console,
            ("answers", "feedback", "DR", "last quarter"),
            [
                [
                    _dial(one["answers_epsilon"]),
                    _dial(one["feedback_epsilon"]),
                    _cell(one["dr"]),
                    _cell(one["dr_last_quarter"]),
                ]
                for one in found["curve"]
            ],
        )
    console.print()
    console.print(headline(found), highlight=False, soft_wrap=True)
    for note in found["notes"]:
        console.print(note, highlight=False, soft_wrap=True)


def _print_table(console: Any, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(box=None)
    for number, head in enumerate(heads):
        table.add_column(head, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _cell(one: Mapping[str, Any] | None) -> str:
    if one is None or one["mean"] is None:
        return "–"
    spread = "" if one["high"] is None else f" ± {one['high'] - one['mean']:.4f}"
    return f"{one['mean']:.4f}{spread}"


def _dial(epsilon: float | None) -> str:
    return "exact" if epsilon is None else f"{epsilon:g}"
