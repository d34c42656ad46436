"""How fast Discreet is, beside two other services in the same run.

    make bench                                  a table, in about 25 minutes
    make bench ARGS=--quick                     a look, in about six
    make bench ARGS=--json                      one JSON object and nothing else
    make bench ARGS="--only batch,memory"       some sections
    make bench ARGS="--save run.json --chart run.svg"
    make bench ARGS="--from run.json"           a run that was saved, without measuring
    make bench ARGS="--from run.json --page docs/performance.md --chart docs/img/performance.svg"

The *floor* is the plainest honest FastAPI service: pydantic models, redis-py, one script call, no
learning. The *alternative* is what a team would build without us: FastAPI, MABWiser's LinUCB, its
state in Redis. All of them use one Valkey that syncs every write to disk, are driven by the same
tool with the same connections and payloads, and take turns, so that a noisy machine is noisy for
all. Ratios are of requests a second within a turn, and the median of the turns counts.

Sections, with rough minutes on two cores (and with --quick, which leaves some out unless named):
  recommend  throughput, latency and CPU of /recommend, with 1 and 2 workers      3    (0.8)
  feedback   the same of /feedback                                                4    (1)
  batch      decisions a second in batches of 1,000                               1    (0.3)
  families   every family beside the floor: single requests, batches, latency     5    (2)
  scaling    how the cost grows with arms, dimensions, cells, clients, candidates 5    (1.3)
  clients    our client of the store beside redis-py and coredis                  3    (-)
  protocol   with the short way for requests (protocol.py) and without            1.5  (-)
  releases   what a release costs, by family and size                             1    (0.3)
  memory     bytes in the store                                                   1    (-)
  store      what the store uses, on one master and on six                        2    (-)
  mixed      all families at a constant rate of arrivals                          0.5  (0.3)

Progress goes to stderr. The exit code is 0 whatever the figures, because a busy machine must not
fail a build; the table marks the bars that were missed.
"""

import argparse
import json
import os
import platform
import re
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import chart
import clients
import families
import page
import redis
import releases
import report
import store as the_store
from batches import batches
from compare import compare, compare_variants
from drive import CONNECTIONS, closed_loop_tool
from footprint import footprint
from growth import scaling
from mixed import mixed
from stage import OUR_CLIENT, Target, discreet, gunicorn
from store_clients import installed

from discreet.state.embedded import EmbeddedStore

SECTIONS = (
    "recommend", "feedback", "batch", "families", "scaling", "clients", "protocol", "releases",
    "memory", "store", "mixed",
)  # fmt: skip
_LEFT_OUT = ("clients", "protocol", "memory", "store")
QUICK_SECTIONS = tuple(one for one in SECTIONS if one not in _LEFT_OUT)
"""What a look at everything can do without."""
PATHS = ("recommend", "feedback")


@dataclass(frozen=True)
class Pace:
    """How long and how often."""

    seconds: float
    rounds: int
    latency_rounds: int
    mixed_seconds: int
    variant_seconds: float
    """Of each turn of servers that differ in one thing."""


FULL = Pace(seconds=3, rounds=5, latency_rounds=3, mixed_seconds=20, variant_seconds=2)
QUICK = Pace(seconds=1, rounds=2, latency_rounds=1, mixed_seconds=6, variant_seconds=1)
MIXED_RATE = 200

Found = dict[str, Any]


def say(what: str) -> None:
    print(f"  {what}", file=sys.stderr, flush=True)


