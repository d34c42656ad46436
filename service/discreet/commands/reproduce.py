"""`discreet reproduce`: run a paper's evaluation again, with its numbers beside ours."""

import argparse
import json
import os
import resource
import sys
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.table import Table

from discreet.commands.progress import progress_bar
from discreet.errors import InvalidArgument
from discreet.research.reproduce.papers import PAPERS, ReproductionOptions, reproduction_of
from discreet.research.reproduce.pictures import HOW_TO_DRAW, can_draw, draw
from discreet.research.reproduce.tables import Reproduction, ResultTable

EXAMPLES = """\
papers:
{papers}

examples:
  discreet reproduce p-dap --quick             a small run, within a minute
  discreet reproduce p-dap --out out/p-dap     tables, pictures and JSON; many minutes
  discreet reproduce p-dap --data ~/data       MovieLens-1M as well, from ~/data/ml-1m
  discreet reproduce p-dap --quick --json      one JSON object and nothing else

Means and standard deviations are over seeds 0, 1, 2, …; the same seeds give the same numbers.
"""

WIDEST = 160
"""Columns of text that a table may take, whatever the terminal's width."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES.format(papers=_listed())
    parser.add_argument("name", nargs="?", metavar="NAME", help="which paper")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and seeds")
    parser.add_argument("--seeds", type=int, metavar="N", help="how many seeds")
    parser.add_argument(
        "--rounds", type=int, metavar="N", help="arrivals (or people, or records) in a run"
    )
    parser.add_argument(
        "--processes", type=int, metavar="N", help="runs at a time (default: one per core)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where pictures and JSON go (default: out/NAME)"
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="PATH",
        help="folder with data sets (default: DISCREET_DATA; without it, synthetic data only)",
    )
    parser.add_argument("--json", action="store_true", help="print the rows as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Reproduce a paper; 0 when it was done."""
    if args.name is None:
        print(f"discreet: NAME: say which paper:\n{_listed()}", file=sys.stderr)
        return 2
    reproduce = reproduction_of(args.name)
    for option in ("seeds", "rounds", "processes"):
        value = getattr(args, option)
        if value is not None and value < 1:
            raise InvalidArgument(f"--{option}", "must be at least 1")
    data: Path | None = args.data
    if data is None and (named := os.environ.get("DISCREET_DATA")):
        data = Path(named)
    options = ReproductionOptions(
        quick=args.quick,
        seeds=args.seeds,
        rounds=args.rounds,
        data=data,
        processes=args.processes,
    )
    folder = make_folder(args.out or Path("out", args.name))
    with progress_bar(args.name) as watch:
        found = reproduce(options, watch)
    files = _write(found, folder)
    if args.json:
        print(json.dumps(found.summary()))
    else:
        _print(found, files)
    return 0


def make_folder(folder: Path, option: str = "--out") -> Path:
    """Create the folder, or raise `InvalidArgument`: before hours are spent, not after."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgument(option, f"{folder} cannot be created: {error.strerror}") from None
    return folder


def wide_console() -> Console:
    """Return a console for tables: their numbers are not cut off where a terminal is narrow."""
    console = Console()
    console.width = max(console.width, WIDEST)
    return console


def _write(found: Reproduction, folder: Path) -> list[Path]:
    path = folder / f"{found.name}.json"
    written = {**found.summary(), **found.details, "cpu_minutes": round(_cpu_minutes(), 1)}
    path.write_text(json.dumps(written, indent=1) + "\n")
    if not can_draw():
        print(f"discreet: {HOW_TO_DRAW}", file=sys.stderr)
        return [path]
    return [path, *draw(found.figures, folder)]


def _cpu_minutes() -> float:
    """Return what this process and those that it started have used, which a busy machine cannot
    lengthen as it does the time on the wall."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used) / 60


def _print(found: Reproduction, files: list[Path]) -> None:
    console = wide_console()
    if found.claims:
        _print_table(console, found.claims_table(), numbers="left")
    for table in found.tables:
        _print_table(console, table, numbers="right")
    for note in found.notes:
        console.print(note, highlight=False, soft_wrap=True)
    seeds = "1 seed" if found.seeds == 1 else f"{found.seeds} seeds"
    written = ", ".join(map(str, files))
    console.print(f"{seeds}; written: {written}", highlight=False, soft_wrap=True)


def _print_table(
    console: Console, table: ResultTable, *, numbers: Literal["left", "right"]
) -> None:
    # A rich table would break its title at its own width.
    console.print(table.title, style="bold", highlight=False, soft_wrap=True)
    printed = Table(*table.columns, box=None)
    for column in printed.columns[1:]:
        column.justify = numbers
    for row in table.rows:
        printed.add_row(*row)
    console.print(printed)
    console.print()


def _listed() -> str:
    return "\n".join(f"  {name:<14} {about}" for name, (_, about) in PAPERS.items())
