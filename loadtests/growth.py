"""How the cost of one recommendation grows with everything that can grow.

Cost is the worker's CPU time a request, which a busy machine disturbs less than it does requests a
second. Each series is one recommender after the other on one server, asked in turn several times,
and the median counts.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx
from drive import recommend_bodies, throughput
from stage import HEADERS, Target, document

ARMS = (10, 100, 1_000)
DIMENSIONS = (2, 100, 1_000, 10_000)
CELLS = (1, 1_000, 100_000)
CLIENTS = (1, 1_000, 1_000_000)
CANDIDATES = (10, 100, 1_000)

_EAGER = {"base": 1.0, "growth": 0.01}
"""A partition whose cells split after one or two arrivals: many cells from little feedback."""

Say = Callable[[str], None]


def cost(
    target: Target, bodies: Mapping[int, Sequence[str]], *, seconds: float, rounds: int
) -> dict[str, float]:
    """Return the CPU microseconds of a recommendation, by size; the sizes take turns."""
    samples: dict[int, list[float]] = {size: [] for size in bodies}
    for size, some in bodies.items():
        throughput(target, "/recommend", some, 1)  # caches, and the ledgers' first debit
        samples[size] = []
    for _ in range(rounds):
        for size, some in bodies.items():
            sample = throughput(target, "/recommend", some, seconds)
            samples[size].append(sample.cpu_microseconds)
    return {str(size): round(statistics.median(found), 1) for size, found in samples.items()}


def by_arms(target: Target, *, seconds: float, rounds: int) -> dict[str, float]:
    """Grow the catalogue."""
    bodies = {}
    for arms in ARMS:
        target.put(f"arms-{arms}", document(items=arms))
        bodies[arms] = recommend_bodies(4_000, name=f"arms-{arms}")
        teach(target, bodies[arms][:2_000])
    return cost(target, bodies, seconds=seconds, rounds=rounds)


def by_dimensions(target: Target, *, seconds: float, rounds: int) -> dict[str, float]:
    """Grow the context; reading the body is part of it."""
    bodies = {}
    for dimensions in DIMENSIONS:
        target.put(f"dimensions-{dimensions}", document(dimensions=dimensions))
        many = max(20, min(4_000, 400_000 // dimensions))
        bodies[dimensions] = recommend_bodies(
            many, dimensions=dimensions, name=f"dimensions-{dimensions}"
        )
    return cost(target, bodies, seconds=seconds, rounds=rounds)


def by_cells(target: Target, *, seconds: float, rounds: int, say: Say) -> dict[str, Any]:
    """Grow the partition, by real feedback."""
    bodies, reached = {}, {}
    for cells in CELLS:
        name = f"cells-{cells}"
        partition = {"base": 1e12} if cells == 1 else _EAGER
        target.put(name, document(partition=partition))
        known = taught = 0
        while known < cells and taught < 3 * cells:
            lot = min(20_000, max(100, cells - known))
            # Little at a time: whatever is asked before its feedback is heard falls into one cell.
            teach(target, recommend_bodies(lot, start=taught, name=name), together=50)
            taught += lot
            known = _cells_of(target, name)
            say(f"{name}: {known:,} cells after {taught:,} pieces of feedback")
        reached[str(cells)] = known
        bodies[cells] = recommend_bodies(60_000, name=name)
    return {
        "cpu_us": cost(target, bodies, seconds=seconds, rounds=rounds),
        "cells": reached,
    }


def by_clients(target: Target, *, seconds: float, rounds: int, say: Say) -> dict[str, float]:
    """Grow the number of ledgers: every client is debited once before anything is measured."""
    target.put("clients", document())
    bodies = {}
    known = 0
    for clients in CLIENTS:
        for start in range(known, clients, 1_000):
            chunk = [
                f'{{"recommender":"clients","client":"client-{number}","context":[0.5,0.5]}}'
                for number in range(start, min(start + 1_000, clients))
            ]
            _batch(target, "recommend", "requests", chunk)
            if start % 100_000 == 0:
                say(f"clients: {start:,} ledgers")
        known = clients
        stride = max(1, clients // 60_000)
        bodies[clients] = [
            f'{{"recommender":"clients","client":"client-{number * stride % clients}",'
            f'"context":[{number * 0.6180339887 % 1:.4f},{number * 0.377 % 1:.4f}]}}'
            for number in range(60_000)
        ]
    return cost(target, bodies, seconds=seconds, rounds=rounds)


def by_candidates(target: Target, *, seconds: float, rounds: int) -> dict[str, float]:
    """Grow the list of candidates that comes with the question, of a catalogue of 1,000."""
    target.put("candidates", document(items=1_000))
    bodies = {}
    for size in CANDIDATES:
        listed = ",".join(f'"item-{number * (1_000 // size)}"' for number in range(size))
        bodies[size] = [
            body[:-1] + f',"candidates":[{listed}]}}'
            for body in recommend_bodies(400, name="candidates")
        ]
    return cost(target, bodies, seconds=seconds, rounds=rounds)


def teach(target: Target, bodies: Sequence[str], *, together: int = 1_000) -> None:
    """Ask, and answer each with a reward, in batches."""
    for start in range(0, len(bodies), together):
        asked = _batch(target, "recommend", "requests", bodies[start : start + together])
        told = [
            f'{{"recommendation_id":"{one["recommendation_id"]}","reward":{number % 2}}}'
            for number, one in enumerate(asked)
        ]
        _batch(target, "feedback", "feedback", told)


def _batch(target: Target, path: str, name: str, entries: Sequence[str]) -> list[dict[str, Any]]:
    answer = httpx.post(
        f"{target.url}/{path}/batch",
        content=f'{{"{name}":[{",".join(entries)}]}}',
        headers=HEADERS,
        timeout=120,
    )
    answer.raise_for_status()
    results: list[dict[str, Any]] = answer.json()["results"]
    wrong = [one for one in results if one["status"] != 200]
    if wrong:
        raise SystemExit(f"{path}: {wrong[0]}")
    return results


def _cells_of(target: Target, name: str) -> int:
    """Return how many cells a survey has counted; a survey may be a second or two behind."""
    time.sleep(3)
    text = httpx.get(f"{target.url}/metrics", headers=HEADERS, timeout=30).text
    for line in text.splitlines():
        if line.startswith("discreet_cells{") and f'recommender="{name}"' in line:
            return int(float(line.rsplit(" ", 1)[1]))
    return 0
