"""Where the time of a request goes: CPU of the worker, of the store and of the load, and waiting.

    python loadtests/cores.py recommend
    python loadtests/cores.py feedback --against HEAD~3 --workers 2 --rounds 5

Drives the floor, this version and, with --against, the one of a commit, in turns, with wrk. Of each
process the kernel tells for how long it ran and for how long it wanted to and was not let
(schedstat); the rest of the time it had nothing to do. So on a busy machine, where requests a
second mean little, the CPU of a request and the ratios within a turn still do; and on a quiet one
the last columns say who waits for whom. `together` is how many requests one script call has.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import drive
import redis
from compare import Supply, order
from stage import Target, discreet, gunicorn, other_version

from discreet.state.embedded import EmbeddedStore

_EDGE = 0.25
"""Seconds at both ends of a turn that are left out: connections open and close there."""


@dataclass(frozen=True)
class Clock:
    """Seconds that processes ran, and that they wanted to run and others did."""

    ran: float = 0.0
    waited: float = 0.0

    @classmethod
    def of(cls, processes: Iterable[int]) -> "Clock":
        """Return the sum over all threads of these processes."""
        ran = waited = 0
        for process in processes:
            for task in Path(f"/proc/{process}/task").glob("*/schedstat"):
                fields = task.read_text().split()
                ran, waited = ran + int(fields[0]), waited + int(fields[1])
        return cls(ran / 1e9, waited / 1e9)

    def since(self, before: "Clock") -> "Clock":
        """Return what has passed."""
        return Clock(self.ran - before.ran, self.waited - before.waited)


@dataclass(frozen=True)
class Turn:
    """One server's turn: its rate, how many requests went together, and everybody's clock."""

    rate: float
    together: float
    seconds: float
    clocks: Mapping[str, Clock]

    def us(self, who: str) -> float:
        """Return the CPU time of a request."""
        return 1e6 * self.clocks[who].ran / (self.rate * self.seconds)


def measured(
    target: Target, path: str, bodies: list[str], seconds: float, store: Any
) -> tuple[Turn, int]:
    """Drive a server, and look at everybody meanwhile; tell how many requests were answered."""
    found: list[drive.Sample] = []

    def drive_it() -> None:
        found.append(drive.throughput(target, f"/{path}", bodies, seconds))

    load = threading.Thread(target=drive_it)
    load.start()
    time.sleep(_EDGE)
    server = store.info("server")["process_id"]
    groups = {"worker": target.workers, "store": (server,), "load": _load()}
    before, calls = {who: Clock.of(ids) for who, ids in groups.items()}, _calls(store)
    began = time.monotonic()
    time.sleep(seconds - 3 * _EDGE)
    clocks = {who: Clock.of(ids).since(before[who]) for who, ids in groups.items()}
    span, calls = time.monotonic() - began, _calls(store) - calls
    load.join()
    (sample,) = found
    rate = sample.requests_per_second
    return Turn(rate, rate * span / max(1, calls), span, clocks), sample.requests


def _load() -> tuple[int, ...]:
    """Return the processes that send the requests: our children called wrk."""
    children = " ".join(each.read_text() for each in Path("/proc/self/task").glob("*/children"))
    return tuple(
        process
        for process in map(int, children.split())
        if Path(f"/proc/{process}/comm").read_text().strip() == "wrk"
    )


def _calls(store: Any) -> int:
    return int(store.info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"])


def shown(turns: list[Turn], workers: int) -> str:
    """Return the medians over the turns."""
    parts = [
        f"{statistics.median(turn.rate for turn in turns):8,.0f} /s",
        f"{statistics.median(turn.together for turn in turns):5.1f} together",
    ]
    for who in ("worker", "store", "load"):
        cores = workers if who == "worker" else 1
        us = statistics.median(turn.us(who) for turn in turns)
        ran, waited = (
            statistics.median(getattr(turn.clocks[who], part) / turn.seconds for turn in turns)
            for part in ("ran", "waited")
        )
        idle = max(0.0, 1 - (ran + waited) / cores)
        parts.append(f"{who} {us:5.1f} us, idle {idle:.2f}, held up {waited / cores:.2f}")
    return " | ".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", choices=("recommend", "feedback"))
    parser.add_argument("--against", metavar="COMMIT", help="compare with this version")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each turn, at least 2")
    args = parser.parse_args()
    with ExitStack() as stack:
        url = stack.enter_context(EmbeddedStore(stack.enter_context(tempfile.TemporaryDirectory())))
        store = stack.enter_context(redis.from_url(url))
        targets = {
            "floor": stack.enter_context(gunicorn("floor", url, workers=args.workers)),
            "this version": stack.enter_context(discreet(url, workers=args.workers)),
        }
        if args.against:
            source = stack.enter_context(other_version(args.against))
            before = discreet(url, workers=args.workers, source=source)
            targets[args.against] = stack.enter_context(before)
        supplies = {name: Supply.of_path(one, args.path) for name, one in targets.items()}
        expected = dict.fromkeys(targets, int(8_000 * args.workers * args.seconds))
        turns: dict[str, list[Turn]] = {name: [] for name in targets}
        for number in range(args.rounds + 1):  # the first warms up
            for name in order(number, targets):
                bodies = supplies[name].at_least(expected[name])
                turn, count = measured(targets[name], args.path, bodies, args.seconds, store)
                supplies[name].sent(count)
                expected[name] = int(1.5 * count)
                if number:
                    turns[name].append(turn)
        for name, found in turns.items():
            pairs = zip(found, turns["floor"], strict=True)
            times = statistics.median(one.rate / floor.rate for one, floor in pairs)
            print(f"{name:14} {shown(found, args.workers)} | {times:.2f} times the floor")
    return 0


if __name__ == "__main__":
    sys.exit(main())
