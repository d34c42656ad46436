"""A run in the shape that the benchmark saves. The shape was recorded; the speeds are made up."""

from typing import Any

MACHINE = {
    "cpu": "a processor",
    "cores": 2,
    "python": "3.11.7",
    "valkey": "9.1.2",
    "fsync": "always",
    "load_average_before": 0.4,
    "connections": 32,
    "date": "2026-11-16",
}


def service(rps: int, p99_ms: float) -> dict[str, Any]:
    """Return one service's figures on one path."""
    return {
        "rps": rps,
        "cpu_us": 1_000_000 // rps,
        "repeated": 0,
        "p50_ms": p99_ms / 4,
        "p99_ms": p99_ms,
        "dropped": 0,
        "failed_share": 0.0,
    }


def compared(times: float) -> dict[str, Any]:
    """Return what `compare` finds where Discreet is so many times as fast as the floor."""
    return {
        "offered_rps": 500,
        "ratio_to_floor": {"median": times, "min": times - 0.1, "max": times + 0.1},
        "ratio_to_alternative": {"median": 9.0, "min": 8.0, "max": 10.0},
        "discreet": service(round(1_000 * times), 6.0),
        "floor": service(1_000, 12.0),
        "alternative": service(300, 900.0),
    }


def series(*costs: float, sizes: tuple[int, ...]) -> dict[str, Any]:
    """Return what `growth` finds."""
    return {
        "cpu_us": {str(size): cost for size, cost in zip(sizes, costs, strict=True)},
        "rps": {str(size): round(1e6 / cost) for size, cost in zip(sizes, costs, strict=True)},
        "growth": round(costs[-1] / costs[0], 2),
        "growth_min": 1.0,
        "growth_max": 2.0,
    }


def scaling() -> dict[str, Any]:
    """Return all series."""
    return {
        "arms": series(200, 205, 230, sizes=(10, 100, 1_000)),
        "dimensions": series(200, 260, 700, 5_000, sizes=(2, 100, 1_000, 10_000)),
        "candidates": series(210, 240, 500, sizes=(10, 100, 1_000)),
        "clients": series(200, 201, 214, sizes=(1, 1_000, 1_000_000)),
        "described": series(300, 400, 1_500, sizes=(1, 10, 100)),
        "cells": {
            **series(200, 230, 260, sizes=(1, 100, 1_000)),
            "cells": {"1": 1, "100": 127, "1000": 1_023},
        },
    }


MEMORY = {
    "ledger_bytes": 102.8,
    "claim_bytes": 117.7,
    "unreleased_feedback_bytes": 37.3,
    "sums_bytes": {"10": 364.3, "100": 1768.5, "1000": 16177.9},
    "model_bytes": {"1 x 20": 4_352, "1023 x 20": 181_840},
    "pending_decision_bytes": 0,
    "pending_decision_with_event_id_bytes": 683.9,
    "vote_bytes": {"voter": 55.0, "vote": 1.52},
}
BATCH = {
    "decisions_per_second": 45_000,
    "cpu_us_per_decision": 33.1,
    "size": 1_000,
    "arms": 20,
    "in_flight": {
        "1": {"decisions_per_second": 21_000, "cpu_us_per_decision": 32.0},
        "2": {"decisions_per_second": 45_000, "cpu_us_per_decision": 33.1},
    },
}
_RANGE = {"median": 0.8, "min": 0.7, "max": 0.9}


def variants(*names: str) -> dict[str, Any]:
    """Return what comparing servers that differ in one thing finds."""
    one = {"rps": 4_000, "cpu_us": 210, "repeated": 0, "rps_ratio": _RANGE, "cpu_ratio": _RANGE}
    return {path: {name: dict(one) for name in names} for path in ("recommend", "feedback")}


_COMMAND = {
    "cpu_us_per_command": 20.5,
    "commands_per_second": 30_000,
    "cpu_ratio_to_ours": 1.0,
    "speed_ratio_to_ours": 1.0,
}
CLIENTS = {
    "commands": {"always": {"spend of 1": {"ours": _COMMAND, "coredis": _COMMAND}}},
    "requests": variants("ours", "redis-py", "coredis"),
}
RELEASES = {
    "p-dap, 1,023 cells, 20 items": {"seconds": 0.4, "cpu_seconds": 0.3, "model_bytes": 166_446}
}
PROTOCOL = variants("direct", "uvicorn")
_WAITED = {"count": 100, "p50_ms": 2.5, "p99_ms": 20.0, "failures": 0, "statuses": {"200": 100}}
MIXED = {
    "offered_per_second": 200,
    "seconds": 30,
    "reached_per_second": 200.0,
    "requests_per_second": 300.0,
    "dropped": 0,
    "left_out": ["collaborative"],
    "families": {"p-dap": {"recommend": _WAITED, "feedback": _WAITED}},
}


def kind(times: float) -> dict[str, Any]:
    """Return what `families` finds where a family is so many times as fast as the floor."""

    def ratio() -> dict[str, float]:
        return {"median": times, "min": times - 0.1, "max": times + 0.1}

    found: dict[str, Any] = {
        path: {
            **service(round(1_000 * times), 6.0),
            "ratio_to_floor": ratio(),
            "cpu_ratio": ratio(),
        }
        for path in ("recommend", "feedback")
    }
    found["batch"] = {
        "decisions_per_second": 9_000,
        "cpu_us": 55,
        "ratio_to_floor": ratio(),
        "entries": 15_000,
        "failed": 0,
    }
    return {**found, "personalised": 1.0}


_FLOOR = {**service(1_000, 12.0), "offered_rps": 500}
FAMILIES = {
    "floor": {"recommend": _FLOOR, "feedback": _FLOOR},
    "kinds": {"fclub, 40 dimensions": kind(2.6), "p-rec": kind(2.7)},
}

_USED = {"cpu_us": 12.5, "received_bytes": 97, "sent_bytes": 47, "log_bytes": 188}
STORE: dict[str, Any] = {
    "operations": {
        name: {fsync: {"8": _USED, "64": _USED} for fsync in ("always", "everysec")}
        for name in ("answer", "feedback")
    },
    "clusters": {
        masters: {
            name: {
                "cpu_us": 12.5,
                "busiest_cpu_us": 12.5 / int(masters),
                "busiest_share": 1 / int(masters),
                "carries": float(masters),
            }
            for name in ("answer", "feedback")
        }
        for masters in ("1", "3")
    },
    "ledgers": {
        "measured": {"1000": 17.4, "1000000": 24.9},
        "bytes": 163.5,
        "debited_bytes": 163.1,
        "per_gib": 6_567_228,
        "computed_gib": {"10000000": 1.52},
    },
    "recommenders": {"1": 57.0, "1000": 66.3},
    "items": {"10": 67.1, "100000": 90.9},
    "workers": {"1": 16.0, "64": 16.2},
    "poll_cpu_us": 1.1,
    "sizing": {"store_bytes": {"predicted": 2_485_312, "measured": 2_399_248, "ratio": 0.97}},
    "releases": {
        "contextual, 1,000 items, 64 dimensions": {"seconds": 6.9, "model_bytes": 1_031_244},
        "contextual, 20 items, 8 dimensions, 100 recommenders": {"seconds": 8.3},
    },
    "contention": {
        "worker_cpu_us": 100.0,
        "store_cpu_us": 16.6,
        "workers": {
            "1": {
                "share_of_one_master": 0.166,
                "masters_at_half_load": 1,
                "waits_for_commands": 0.1,
            }
        },
    },
}
