"""What `discreet size` predicts, beside what a day's requests used, sent at once.

python loadtests/store_sizing.py [--json]
"""

import argparse
import asyncio
import json
import logging
from itertools import count, islice
from typing import Any

from store_work import BUSY, alone, answers, do, feedback, linear_entries, opened

from discreet.commands.size import Load, needs

VISITS, ITEMS, DIMENSIONS = 4, 100, 8
FEEDBACK = 0.25
_DAY = 86_400


def sizing(loop: asyncio.Runner, *, people: int = 4_000) -> dict[str, Any]:
    """Send a day's answers and feedback, without a release, and compare."""
    many = VISITS * people
    load = Load(
        requests=many / _DAY,
        people=people,
        items=ITEMS,
        feedback=FEEDBACK,
        dimensions=DIMENSIONS,
        peak=1.0,
        release_seconds=_DAY,
        days=1,
    )
    predicted = needs(load)
    learning = feedback(people, entries=linear_entries(DIMENSIONS, ITEMS))
    with alone(appendfsync="always") as server, opened(loop, server.url) as store:
        empty, before = server.memory(), server.used()
        numbers = count()
        loop.run(do(store, answers(people), islice(numbers, many), 4 * BUSY))
        loop.run(do(store, learning, islice(numbers, round(FEEDBACK * many)), 4 * BUSY))
        used, memory = server.used() - before, server.memory() - empty
    found = {
        "store_bytes": (predicted.store_bytes - predicted.model_bytes, memory),
        "log_bytes": (round(predicted.log_bytes_per_second * _DAY), used.logged),
        "network_bytes": (
            round(predicted.network_bytes_per_second * _DAY),
            used.received + used.sent,
        ),
        "store_cpu_seconds": (round(predicted.store_cpu * _DAY, 2), round(used.cpu, 2)),
    }
    return {
        name: {"predicted": one, "measured": other, "ratio": round(other / one, 2)}
        for name, (one, other) in found.items()
    }


def table(found: dict[str, Any]) -> list[str]:
    """Return the figures for a person to read."""
    lines = [f"{'a day of requests':22}{'predicted':>14}{'measured':>14}{'ratio':>8}"]
    lines += [
        f"  {name:20}{one['predicted']:14,}{one['measured']:14,}{one['ratio']:8.2f}"
        for name, one in found.items()
    ]
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args()
    logging.getLogger("discreet").setLevel(logging.ERROR)
    with asyncio.Runner() as loop:
        found = sizing(loop)
    print(json.dumps(found) if chosen.json else "\n".join(table(found)))


if __name__ == "__main__":
    main()
