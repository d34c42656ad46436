"""How the cost of one recommendation grows with everything that can grow.

Cost is the worker's CPU time a request, which a busy machine disturbs less than it does requests a
second. Within a series everything is put in place first, on one server; then the sizes are asked in
turn, several times. Growth is the median of the turns' ratios of the last size to the first.

Answers are made from released models, so what was learned counts once it is released. Releases go
by the clock; those of a series are held back while it is measured.
"""

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from callers import MOST, Caller, ask_in_batches, batch_body, chunks, feedback_on, ids_of
from drive import Sample, Say, recommend_bodies, throughput
from stage import PATIENCE, PRIVATE, Target, document

ARMS = (10, 100, 1_000)
DIMENSIONS = (2, 100, 1_000, 10_000)
CELLS = (1, 100, 1_000)
CLIENTS = (1, 1_000, 1_000_000)
CANDIDATES = (10, 100, 1_000)
DESCRIBED = (1, 10, 100)
QUICK_CELLS = (1, 50, 200)
QUICK_CLIENTS = (1, 1_000, 20_000)

_ASKED = 60_000
"""Different questions in the series where it matters that no turn meets what the last one met."""
_STEP = 15_000
_EAGER: dict[str, Any] = {
    "partition": {"base": 1.0, "growth": 0.01},
    "privacy": {**PRIVATE, "feedback": "exact"},
}
"""Cells that split at the first release after one or two pieces of feedback, without noise that
would have to be exceeded first: many cells from little feedback."""
_OFTEN = {"seconds": 0.05, "growth": 0.0}
_NEVER = {"seconds": 86_400.0}
_FEATURES, _NONZEROS = 1_000_000, 50

Bodies = Mapping[int, Sequence[str]]


def scaling(target: Target, *, quick: bool, say: Say) -> dict[str, Any]:
    """Measure every series."""
    seconds, rounds = (1.0, 2) if quick else (2.0, 3)
    cells, clients = (QUICK_CELLS, QUICK_CLIENTS) if quick else (CELLS, CLIENTS)
    series: dict[str, Callable[[], tuple[Bodies, dict[str, Any]]]] = {
        "arms": lambda: (_arms(target), {}),
        "dimensions": lambda: (_dimensions(target), {}),
        "candidates": lambda: (_candidates(target), {}),
        "described": lambda: (_described(target), {}),
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
        name = f"arms-{arms}"
        target.put(name, document(items=arms, releases=_OFTEN))
        bodies[arms] = recommend_bodies(4_000, name=name)
        teach(target, bodies[arms][:2_000])
        wait_for_release(target, name, bodies[arms][0])
        target.put(name, document(items=arms, releases=_NEVER))
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


def _described(target: Target) -> Bodies:
    """Grow a list of candidates whose sparse features come with the question (mirror-descent)."""
    name = "described"
    target.put(
        name,
        {
            "algorithm": "mirror-descent",
            "features": {"dimension": _FEATURES},
            "privacy": PRIVATE,
            "releases": _NEVER,
        },
    )
    rng = np.random.default_rng(0)

    def candidate(number: int) -> dict[str, Any]:
        indices = np.sort(rng.choice(_FEATURES, _NONZEROS, replace=False)).tolist()
        values = rng.random(_NONZEROS).round(4).tolist()
        return {"id": f"item-{number}", "features": {"indices": indices, "values": values}}

    return {
        size: [
            json.dumps(
                {
                    "recommender": name,
                    "client": f"client-{number}",
                    "candidates": [candidate(place) for place in range(size)],
                }
            )
            for number in range(40)
        ]
        for size in DESCRIBED
    }


def _clients(target: Target, sizes: Sequence[int], say: Say) -> Bodies:
    """Grow the number of ledgers: every client is debited once before anything is measured."""
    target.put("clients", document())
    for start in range(0, sizes[-1], 100 * MOST):
        chunk = range(start, min(start + 100 * MOST, sizes[-1]))
        ask_in_batches(target, [_by_client(number, number) for number in chunk])
        say(f"clients: {chunk[-1] + 1:,} ledgers")
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
        shape: dict[str, Any] = {"partition": {"base": 1e12}} if cells == 1 else _EAGER
        target.put(name, document(**shape, releases=_OFTEN))
        reached[str(cells)] = _grow(target, name, cells, say)
        target.put(name, document(**shape, releases=_NEVER))
        bodies[cells] = recommend_bodies(_ASKED, name=name)
    return bodies, {"cells": reached}


def _grow(target: Target, name: str, cells: int, say: Say) -> int:
    """Teach and release until there are so many cells in the released model, or no more come."""
    known = taught = 0
    while True:
        bodies = recommend_bodies(MOST, start=taught, name=name)
        teach(target, bodies)
        taught += len(bodies)
        wait_for_release(target, name, bodies[0])
        before, known = known, int(target.sample("discreet_cells", name))
        say(f"{name}: {known:,} cells after {taught:,} pieces of feedback")
        if known >= cells or known == before:
            return known


def teach(target: Target, bodies: Sequence[str]) -> None:
    """Ask, and answer each with a reward, in batches."""
    with Caller(target) as caller:
        for chunk in chunks(bodies):
            asked = caller.post_batch("recommend", batch_body("recommend", chunk), len(chunk))
            feedback = feedback_on(ids_of(asked))
            caller.post_batch("feedback", batch_body("feedback", feedback), len(chunk))


def wait_for_release(target: Target, name: str, body: str) -> None:
    """Wait until everything that was learned so far is released."""
    # The next release may have begun before the last feedback came; the one after it has not.
    wanted = target.sample("discreet_release", name) + 2
    deadline = time.monotonic() + PATIENCE
    with Caller(target) as caller:
        while target.sample("discreet_release", name) < wanted:
            if time.monotonic() > deadline:
                raise SystemExit(f"{name}: no model was released within {PATIENCE:g} s")
            # Nothing is released for a recommender that nobody asks.
            caller.post("/recommend", body.encode())
            time.sleep(0.1)
