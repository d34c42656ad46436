"""Several servers on one path, turn by turn: Discreet beside others, or beside itself.

A turn is one run of each, one right after the other, with everything that they will be sent made
before. A ratio is taken within a turn, where the machine's noise falls on both alike, and the
median of these ratios counts. The order is turned round every time. Discreet stands between the
floor and the alternative, so that it is the neighbour of both, as often before as after.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from drive import (
    CONNECTIONS,
    Latency,
    Sample,
    Say,
    feedback_bodies,
    latency,
    recommend_bodies,
    throughput,
)
from stage import Target

ORDER = ("floor", "discreet", "alternative")
_GUESS = 8_000
"""Requests a second of one worker to prepare for, until a turn has shown how many it takes."""
_GUESSES = {"alternative": 1_000}


def compare(
    targets: Mapping[str, Target],
    path: str,
    *,
    seconds: float,
    rounds: int,
    latency_rounds: int,
    say: Say,
) -> dict[str, Any]:
    """Measure throughput in a closed loop, and latency at half of the floor's, in an open one."""
    targets = {name: targets[name] for name in ORDER}
    supplies = {name: Supply(targets[name], path) for name in ORDER}
    rates = _throughput_turns(targets, supplies, path, seconds=seconds, rounds=rounds, say=say)
    floor = statistics.median(one.requests_per_second for one in rates["floor"])
    offered = max(50, int(floor / 2))
    waits = _latency_turns(
        targets, supplies, path, rate=offered, seconds=seconds, rounds=latency_rounds, say=say
    )
    return {
        "offered_rps": offered,
        "ratio_to_floor": ratio(rates["discreet"], rates["floor"]),
        "ratio_to_alternative": ratio(rates["discreet"], rates["alternative"]),
        **{name: {**_speed(rates[name]), **_waiting(waits[name])} for name in reversed(ORDER)},
    }


def compare_variants(
    targets: Mapping[str, Target], path: str, *, seconds: float, rounds: int, say: Say
) -> dict[str, Any]:
    """Measure throughput of servers that differ in one thing; ratios are to the first of them."""
    supplies = {name: Supply(target, path) for name, target in targets.items()}
    rates = _throughput_turns(targets, supplies, path, seconds=seconds, rounds=rounds, say=say)
    first = rates[next(iter(targets))]
    return {
        name: {
            **_speed(samples),
            "rps_ratio": ratio(samples, first),
            "cpu_ratio": _turn_ratios(
                zip(
                    (one.cpu_microseconds for one in samples),
                    (one.cpu_microseconds for one in first),
                    strict=True,
                )
            ),
        }
        for name, samples in rates.items()
    }


def ratio(ours: Sequence[Sample], theirs: Sequence[Sample]) -> dict[str, float]:
    """Return how many times as fast we are: the median of the turns, and their range."""
    return _turn_ratios(
        (one.requests_per_second, other.requests_per_second)
        for one, other in zip(ours, theirs, strict=True)
    )


def _turn_ratios(pairs: Iterable[tuple[float, float]]) -> dict[str, float]:
    turns = [one / other for one, other in pairs]
    return {
        "median": round(statistics.median(turns), 2),
        "min": round(min(turns), 2),
        "max": round(max(turns), 2),
    }


def order(turn: int, names: Iterable[str] = ORDER) -> Sequence[str]:
    """Return who goes first in this turn, and who follows."""
    return [*names] if turn % 2 == 0 else [*names][::-1]


class Supply:
    """What a target will be sent. Feedback counts only once, so what was sent is not sent again."""

    def __init__(self, target: Target, path: str) -> None:
        self._target = target
        self._once = path == "feedback"
        self._left = [] if self._once else recommend_bodies(20_000)

    def at_least(self, count: int) -> list[str]:
        """Return so many bodies or more."""
        if self._once and (missing := count - len(self._left)) > 0:
            self._left += feedback_bodies(self._target, missing)
        return self._left

    def sent(self, count: int) -> int:
        """Forget what was sent, in its order; return how many were sent for the second time."""
        if not self._once:
            return 0
        again = max(0, count - len(self._left))
        # Those that were on their way when the load stopped arrived, but were not counted.
        del self._left[: count + 2 * CONNECTIONS]
        return again


def _throughput_turns(
    targets: Mapping[str, Target],
    supplies: Mapping[str, Supply],
    path: str,
    *,
    seconds: float,
    rounds: int,
    say: Say,
) -> dict[str, list[Sample]]:
    samples: dict[str, list[Sample]] = {name: [] for name in targets}
    expected = {
        name: _GUESSES.get(name, _GUESS) * len(target.workers) * seconds
        for name, target in targets.items()
    }
    for name in targets:  # connections, caches, and the ledgers' first debit
        warming = supplies[name].at_least(int(expected[name] / seconds))
        supplies[name].sent(throughput(targets[name], f"/{path}", warming, 1).requests)
    for turn in range(rounds):
        bodies = {name: supplies[name].at_least(int(expected[name])) for name in targets}
        for name in order(turn, targets):
            found = throughput(targets[name], f"/{path}", bodies[name], seconds)
            again = supplies[name].sent(found.requests)
            samples[name].append(replace(found, repeated=again))
            expected[name] = 1.5 * found.requests
            say(
                f"/{path} turn {turn + 1}: {name} {found.requests_per_second:,.0f} /s, "
                f"{found.cpu_microseconds:.0f} us CPU"
                + (f", {again:,} for the second time" if again else "")
            )
    return samples


def _latency_turns(
    targets: Mapping[str, Target],
    supplies: Mapping[str, Supply],
    path: str,
    *,
    rate: int,
    seconds: float,
    rounds: int,
    say: Say,
) -> dict[str, list[Latency]]:
    waits: dict[str, list[Latency]] = {name: [] for name in targets}
    arrivals = int(rate * (seconds + 1))
    for turn in range(rounds):
        bodies = {name: supplies[name].at_least(arrivals) for name in targets}
        for name in order(turn, targets):
            found = latency(targets[name], f"/{path}", bodies[name], rate=rate, seconds=seconds)
            waits[name].append(found)
            supplies[name].sent(arrivals)
            say(
                f"/{path} at {rate} /s, turn {turn + 1}: {name} p50 {found.p50_ms:.1f} ms, "
                f"p99 {found.p99_ms:.1f} ms, {found.dropped} dropped"
            )
    return waits


def _speed(samples: Sequence[Sample]) -> dict[str, Any]:
    return {
        "rps": round(statistics.median(one.requests_per_second for one in samples)),
        "cpu_us": round(statistics.median(one.cpu_microseconds for one in samples)),
        "repeated": sum(one.repeated for one in samples),
    }


def _waiting(waits: Sequence[Latency]) -> dict[str, Any]:
    return {
        "p50_ms": round(statistics.median(one.p50_ms for one in waits), 2),
        "p99_ms": round(statistics.median(one.p99_ms for one in waits), 2),
        "dropped": sum(one.dropped for one in waits),
        "failed_share": round(max(one.failed_share for one in waits), 4),
    }
