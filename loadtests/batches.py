"""Decisions a second in batches of 1,000, from one worker.

With one connection the worker waits while the caller reads; with two it does not. The better of the
two is what a caller can have, and both are reported. The whole answer is read and its results are
counted; parsing it is the caller's own affair.
"""

import threading
import time
from collections.abc import Sequence
from typing import Any

from callers import MOST, Caller, batch_body, chunks
from drive import Say, recommend_bodies
from stage import Target

IN_FLIGHT = (1, 2)


def batches(target: Target, *, seconds: float, rounds: int, say: Say) -> dict[str, Any]:
    """Let one connection and two take turns; of each the turn in the middle counts."""
    bodies = [batch_body("recommend", chunk) for chunk in chunks(recommend_bodies(20 * MOST))]
    _drive(target, bodies, connections=1, seconds=1)
    samples: dict[int, list[tuple[float, float]]] = {many: [] for many in IN_FLIGHT}
    for turn in range(rounds):
        for many in IN_FLIGHT if turn % 2 == 0 else reversed(IN_FLIGHT):
            samples[many].append(_drive(target, bodies, connections=many, seconds=seconds))
            rate, cpu = samples[many][-1]
            say(f"batch turn {turn + 1}, {many} in flight: {rate:,.0f} /s, {cpu:.1f} us CPU")
    return summary(samples)


def summary(samples: dict[int, list[tuple[float, float]]]) -> dict[str, Any]:
    """Return the better number of connections' figures, and both beside them."""
    in_flight = {}
    for many, found in samples.items():
        # The turn in the middle, whole, because its CPU belongs to its rate; of two the slower.
        rate, cpu = sorted(found)[(len(found) - 1) // 2]
        in_flight[str(many)] = {
            "decisions_per_second": round(rate),
            "cpu_us_per_decision": round(cpu, 2),
        }
    best = max(in_flight.values(), key=lambda one: one["decisions_per_second"])
    return {**best, "size": MOST, "arms": 20, "in_flight": in_flight}


def _drive(
    target: Target, bodies: Sequence[bytes], *, connections: int, seconds: float
) -> tuple[float, float]:
    """Return decisions a second, and the worker's CPU microseconds for each."""
    counts = [0] * connections
    failures: list[BaseException] = []
    until = time.perf_counter() + seconds

    def call(number: int) -> None:
        try:
            with Caller(target) as caller:
                while time.perf_counter() < until:
                    body = bodies[(counts[number] + number * 7) % len(bodies)]
                    caller.post_batch("recommend", body, MOST)
                    counts[number] += 1
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(connections)]
    cpu, began = target.cpu_seconds(), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed, used = time.perf_counter() - began, target.cpu_seconds() - cpu
    if failures:
        raise failures[0]
    done = MOST * sum(counts)
    return done / elapsed, 1e6 * used / done
