"""Every family beside the floor: single requests, batches of 1,000, and waiting at half its load.

    python loadtests/families.py [--quick] [--only fclub] [--json]

One server has a recommender of each kind (`kinds.py`). In a turn the floor is driven, then each
kind, one right after the other; ratios are to the floor of the same turn, and the median of the
turns counts. CPU is the worker's. Releases are held back: turns are short, and one would be in
some and not in others (`releases.py` measures them, `mixed.py` what is asked meanwhile). Entries of
a batch that are not answered with 200 are counted, and belong to the result.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from callers import MOST, Caller, ask_in_batches, batch_body, feedback_on, fine_entries
from compare import (
    Supply,
    cpu_ratio,
    latency_turns,
    order,
    ratio,
    speed,
    throughput_turns,
    turn_ratios,
    waiting,
)
from drive import Sample, Say
from kinds import Kind, fill, kinds
from stage import Target, discreet, gunicorn

from discreet.state.embedded import EmbeddedStore

PATHS = ("recommend", "feedback")
FLOOR = "floor"
_REPEATED = 6_000
"""Different questions, sent again and again where that makes no difference."""


class Questions:
    """Questions to one kind that were not asked before."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self._next = kind.told + MOST
        self._strangers = 0

    def take(self, many: int) -> list[str]:
        """Return so many more."""
        self._next += many
        return self.kind.bodies(many, start=self._next - many)

    def to_be_judged(self, many: int) -> list[str]:
        """Return so many more whose answers will still be open to feedback after all of them.

        Where asking again passes an answer over, everybody asks once.
        """
        if not self.kind.once:
            return self.take(many)
        self._strangers += many
        return self.kind.strangers(many, start=self._strangers - many)

    def supply(self, target: Target, path: str) -> Supply:
        """Return what a path is sent."""
        if path == "feedback":
            return Supply(
                lambda many: feedback_on(ask_in_batches(target, self.to_be_judged(many))),
                once=True,
            )
        if self.kind.once:
            return Supply(self.take, once=True)
        return Supply(lambda many: self.take(_REPEATED), once=False)


class BatchTurn(NamedTuple):
    """One kind's batches in one turn."""

    decisions_per_second: float
    cpu_microseconds: float
    entries: int
    failed: int


def families(
    target: Target,
    floor: Target,
    *,
    seconds: float,
    rounds: int,
    latency_seconds: float,
    latency_rounds: int,
    say: Say,
    only: str = "",
) -> dict[str, Any]:
    """Fill a running server with every kind, and measure them beside a running floor."""
    asked = {kind.name: Questions(kind) for kind in kinds() if kind.name.startswith(only)}
    personalised = {}
    for name, one in asked.items():
        personalised[name] = fill(target, one.kind)
        say(f"filled {name}: {personalised[name]:.0%} of its answers are personal")
    targets = {FLOOR: floor, **dict.fromkeys(asked, target)}
    found: dict[str, Any] = {FLOOR: {}, "kinds": {name: {} for name in asked}}
    rates: dict[str, dict[str, list[Sample]]] = {}
    for path in PATHS:
        supplies = {name: one.supply(target, path) for name, one in asked.items()}
        supplies[FLOOR] = Supply.of_path(floor, path)
        taken = throughput_turns(targets, supplies, path, seconds=seconds, rounds=rounds, say=say)
        offered = _half(taken[FLOOR])
        waits = latency_turns(
            targets,
            supplies,
            path,
            rate=offered,
            seconds=latency_seconds,
            rounds=latency_rounds,
            say=say,
        )
        rates[path] = taken
        figures = {name: {**speed(taken[name]), **waiting(waits[name])} for name in targets}
        found[FLOOR][path] = {**figures[FLOOR], "offered_rps": offered}
        for name in asked:
            beside = {
                "ratio_to_floor": ratio(taken[name], taken[FLOOR]),
                "cpu_ratio": cpu_ratio(taken[name], taken[FLOOR]),
            }
            found["kinds"][name][path] = {**figures[name], **beside}
    batches = batch_turns(target, asked, seconds=seconds, rounds=rounds, say=say)
    for name, turns in batches.items():
        batch = batch_figures(turns, rates["recommend"][FLOOR])
        found["kinds"][name] |= {"batch": batch, "personalised": personalised[name]}
    return found


def _half(samples: Sequence[Sample]) -> int:
    """Return half of what the floor can take."""
    return max(50, int(statistics.median(one.requests_per_second for one in samples) / 2))


