"""`discreet simulate`: made-up people, or logged ones, for looking at the service at work."""

import argparse
import asyncio
import json
import os
import secrets
import signal
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from discreet.commands import epsilon_curve
from discreet.errors import InvalidArgument
from discreet.research.simulate.traffic_results import Tally
from discreet.research.simulate.traffic import DEMO_WORLD, Traffic, drive

EXAMPLES = """\
examples:
  discreet simulate --config discreet.yaml         which epsilon? reward and regret by epsilon
  discreet simulate --config discreet.yaml --data log.csv --recommender films
  discreet simulate --traffic                      one minute to the demo on this machine
  discreet simulate --traffic --rate 50 --seconds 300 --recommender films
  discreet simulate --traffic --json > out.json    the figures, for a program

Regret is the true one, from the made-up world's own means; the server never sees it.
"""
DEFAULT_RECOMMENDER = "films"
DEFAULT_URL = "http://127.0.0.1:8000"
BAR_SECONDS = 0.2
QUIET_REPORT_SECONDS = 10


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--traffic", action="store_true", help="use a running server over HTTP")
    what.add_argument(
        "--config", type=Path, metavar="FILE", help="try the recommenders of a serve configuration"
    )
    there = parser.add_argument_group("where")
    there.add_argument("--url", default=DEFAULT_URL, help="the server (default: %(default)s)")
    there.add_argument("--key", help="an API key; else DISCREET_API_KEY, else that of --key-file")
    there.add_argument(
        "--key-file",
        type=Path,
        default=Path(".discreet", "demo-key"),
        metavar="FILE",
        help="where the demo keeps its key (default: %(default)s)",
    )
    there.add_argument(
        "--recommender", metavar="NAME", help="(default: films; with --config, every one)"
    )
    there.add_argument(
        "--allow-remote", action="store_true", help="send made-up feedback to another machine"
    )
    much = parser.add_argument_group("how much")
    much.add_argument("--rate", type=float, default=200.0, help="visits a second (%(default)g)")
    much.add_argument("--seconds", type=float, default=60.0, help="for how long (%(default)g)")
    much.add_argument("--clients", type=int, default=3_000, help="made-up people (%(default)d)")
    who = parser.add_argument_group("who")
    who.add_argument(
        "--seed", type=int, help="the same people again, budgets and all (default: new ones)"
    )
    who.add_argument(
        "--world",
        type=int,
        default=DEMO_WORLD,
        help="what people like; another number, other tastes (%(default)d)",
    )
    epsilon_curve.add_options(parser)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def run(args: argparse.Namespace) -> int:
    """Send the traffic, or try epsilons; 1 when the server went away meanwhile."""
    if args.config is not None:
        return epsilon_curve.run(args)
    traffic = _traffic(args, os.environ)
    tally = asyncio.run(_drive(traffic, quiet=args.json))
    if args.json:
        print(json.dumps({"recommender": traffic.recommender, **tally.report()}, indent=2))
    else:
        _print_summary(tally)
    if tally.gone is not None:
        print(f"discreet: gave up: {tally.gone}", file=sys.stderr)
        return 1
    return 0


def _traffic(args: argparse.Namespace, environment: Mapping[str, str]) -> Traffic:
    seed = secrets.randbits(32) if args.seed is None else args.seed
    return Traffic(
        url=args.url,
        key=_key(args, environment),
        recommender=args.recommender or DEFAULT_RECOMMENDER,
        rate=args.rate,
        seconds=args.seconds,
        clients=args.clients,
        seed=seed,
        world=args.world,
        # The seed is part of the name: new people have new budgets, the same ones their old.
        name=f"simulated-{seed:x}",
        allow_remote=args.allow_remote,
    )


def _key(args: argparse.Namespace, environment: Mapping[str, str]) -> str:
    given: str | None = args.key or environment.get("DISCREET_API_KEY")
    if given:
        return given
    path: Path = args.key_file
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise InvalidArgument(
            "key", f"give --key or set DISCREET_API_KEY; {path} cannot be read"
        ) from error


async def _drive(traffic: Traffic, *, quiet: bool) -> Tally:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    console = Console(stderr=True)
    watched = _Watched(traffic, console, bar=console.is_terminal and not quiet, quiet=quiet)
    try:
        with watched.shown():
            return await drive(traffic, stop=stop, watch=watched)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


class _Watched:
    """A progress bar on a terminal; elsewhere a line every ten seconds."""

    def __init__(self, traffic: Traffic, console: Console, *, bar: bool, quiet: bool) -> None:
        self._console = console
        self._quiet = quiet
        self._every = BAR_SECONDS if bar else QUIET_REPORT_SECONDS
        self._next = self._every
        self._bar: Progress | None = None
        if bar:
            self._bar = Progress(
                TextColumn("[bold]{task.fields[name]}"),
                BarColumn(bar_width=24),
                TimeRemainingColumn(),
                TextColumn("{task.description}"),
                console=console,
            )
            self._task = self._bar.add_task("", total=traffic.seconds, name=traffic.recommender)

    def shown(self) -> Any:
        return self._bar if self._bar is not None else nullcontext()

    def __call__(self, tally: Tally) -> None:
        elapsed = tally.elapsed()
        if self._quiet or elapsed < self._next:
            return
        self._next = elapsed + self._every
        if self._bar is not None:
            self._bar.update(self._task, completed=elapsed, description=_line(tally))
        else:
            self._console.print(f"{elapsed:5.0f} s  {_line(tally)}", highlight=False)


def _line(tally: Tally) -> str:
    recent = tally.recent()
    means = recent.means()
    # The last of the five seconds has only begun.
    span = tally.elapsed() - max(0, int(tally.elapsed()) - 4)
    return (
        f"reward {means['mean_reward']:.2f}  true regret {means['true_regret']:.2f}  "
        f"degraded {means['degraded_share']:.0%}  {recent.answers / max(span, 1.0):.0f}/s"
        + (f"  faults {tally.faults.total()}" if tally.faults else "")
    )


def _print_summary(tally: Tally) -> None:
    first, last = tally.first_and_last()
    table = Table(title=None, box=None, pad_edge=False)
    for heading in ("", "answers", "mean reward", "true regret", "degraded"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, sums in (("first sixth", first), ("last sixth", last), ("overall", tally.total)):
        means = sums.means()
        table.add_row(
            name,
            f"{sums.answers:,}",
            f"{means['mean_reward']:.3f}",
            f"{means['true_regret']:.3f}",
            f"{means['degraded_share']:.1%}",
        )
    console = Console()
    console.print(table)
    rate = tally.total.answers / max(tally.elapsed(), 1e-9)
    ended = "stopped" if tally.interrupted else "sent"
    console.print(
        f"{ended} after {tally.elapsed():.1f} s: {tally.total.answers:,} recommendations and "
        f"{tally.feedback:,} feedbacks, {rate:.0f} of each a second",
        highlight=False,
        soft_wrap=True,
    )
    for reason, count in tally.faults.most_common():
        console.print(f"  {count:,} x {reason}", highlight=False, markup=False, soft_wrap=True)
