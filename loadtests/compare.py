"""Several servers on one path, turn by turn: Discreet beside others, or beside itself.

A turn is one run of each, one right after the other, with everything that they will be sent made
before. A ratio is taken within a turn, where the machine's noise falls on both alike, and the
median of these ratios counts. The order is turned round every time. Discreet stands between the
floor and the alternative, so that it is the neighbour of both, as often before as after.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    supplies = {name: Supply.of_path(targets[name], path) for name in ORDER}
    rates = throughput_turns(targets, supplies, path, seconds=seconds, rounds=rounds, say=say)
    floor = statistics.median(one.requests_per_second for one in rates["floor"])
    offered = max(50, int(floor / 2))
    waits = latency_turns(
        targets, supplies, path, rate=offered, seconds=seconds, rounds=latency_rounds, say=say
    )
    return {
        "offered_rps": offered,
        "ratio_to_floor": ratio(rates["discreet"], rates["floor"]),
        "ratio_to_alternative": ratio(rates["discreet"], rates["alternative"]),
        **{name: {**speed(rates[name]), **waiting(waits[name])} for name in reversed(ORDER)},
    }


def compare_variants(
    targets: Mapping[str, Target], path: str, *, seconds: float, rounds: int, say: Say
) -> dict[str, Any]:
    """Measure throughput of servers that differ in one thing; ratios are to the first of them."""
    supplies = {name: Supply.of_path(target, path) for name, target in targets.items()}
    rates = throughput_turns(targets, supplies, path, seconds=seconds, rounds=rounds, say=say)
    first = rates[next(iter(targets))]
    return {
        name: {
            **speed(samples),
            "rps_ratio": ratio(samples, first),
            "cpu_ratio": cpu_ratio(samples, first),
        }
        for name, samples in rates.items()
    }


def ratio(ours: Sequence[Sample], theirs: Sequence[Sample]) -> dict[str, float]:
    """Return how many times as fast we are: the median of the turns, and their range."""
    return turn_ratios(
        (one.requests_per_second, other.requests_per_second)
        for one, other in zip(ours, theirs, strict=True)
    )


def cpu_ratio(ours: Sequence[Sample], theirs: Sequence[Sample]) -> dict[str, float]:
    """Return how many times their CPU a request takes with us."""
    return turn_ratios(
        (one.cpu_microseconds, other.cpu_microseconds)
        for one, other in zip(ours, theirs, strict=True)
    )


def turn_ratios(pairs: Iterable[tuple[float, float]]) -> dict[str, float]:
    """Return the median of the turns' ratios, and their range."""
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
    """What a target will be sent, made as it is needed.

    Feedback counts only `once`, so what was sent is not sent again.
    """

    def __init__(self, make: Callable[[int], list[str]], *, once: bool) -> None:
        self._make = make
        self._once = once
        self._left: list[str] = []

    @classmethod
    def of_path(cls, target: Target, path: str) -> "Supply":
        """Return questions to the recommender called bench, or feedback on its answers."""
        if path == "feedback":
            return cls(lambda count: feedback_bodies(target, count), once=True)
        return cls(lambda count: recommend_bodies(max(count, 20_000)), once=False)

    def at_least(self, count: int) -> list[str]:
        """Return so many bodies or more; or some that are sent again and again."""
        missing = count - len(self._left)
        if missing > 0 and (self._once or not self._left):
            self._left += self._make(missing)
        return self._left

    def sent(self, count: int) -> int:
        """Forget what was sent, in its order; return how many were sent for the second time."""
        if not self._once:
            return 0
        again = max(0, count - len(self._left))
        # Those that were on their way when the load stopped arrived, but were not counted.
        del self._left[: count + 2 * CONNECTIONS]
        return again


def throughput_turns(
    targets: Mapping[str, Target],
    supplies: Mapping[str, Supply],
    path: str,
    *,
    seconds: float,
    rounds: int,
    say: Say,
) -> dict[str, list[Sample]]:
    """Drive each as fast as it goes, turn by turn."""
    samples: dict[str, list[Sample]] = {name: [] for name in targets}
    expected = {
        name: _GUESSES.get(name, _GUESS) * len(target.workers) * seconds
        for name, target in targets.items()
    }
    for name in targets:  # connections, caches, and the ledgers' first debit
        warming = supplies[name].at_least(int(expected[name] / seconds))
        found = throughput(targets[name], f"/{path}", warming, 1)
        supplies[name].sent(found.requests)
        # A fast machine sends more than was guessed, and what comes twice is answered sooner.
        expected[name] = max(expected[name], 1.5 * found.requests * seconds)
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


def latency_turns(
    targets: Mapping[str, Target],
    supplies: Mapping[str, Supply],
    path: str,
    *,
    rate: int,
    seconds: float,
    rounds: int,
    say: Say,
) -> dict[str, list[Latency]]:
    """Let requests arrive at each at this rate, turn by turn."""
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


def speed(samples: Sequence[Sample]) -> dict[str, Any]:
    """Return the medians of throughput and CPU."""
    return {
        "rps": round(statistics.median(one.requests_per_second for one in samples)),
        "cpu_us": round(statistics.median(one.cpu_microseconds for one in samples)),
        "repeated": sum(one.repeated for one in samples),
    }


def waiting(waits: Sequence[Latency]) -> dict[str, Any]:
    """Return the medians of what callers waited, and what was lost."""
    return {
        "p50_ms": round(statistics.median(one.p50_ms for one in waits), 2),
        "p99_ms": round(statistics.median(one.p99_ms for one in waits), 2),
        "dropped": sum(one.dropped for one in waits),
        "failed_share": round(max(one.failed_share for one in waits), 4),
    }
