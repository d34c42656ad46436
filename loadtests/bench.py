"""How fast Discreet is, beside two other services in the same run.

    make bench                        a table, in about ten minutes
    make bench ARGS=--quick           a look, in about two
    make bench ARGS=--json            one JSON object and nothing else

The *floor* is the plainest honest FastAPI service: pydantic models, redis-py, one script call, no
learning. The *alternative* is what a team would build without us: FastAPI, MABWiser's LinUCB, its
state in Redis. All of them use one Valkey that syncs every write to disk, are driven by the same
tool with the same connections and payloads, and take turns, so that a noisy machine is noisy for
all. Ratios are of requests a second, and the median of the turns counts.
"""

import argparse
import json
import os
import platform
import re
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import growth
from drive import CONNECTIONS, Sample, batch, feedback_bodies, latency, recommend_bodies, throughput
from footprint import footprint
from stage import Target, discreet, gunicorn

from service.state.embedded import EmbeddedStore

PATHS = ("recommend", "feedback")


def say(what: str) -> None:
    print(f"  {what}", file=sys.stderr, flush=True)


def machine() -> dict[str, Any]:
    """Say where this was measured; without that, figures mean nothing."""
    information = Path("/proc/cpuinfo")
    model = (
        re.search(r"model name\s*:\s*(.+)", information.read_text())
        if information.exists()
        else None
    )
    return {
        "cpu": model[1] if model else platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "connections": CONNECTIONS,
        "fsync": "always",
        "load_average_before": round(os.getloadavg()[0], 2),
    }


def turns(
    targets: list[Target], path: str, *, seconds: float, rounds: int
) -> dict[str, list[Sample]]:
    """Let the targets take turns at one path."""
    samples: dict[str, list[Sample]] = {target.name: [] for target in targets}
    for turn in range(rounds):
        for target in targets:
            # wrk goes through its bodies once and again; feedback counts only the first time.
            most = int(8_000 * seconds) if target.name != "alternative" else int(1_500 * seconds)
            bodies = (
                recommend_bodies(20_000) if path == "recommend" else feedback_bodies(target, most)
            )
            samples[target.name].append(throughput(target, f"/{path}", bodies, seconds))
            found = samples[target.name][-1]
            say(
                f"/{path} turn {turn + 1}: {target.name} {found.requests_per_second:,.0f} /s, "
                f"{found.cpu_microseconds:.0f} us CPU"
            )
    return samples


def of_path(targets: list[Target], path: str, *, seconds: float, rounds: int) -> dict[str, Any]:
    """Measure throughput closed, and then latency at half of the floor's throughput, open."""
    samples = turns(targets, path, seconds=seconds, rounds=rounds)
    rate = {
        name: statistics.median(one.requests_per_second for one in found)
        for name, found in samples.items()
    }
    cpu = {
        name: statistics.median(one.cpu_microseconds for one in found)
        for name, found in samples.items()
    }
    offered = max(50, int(rate["floor"] / 2))
    waited = {}
    for target in targets[:2]:
        bodies = (
            recommend_bodies(20_000)
            if path == "recommend"
            else feedback_bodies(target, int(offered * (seconds + 1)))
        )
        waited[target.name] = latency(target, f"/{path}", bodies, rate=offered, seconds=seconds)
        say(f"/{path} at {offered} /s: {target.name} p99 {waited[target.name].p99_ms:.1f} ms")
    return {
        "rps": round(rate["discreet"]),
        "p50_ms": round(waited["discreet"].p50_ms, 2),
        "p99_ms": round(waited["discreet"].p99_ms, 2),
        "cpu_us": round(cpu["discreet"]),
        "ratio_to_floor": round(rate["discreet"] / rate["floor"], 2),
        "ratio_to_alternative": round(rate["discreet"] / rate["alternative"], 2),
        "offered_rps": offered,
        "floor": {
            "rps": round(rate["floor"]),
            "cpu_us": round(cpu["floor"]),
            "p50_ms": round(waited["floor"].p50_ms, 2),
            "p99_ms": round(waited["floor"].p99_ms, 2),
        },
        "alternative": {"rps": round(rate["alternative"]), "cpu_us": round(cpu["alternative"])},
    }