def batch_turns(
    target: Target, asked: Mapping[str, Questions], *, seconds: float, rounds: int, say: Say
) -> dict[str, list[BatchTurn]]:
    """Send each kind one batch after the other, turn by turn."""
    turns: dict[str, list[BatchTurn]] = {name: [] for name in asked}
    for turn in range(rounds):
        for name in order(turn, asked):
            one = _batches(target, asked[name], seconds)
            turns[name].append(one)
            say(
                f"batches, turn {turn + 1}: {name} {one.decisions_per_second:,.0f} /s, "
                f"{one.cpu_microseconds:.0f} us CPU, {one.failed:,} of {one.entries:,} failed"
            )
    return turns


def _batches(target: Target, questions: Questions, seconds: float) -> BatchTurn:
    bodies = [batch_body("recommend", questions.take(MOST)) for _ in range(round(8 * seconds))]
    sent = fine = 0
    with Caller(target) as caller:
        cpu, began = target.cpu_seconds(), time.perf_counter()
        while (lasted := time.perf_counter() - began) < seconds and sent < len(bodies):
            fine += fine_entries(caller.post("/recommend/batch", bodies[sent]))
            sent += 1
        lasted = time.perf_counter() - began
        used = target.cpu_seconds() - cpu
    entries = sent * MOST
    return BatchTurn(fine / lasted, 1e6 * used / max(fine, 1), entries, entries - fine)


def batch_figures(turns: Sequence[BatchTurn], floor: Sequence[Sample]) -> dict[str, Any]:
    """Return the medians, and what was lost in all; ratios are to the floor's single requests."""
    return {
        "decisions_per_second": round(statistics.median(one.decisions_per_second for one in turns)),
        "cpu_us": round(statistics.median(one.cpu_microseconds for one in turns)),
        "ratio_to_floor": turn_ratios(
            (one.decisions_per_second, single.requests_per_second)
            for one, single in zip(turns, floor, strict=True)
        ),
        "entries": sum(one.entries for one in turns),
        "failed": sum(one.failed for one in turns),
    }


def table(found: Mapping[str, Any]) -> list[str]:
    """Return the figures for a person to read."""
    lines = [
        f"{'by family, one worker':26}{'':10}{'req/s':>8}{'CPU us':>8}{'floor':>7}{'CPU':>6}"
        f"{'p50 ms':>9}{'p99 ms':>9}"
    ]
    for path, one in found[FLOOR].items():
        lines.append(
            f"  {'the floor':24}{path:10}{one['rps']:8,}{one['cpu_us']:8,}{'':13}"
            f"{one['p50_ms']:9.2f}{one['p99_ms']:9.2f}  at {one['offered_rps']:,} /s"
        )
    for name, kind in found["kinds"].items():
        for path in PATHS:
            one = kind[path]
            lines.append(
                f"  {name:24}{path:10}{one['rps']:8,}{one['cpu_us']:8,}"
                f"{one['ratio_to_floor']['median']:6.2f}x{one['cpu_ratio']['median']:6.2f}"
                f"{one['p50_ms']:9.2f}{one['p99_ms']:9.2f}"
            )
        one = kind["batch"]
        lines.append(
            f"  {name:24}{'batch':10}{one['decisions_per_second']:8,}{one['cpu_us']:8,}"
            f"{one['ratio_to_floor']['median']:6.2f}x   "
            f"{one['failed']:,} of {one['entries']:,} failed; {kind['personalised']:.0%} personal"
        )
    return lines


FULL = {"seconds": 1.0, "rounds": 3, "latency_seconds": 2.0, "latency_rounds": 2}
QUICK = {"seconds": 1.0, "rounds": 1, "latency_seconds": 1.0, "latency_rounds": 1}


def on_own_servers(store: str, *, quick: bool, say: Say, only: str = "") -> dict[str, Any]:
    """Start the servers, one worker each, and measure."""
    with ExitStack() as servers:
        target = servers.enter_context(discreet(store))
        floor = servers.enter_context(gunicorn("floor", store))
        pace: Mapping[str, Any] = QUICK if quick else FULL
        return families(target, floor, say=say, only=only, **pace)


def main() -> None:
    """Measure and print."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("--quick", action="store_true", help="short turns, few of them")
    parser.add_argument("--only", default="", help="kinds whose name begins so")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    say = partial(print, file=sys.stderr, flush=True)
    with TemporaryDirectory() as folder, EmbeddedStore(folder) as store:
        found = on_own_servers(store, quick=args.quick, say=say, only=args.only)
    print(json.dumps(found) if args.json else "\n".join(table(found)))


if __name__ == "__main__":
    main()