def machine(store: str) -> Found:
    """Say where this was measured; without that, figures mean nothing."""
    information = Path("/proc/cpuinfo")
    text = information.read_text() if information.exists() else ""
    model = re.search(r"model name\s*:\s*(.+)", text)
    server = redis.from_url(store)
    try:
        about: Any = server.info("server")
        fsync: Any = server.config_get("appendfsync")
    finally:
        server.close()
    return {
        "cpu": model[1] if model else platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "valkey": about.get("valkey_version", about["redis_version"]),
        "fsync": fsync["appendfsync"],
        "load_average_before": round(os.getloadavg()[0], 2),
        "connections": CONNECTIONS,
        "closed_loop": closed_loop_tool(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def measured(
    sections: Collection[str], *, quick: bool, keep: Callable[[Found], None] = lambda found: None
) -> Found:
    """Measure the sections; `keep` is given what there is after each, should a later one fail."""
    pace = QUICK if quick else FULL
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        store = stack.enter_context(EmbeddedStore(folder))
        found: Found = {"machine": machine(store), "quick": quick}

        def done(section: str, result: Found) -> None:
            found[section] = result
            found["bars"] = report.bars(found)
            keep(found)

        if "memory" in sections:
            say("bytes in the store, of one that nothing else uses")
            with tempfile.TemporaryDirectory() as other, EmbeddedStore(other) as unused:
                done("memory", footprint(unused))
        if "releases" in sections:
            say("releases")
            done("releases", releases.releases(quick=quick, say=say))
        for path in PATHS:
            if path in sections:
                done(path, of_path(store, path, pace))
        if "store" in sections:
            say("the store")
            worker_us = found.get("recommend", {}).get("cpu_us", the_store.WORKER_US)
            done("store", the_store.measured(quick=quick, say=say, worker_us=worker_us))
        if "clients" in sections:
            say("clients of the store, commands")
            commands = clients.on_own_store(*(clients.QUICK if quick else clients.FULL))
            say("clients of the store, requests")
            done("clients", {"commands": commands, "requests": of_clients(store, pace)})
        if "protocol" in sections:
            say("with protocol.py and without")
            done("protocol", of_protocols(store, pace))
        if "families" in sections:
            say("every family beside the floor")
            done("families", families.on_own_servers(store, quick=quick, say=say))
        alone: dict[str, Callable[[Target], Found]] = {
            "batch": lambda target: batches(
                target, seconds=pace.seconds, rounds=pace.rounds, say=say
            ),
            "mixed": lambda target: mixed(
                target, rate=MIXED_RATE, seconds=pace.mixed_seconds, say=say
            ),
            "scaling": lambda target: scaling(target, quick=quick, say=say),
        }
        for section, measure in alone.items():
            if section in sections:
                say(section)
                with discreet(store) as target:
                    done(section, measure(target))
    return found


def of_path(store: str, path: str, pace: Pace) -> Found:
    """Compare the three on one path, with one worker each and with two."""
    by_workers = {}
    for workers in (1, 2):
        say(f"/{path}, {workers} worker{'s' if workers > 1 else ''} each")
        with ExitStack() as servers:
            targets = {
                "discreet": servers.enter_context(discreet(store, workers=workers)),
                "floor": servers.enter_context(gunicorn("floor", store, workers=workers)),
                "alternative": servers.enter_context(
                    gunicorn("alternative", store, workers=workers)
                ),
            }
            by_workers[str(workers)] = compare(
                targets,
                path,
                seconds=pace.seconds,
                rounds=pace.rounds,
                latency_rounds=pace.latency_rounds,
                say=say,
            )
    return report.with_summary(by_workers)


def of_clients(store: str, pace: Pace) -> Found:
    """Compare Discreet over each client of the store, one worker each."""
    with ExitStack() as servers:
        targets = {
            name: servers.enter_context(discreet(store, client=name))
            for name in (OUR_CLIENT, *installed())
        }
        return of_variants(targets, pace)


def of_protocols(store: str, pace: Pace) -> Found:
    """Compare Discreet with the short way for requests and without, one worker each."""
    with ExitStack() as servers:
        targets = {
            name: servers.enter_context(discreet(store, http=name))
            for name in ("direct", "uvicorn")
        }
        return of_variants(targets, pace)


def of_variants(targets: Mapping[str, Target], pace: Pace) -> Found:
    """Compare servers that differ in one thing, on both paths."""
    return {
        path: compare_variants(
            targets, path, seconds=pace.variant_seconds, rounds=pace.rounds, say=say
        )
        for path in PATHS
    }


def sections_of(text: str) -> tuple[str, ...]:
    """Read a list of sections, for --only."""
    wanted = [each.strip() for each in text.split(",") if each.strip()]
    unknown = [each for each in wanted if each not in SECTIONS]
    if unknown or not wanted:
        raise argparse.ArgumentTypeError(
            f"{', '.join(unknown) or 'nothing'}: sections are {', '.join(SECTIONS)}"
        )
    return tuple(each for each in SECTIONS if each in wanted)


def arguments() -> argparse.ArgumentParser:
    """Return what can be said on the command line."""
    parser = argparse.ArgumentParser(
        prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer, shorter turns; smaller ends")
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")
    parser.add_argument(
        "--only", type=sections_of, default=None, metavar="SECTIONS", help="comma-separated"
    )
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="write the JSON to a file as well"
    )
    parser.add_argument("--chart", type=Path, metavar="FILE", help="draw an SVG")
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="write the tables of a Markdown page anew"
    )
    parser.add_argument(
        "--from", dest="saved", type=Path, metavar="FILE", help="show a saved run; measure nothing"
    )
    return parser


def main() -> int:
    args = arguments().parse_args()
    if args.chart and not chart.can_draw():
        raise SystemExit(chart.HOW_TO_DRAW)  # before half an hour is spent

    def keep(found: Found) -> None:
        if args.save:
            args.save.write_text(json.dumps(found, indent=1) + "\n")

    if args.saved:
        found = json.loads(args.saved.read_text())
        found["bars"] = report.bars(found)
    else:
        sections = args.only or (QUICK_SECTIONS if args.quick else SECTIONS)
        found = measured(sections, quick=args.quick, keep=keep)
    if args.chart:
        chart.draw(found, args.chart)
    if args.page:
        args.page.write_text(page.filled(args.page.read_text(), found))
    print(json.dumps(found) if args.json else report.table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