def measured(*, quick: bool) -> dict[str, Any]:
    """Measure everything."""
    seconds, rounds = (3.0, 2) if quick else (6.0, 5)
    found: dict[str, Any] = {"machine": machine()}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        store = stack.enter_context(EmbeddedStore(folder))
        with ExitStack() as servers:
            targets = [
                servers.enter_context(discreet(store)),
                servers.enter_context(gunicorn("floor", store)),
                servers.enter_context(gunicorn("alternative", store)),
            ]
            for path in PATHS:
                found[path] = of_path(targets, path, seconds=seconds, rounds=rounds)
            found["batch"] = {"decisions_per_second": round(batch(targets[0], seconds=2 * seconds))}
            say(f"batch: {found['batch']['decisions_per_second']:,} decisions a second")
        with ExitStack() as servers:
            pair = [
                servers.enter_context(discreet(store, workers=2)),
                servers.enter_context(gunicorn("floor", store, workers=2)),
            ]
            for path in PATHS:
                samples = turns(pair, path, seconds=seconds, rounds=max(1, rounds // 2))
                ours, floor = (
                    statistics.median(one.requests_per_second for one in samples[name])
                    for name in ("discreet", "floor")
                )
                found[path]["two_workers"] = {
                    "rps": round(ours),
                    "floor_rps": round(floor),
                    "ratio_to_floor": round(ours / floor, 2),
                }
        with discreet(store) as target:
            found["scaling"] = scaling(target, quick=quick)
    with tempfile.TemporaryDirectory() as folder, EmbeddedStore(folder) as store:
        found["memory"] = footprint(store)
    return found


def scaling(target: Target, *, quick: bool) -> dict[str, Any]:
    """Measure how the cost of a recommendation grows."""
    seconds, rounds = (2.0, 1) if quick else (3.0, 3)
    if quick:
        growth.CELLS, growth.CLIENTS = (1, 1_000, 10_000), (1, 1_000, 20_000)
    found = {
        "arms": growth.by_arms(target, seconds=seconds, rounds=rounds),
        "dimensions": growth.by_dimensions(target, seconds=seconds, rounds=rounds),
        "cells": growth.by_cells(target, seconds=seconds, rounds=rounds, say=say),
        "clients": growth.by_clients(target, seconds=seconds, rounds=rounds, say=say),
        "candidates": growth.by_candidates(target, seconds=seconds, rounds=rounds),
    }
    for name, costs in found.items():
        by_size = costs["cpu_us"] if name == "cells" else costs
        first, *_, last = by_size.values()
        costs["growth"] = round(last / first, 2)
        say(f"{name}: {by_size} us, {costs['growth']} times from first to last")
    return found


def show(found: dict[str, Any]) -> None:
    """Print the table."""
    print(", ".join(f"{name} {value}" for name, value in found["machine"].items()))
    for path in PATHS:
        row = found[path]
        print(
            f"/{path:10} {row['rps']:6,} /s  {row['cpu_us']:5} us CPU  p50 {row['p50_ms']} ms  "
            f"p99 {row['p99_ms']} ms (floor {row['floor']['p99_ms']}) at {row['offered_rps']} /s  "
            f"{row['ratio_to_floor']} x floor ({row['floor']['rps']:,} /s)  "
            f"{row['ratio_to_alternative']} x alternative ({row['alternative']['rps']:,} /s)"
        )
        two = row["two_workers"]
        print(
            f"  two workers {two['rps']:6,} /s, {two['ratio_to_floor']} x floor "
            f"({two['floor_rps']:,} /s)"
        )
    print(f"batch       {found['batch']['decisions_per_second']:,} decisions a second")
    for name, costs in found["scaling"].items():
        print(f"by {name:11} {costs}")
    print(f"memory      {found['memory']}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer and shorter turns")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    found = measured(quick=args.quick)
    if args.json:
        print(json.dumps(found))
    else:
        show(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
