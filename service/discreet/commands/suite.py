"""`discreet simulate --suite`: our learners beside others, in worlds whose truth is known."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from discreet.commands.progress import progress_bar
from discreet.commands.reproduce import make_folder, wide_console
from discreet.errors import InvalidArgument
from discreet.research.reproduce.pictures import HOW_TO_DRAW, can_draw, draw
from discreet.research.reproduce.trials import run_all
from discreet.research.suite.figures import suite_figures
from discreet.research.suite.plan import SuiteOptions, plan
from discreet.research.suite.report import completed, suite_report, suite_tables
from discreet.research.suite.trials import HOW_TO_RIVAL, missing_rivals

REPORT = "suite.json"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `--suite`, beside those that it shares with `--config`."""
    own = parser.add_argument_group("with --suite")
    own.add_argument(
        "--quick", action="store_true", help="fewer worlds and settings: a few minutes"
    )
    own.add_argument("--worlds", metavar="A,B", help="only these worlds")
    own.add_argument("--learners", metavar="A,B", help="only these learners")
    own.add_argument(
        "--beside",
        type=Path,
        metavar="FILE",
        help=f"a {REPORT} of an earlier run: shown with this one, for what this one leaves out",
    )
    own.add_argument(
        "--save", type=Path, metavar="DIR", help=f"write pictures and {REPORT} into this folder"
    )


def run(args: argparse.Namespace) -> int:
    """Run every learner in every world, and show what came of it."""
    if args.processes is not None and args.processes < 1:
        raise InvalidArgument("--processes", "must be at least 1")
    options = SuiteOptions(
        quick=args.quick,
        worlds=_names(args.worlds),
        learners=_names(args.learners),
        rounds=args.rounds,
        seed=args.seed or 0,
        rate=args.rate,
        data=args.data,
    )
    trials = plan(options)
    earlier = None if args.beside is None else _read(args.beside)
    folder = None if args.save is None else make_folder(args.save, "--save")
    missing = missing_rivals()
    if missing:
        print("discreet: " + HOW_TO_RIVAL.format(missing=" and ".join(missing)), file=sys.stderr)
    # Trials run beside each other already: several threads for each would only get in their way.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with progress_bar("suite") as watch:
        results = run_all(trials, watch=watch, processes=args.processes)
    runs = list(zip(trials, results, strict=True))
    report = suite_report(runs, quick=args.quick, seed=options.seed, rate=options.rate)
    if earlier is not None:
        report = completed(report, earlier)
    files = []
    if folder is not None:
        files.append(folder / REPORT)
        files[0].write_text(json.dumps(report) + "\n")
        if can_draw():
            files += draw(suite_figures(report), folder)
        else:
            print(f"discreet: {HOW_TO_DRAW}", file=sys.stderr)
    if args.json:
        print(json.dumps(report))
    else:
        _print(report, files)
    return 0


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [one.strip() for one in text.split(",")]


def _read(path: Path) -> dict[str, Any]:
    """Return an earlier report."""
    try:
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        suite_tables(report)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InvalidArgument("--beside", f"{path} is not the {REPORT} of a suite") from None
    return report


def _print(report: dict[str, Any], files: list[Path]) -> None:
    console = wide_console()
    if report["suite"] == "quick":
        console.print("quick: fewer worlds and settings than the whole suite", style="bold")
    for table in suite_tables(report):
        console.print(table.title, style="bold", highlight=False, soft_wrap=True)
        printed = Table(*table.columns, box=None)
        for column in printed.columns[1:]:
            column.justify = "right"
        for row in table.rows:
            printed.add_row(*row)
        console.print(printed)
        console.print()
    console.print(
        "late: the last quarter of the rounds. share: of the best private rule that knows the\n"
        "truth, at the same epsilon of answers. CPU s: of the learner alone.",
        highlight=False,
    )
    if files:
        Console().print(f"written: {', '.join(map(str, files))}", highlight=False, soft_wrap=True)
