"""`discreet simulate`: synthetic users, or a log, to try recommenders and a running server."""

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

from discreet.commands import epsilon_curve, suite
from discreet.errors import InvalidArgument
from discreet.research.simulate.server import ARRIVALS_PER_SECOND
from discreet.research.simulate.traffic import DEMO_WORLD, Traffic, send_traffic
from discreet.research.simulate.traffic_results import TrafficResults

EXAMPLES = """\
examples:
  discreet simulate --config discreet.yaml         which epsilon? reward and regret by epsilon
  discreet simulate --config discreet.yaml --data log.csv --recommender films
  discreet simulate --suite --quick                how well each algorithm learns; a few minutes
  discreet simulate --suite --save out/suite --data ~/data    all worlds, with pictures
  discreet simulate --traffic                      one minute of traffic to the local demo
  discreet simulate --traffic --rate 50 --seconds 300 --recommender films
  discreet simulate --traffic --json > out.json    the results, for a program

Regret is the true one, by the synthetic world's own means; the server never sees it.
"""
DEFAULT_RECOMMENDER = "films"
DEFAULT_URL = "http://127.0.0.1:8000"
TRAFFIC_RATE = 400.0
BAR_SECONDS = 0.2
QUIET_REPORT_SECONDS = 10


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--traffic", action="store_true", help="send synthetic users to a running server"
    )
    what.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="run the recommenders of a serve configuration at several epsilons",
    )
    what.add_argument(
        "--suite",
        action="store_true",
        help="judge the algorithms: many worlds, beside others, against the private optimum",
    )
    there = parser.add_argument_group("where")
    there.add_argument("--url", default=DEFAULT_URL, help="the server (default: %(default)s)")
    there.add_argument("--key", help="API key (default: DISCREET_API_KEY, then --key-file)")
    there.add_argument(
        "--key-file",
        type=Path,
        default=Path(".discreet", "demo-key"),
        metavar="FILE",
        help="file with the demo's key (default: %(default)s)",
    )
    there.add_argument(
        "--recommender", metavar="NAME", help="which one (default: films; with --config, all)"
    )
    there.add_argument(
        "--allow-remote", action="store_true", help="send synthetic feedback to another machine"
    )
    there.add_argument(
        "--clicks-only",
        action="store_true",
        help="send no feedback on what was not liked, as shops do that report clicks; the "
        "recommender's document should then have reward.wait",
    )
    much = parser.add_argument_group("how much")
    much.add_argument(
        "--rate",
        type=float,
        help=f"requests per second ({TRAFFIC_RATE:g}; with --config and --suite, of the simulated "
        f"clock, {ARRIVALS_PER_SECOND:g})",
    )
    much.add_argument("--seconds", type=float, default=60.0, help="how long to send (%(default)g)")
    much.add_argument("--clients", type=int, default=40_000, help="synthetic users (%(default)d)")
    who = parser.add_argument_group("who")
    who.add_argument(
        "--seed",
        type=int,
        help="the same users again, with what is left of their budgets (default: new users)",
    )
    who.add_argument(
        "--world",
        type=int,
        default=DEMO_WORLD,
        help="what users like: another number, other tastes (%(default)d)",
    )
    epsilon_curve.add_options(parser)
    suite.add_options(parser)
    parser.add_argument("--json", action="store_true", help="print the results as JSON")


def run(args: argparse.Namespace) -> int:
    """Send the traffic, try epsilons or judge; 1 if the server stopped answering."""
    if args.rate is None:
        args.rate = TRAFFIC_RATE if args.traffic else ARRIVALS_PER_SECOND
    if args.config is not None:
        return epsilon_curve.run(args)
    if args.suite:
        return suite.run(args)
    traffic = _traffic(args, os.environ)
    results = asyncio.run(_drive(traffic, quiet=args.json))
    if args.json:
        print(json.dumps({"recommender": traffic.recommender, **results.report()}, indent=2))
    else:
        _print_summary(results)
    if results.gave_up is not None:
        print(f"discreet: gave up: {results.gave_up}", file=sys.stderr)
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
        # The seed is part of the name: another seed, other users with budgets of their own.
        name=f"simulated-{seed:x}",
        allow_remote=args.allow_remote,
        clicks_only=args.clicks_only,
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


async def _drive(traffic: Traffic, *, quiet: bool) -> TrafficResults:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    console = Console(stderr=True)
    progress = _TrafficProgress(
        traffic, console, bar=console.is_terminal and not quiet, quiet=quiet
    )
    try:
        with progress.shown():
            return await send_traffic(traffic, stop=stop, watch=progress)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


class _TrafficProgress:
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

    def __call__(self, results: TrafficResults) -> None:
        elapsed = results.elapsed()
        if self._quiet or elapsed < self._next:
            return
        self._next = elapsed + self._every
        if self._bar is not None:
            self._bar.update(self._task, completed=elapsed, description=_line(results))
        else:
            self._console.print(f"{elapsed:5.0f} s  {_line(results)}", highlight=False)


def _line(results: TrafficResults) -> str:
    recent = results.recent()
    means = recent.means()
    # The last of the five seconds has only begun.
    span = results.elapsed() - max(0, int(results.elapsed()) - 4)
    return (
        f"reward {means['mean_reward']:.2f}  true regret {means['true_regret']:.2f}  "
        f"degraded {means['degraded_share']:.0%}  {recent.answers / max(span, 1.0):.0f}/s"
        + (f"  errors {results.errors.total()}" if results.errors else "")
    )


def _print_summary(results: TrafficResults) -> None:
    window = f"{results.window()} s"
    table = Table(title=None, box=None, pad_edge=False)
    for heading in ("", "answers", "mean reward", "true regret", "personalised", "degraded"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, totals in (
        (f"first {window}", results.first()),
        (f"last {window}", results.last()),
        ("overall", results.total),
    ):
        means = totals.means()
        table.add_row(
            name,
            f"{totals.answers:,}",
            f"{means['mean_reward']:.3f}",
            f"{means['true_regret']:.3f}",
            f"{means['personalised_regret']:.3f}",
            f"{means['degraded_share']:.1%}",
        )
    console = Console()
    console.print(table)
    console.print(
        "true regret is over all answers; personalised, over those that were not degraded",
        highlight=False,
        soft_wrap=True,
    )
    rate = results.total.answers / max(results.elapsed(), 1e-9)
    ended = "stopped" if results.interrupted else "sent"
    console.print(
        f"{ended} after {results.elapsed():.1f} s: {results.total.answers:,} recommendations and "
        f"{results.feedback:,} feedbacks, {rate:.0f} of each per second",
        highlight=False,
        soft_wrap=True,
    )
    for reason, count in results.errors.most_common():
        console.print(f"  {count:,} x {reason}", highlight=False, markup=False, soft_wrap=True)
