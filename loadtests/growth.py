"""How the cost of one recommendation grows with everything that can grow.

Cost is the worker's CPU time a request, which a busy machine disturbs less than it does requests a
second. Within a series everything is put in place first, on one server; then the sizes are asked in
turn, several times. Growth is the median of the turns' ratios of the last size to the first.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx
from callers import MOST, Caller, ask_in_batches, batch_body, chunks, feedback_on, ids_of
from drive import Sample, Say, recommend_bodies, throughput
from stage import HEADERS, Target, document

ARMS = (10, 100, 1_000)
DIMENSIONS = (2, 100, 1_000, 10_000)
CELLS = (1, 1_000, 100_000)
CLIENTS = (1, 1_000, 1_000_000)
CANDIDATES = (10, 100, 1_000)
QUICK_CELLS = (1, 1_000, 10_000)
QUICK_CLIENTS = (1, 1_000, 20_000)

_ASKED = 60_000
"""Different questions in the series where it matters that no turn meets what the last one met."""
_STEP = 15_000
_EAGER = {"base": 1.0, "growth": 0.01}
"""A partition whose cells split after one or two arrivals: many cells from little feedback."""

Bodies = Mapping[int, Sequence[str]]


def scaling(target: Target, *, quick: bool, say: Say) -> dict[str, Any]:
    """Measure every series."""
    seconds, rounds = (2.0, 2) if quick else (3.0, 5)
    cells, clients = (QUICK_CELLS, QUICK_CLIENTS) if quick else (CELLS, CLIENTS)
    series: dict[str, Callable[[], tuple[Bodies, dict[str, Any]]]] = {
        "arms": lambda: (_arms(target), {}),
        "dimensions": lambda: (_dimensions(target), {}),
        "candidates": lambda: (_candidates(target), {}),
        "clients": lambda: (_clients(target, clients, say), {}),
        "cells": lambda: _cells(target, cells, say),
    }
    found: dict[str, Any] = {}
    for name, prepare in series.items():
        say(f"by {name}")
        bodies, beside = prepare()
        found[name] = {**cost(target, bodies, seconds=seconds, rounds=rounds), **beside}
        say(f"by {name}: {found[name]['cpu_us']} us, {found[name]['growth']} times")
    return found


def cost(target: Target, bodies: Bodies, *, seconds: float, rounds: int) -> dict[str, Any]:
    """Return CPU microseconds of a recommendation and requests a second by size, and the growth."""
    sizes = list(bodies)
    for size in sizes:
        throughput(target, "/recommend", bodies[size], 1)  # caches, and the ledgers' first debit
    turns: list[dict[int, Sample]] = []
    for turn in range(rounds):
        turns.append({})
        for size in sizes if turn % 2 == 0 else reversed(sizes):
            # Each turn goes on where the last one stopped, so that many cells or clients really
            # are asked, and not the first few thousand of them again and again.
            some = bodies[size]
            place = (turn + 1) * _STEP % len(some)
            rotated = [*some[place:], *some[:place]]
            turns[-1][size] = throughput(target, "/recommend", rotated, seconds)
    return summary(turns)


def summary(turns: Sequence[Mapping[int, Sample]]) -> dict[str, Any]:
    """Return the medians by size, and how much the last size costs beside the first."""
    sizes = sorted(turns[0])
    ratios = [turn[sizes[-1]].cpu_microseconds / turn[sizes[0]].cpu_microseconds for turn in turns]
    return {
        "cpu_us": {
            str(size): round(statistics.median(turn[size].cpu_microseconds for turn in turns), 1)
            for size in sizes
        },
        "rps": {
            str(size): round(statistics.median(turn[size].requests_per_second for turn in turns))
            for size in sizes
        },
        "growth": round(statistics.median(ratios), 2),
        "growth_min": round(min(ratios), 2),
        "growth_max": round(max(ratios), 2),
    }


def _arms(target: Target) -> Bodies:
    """Grow the catalogue."""
    bodies = {}
    for arms in ARMS:
        target.put(f"arms-{arms}", document(items=arms))
        bodies[arms] = recommend_bodies(4_000, name=f"arms-{arms}")
        teach(target, bodies[arms][:2_000])
    return bodies


def _dimensions(target: Target) -> Bodies:
    """Grow the context; reading the body is part of it."""
    bodies = {}
    for dimensions in DIMENSIONS:
        target.put(f"dimensions-{dimensions}", document(dimensions=dimensions))
        many = max(20, min(4_000, 400_000 // dimensions))
        bodies[dimensions] = recommend_bodies(
            many, dimensions=dimensions, name=f"dimensions-{dimensions}"
        )
    return bodies


def _candidates(target: Target) -> Bodies:
    """Grow the list of candidates that comes with the question, of a catalogue of 1,000."""
    target.put("candidates", document(items=1_000))
    bodies = {}
    for size in CANDIDATES:
        listed = ",".join(f'"item-{number * (1_000 // size)}"' for number in range(size))
        bodies[size] = [
            body[:-1] + f',"candidates":[{listed}]}}'
            for body in recommend_bodies(400, name="candidates")
        ]
    return bodies


def _clients(target: Target, sizes: Sequence[int], say: Say) -> Bodies:
    """Grow the number of ledgers: every client is debited once before anything is measured."""
    target.put("clients", document())
    for start in range(0, sizes[-1], 100 * MOST):
        lot = range(start, min(start + 100 * MOST, sizes[-1]))
        ask_in_batches(target, [_by_client(number, number) for number in lot])
        say(f"clients: {lot[-1] + 1:,} ledgers")
    bodies = {}
    for clients in sizes:
        stride = max(1, clients // _ASKED)
        bodies[clients] = [_by_client(n * stride % clients, n) for n in range(_ASKED)]
    return bodies


def _by_client(client: int, number: int) -> str:
    context = f"[{number * 0.6180339887 % 1:.4f},{number * 0.377 % 1:.4f}]"
    return f'{{"recommender":"clients","client":"client-{client}","context":{context}}}'


def _cells(target: Target, sizes: Sequence[int], say: Say) -> tuple[Bodies, dict[str, Any]]:
    """Grow the partition, by real feedback; say how many cells there are in the end."""
    bodies, reached = {}, {}
    for cells in sizes:
        name = f"cells-{cells}"
        target.put(name, document(partition={"base": 1e12} if cells == 1 else _EAGER))
        reached[str(cells)] = _grow(target, name, cells, say)
        bodies[cells] = recommend_bodies(_ASKED, name=name)
    return bodies, {"cells": reached}


def _grow(target: Target, name: str, cells: int, say: Say) -> int:
    known = taught = 0
    while known < cells and taught < 5 * cells:
        # Twice as much each time, because counting the cells takes seconds; in the end what is
        # missing, when about every other piece makes a cell.
        lot = max(50, min(taught, 2 * (cells - known)))
        # Whatever is asked before its feedback is heard falls into one cell; the contexts spread
        # evenly, so that a quarter of the known cells rarely meets one of them twice.
        together = min(MOST, max(50, known // 4))
        teach(target, recommend_bodies(lot, start=taught, name=name), together=together)
        taught += lot
        known = _cells_of(target, name)
        say(f"{name}: {known:,} cells after {taught:,} pieces of feedback")
    return known


def teach(target: Target, bodies: Sequence[str], *, together: int = MOST) -> None:
    """Ask, and answer each with a reward, in batches."""
    with Caller(target) as caller:
        for chunk in chunks(bodies, together):
            asked = caller.post_batch("recommend", batch_body("recommend", chunk), len(chunk))
            told = feedback_on(ids_of(asked))
            caller.post_batch("feedback", batch_body("feedback", told), len(chunk))


def _cells_of(target: Target, name: str) -> int:
    """Return how many cells a survey has counted; a survey may be a second or two behind."""
    time.sleep(3)
    text = httpx.get(f"{target.url}/metrics", headers=HEADERS, timeout=30).text
    for line in text.splitlines():
        if line.startswith("discreet_cells{") and f'recommender="{name}"' in line:
            return int(float(line.rsplit(" ", 1)[1]))
    return 0
