"""What a release costs, by family and size: time, CPU and the bytes of the model.

    python loadtests/releases.py [--quick] [--json]

A release is made beside requests, by one worker: sums are gathered, noise is added, the model is
encoded and stored. The shipped decisions run in this process, over the store in memory, so that
what is measured is our own work. Each case is taught by its own clients first; then one release is
timed. CPU is that of this process, a training's own process not included.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from stage import PLENTY, PRIVATE

from discreet.decisions.services import DecisionServices, open_simulation
from discreet.errors import DiscreetError
from discreet.families.collaborative.profiles import Profiles
from discreet.families.contract import Recommender
from discreet.families.questions import Ask, Feedback
from discreet.families.registration import read_document
from discreet.privacy.noise import SystemNoise
from discreet.state.memory import MemoryStore

NAME = "bench"
_AT_ONCE = 1_000
_FEATURES = 50

Found = Mapping[str, Any]
AskOf = Callable[[int], Ask]
Fill = Callable[[DecisionServices, Recommender[Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ReleaseCase:
    """A document, and how it is taught before its release is timed."""

    name: str
    document: dict[str, Any]
    fill: Fill


def feeding(ask_of: AskOf, visits: int) -> Fill:
    """Return a filling by feedback: visits that ask, each of which gets a reward."""

    async def fill(services: DecisionServices, recommender: Recommender[Any]) -> None:
        for start in range(0, visits, _AT_ONCE):
            await _visit(services, [ask_of(n) for n in range(start, min(start + _AT_ONCE, visits))])

    return fill


async def _visit(services: DecisionServices, asks: Sequence[Ask]) -> None:
    feedback = []
    for number, answer in enumerate(await services.recommend.recommend_many(asks)):
        if isinstance(answer, DiscreetError):
            raise answer
        given = Feedback(
            reward=number % 2,
            recommendation_id=answer.recommendation_id,
            item=answer.items[0],
        )
        feedback.append(given)
    for receipt in await services.feedback.record_many(feedback):
        if isinstance(receipt, DiscreetError):
            raise receipt


def partition(cells: int) -> ReleaseCase:
    """Return a case of p-dap, whose noise is small so that cells split early."""

    def ask(number: int) -> Ask:
        context = (number * 0.7548776662 % 1, number * 0.5698402910 % 1)
        return Ask(NAME, f"client-{number}", context)

    async def fill(services: DecisionServices, recommender: Recommender[Any]) -> None:
        teach = feeding(ask, 2_000)
        await teach(services, recommender)
        while cells > 1 and len(recommender.current.model.own.statistics.tree) < cells:
            await services.releaser.release(recommender)
            await teach(services, recommender)

    document = {
        "algorithm": "p-dap",
        "items": [f"item-{number}" for number in range(20)],
        "context": {"dimensions": 2},
        "partition": {"base": 1.0 if cells > 1 else 1e12, "growth": 0.01},
        "privacy": {**PRIVATE, "feedback": {"epsilon": 50.0, "budget": PLENTY}},
    }
    return ReleaseCase(f"p-dap, {cells:,} cells, 20 items", document, fill)


def clusters(people: int) -> ReleaseCase:
    """Return a case of fclub, in which everybody has as many observations as a release needs."""
    rng = np.random.default_rng(0)
    rows = rng.random((100, 10)) - 0.5
    rows *= 0.9 / np.linalg.norm(rows, axis=1, keepdims=True)
    document = {
        "algorithm": "fclub",
        "role": "local",
        "dimensions": 10,
        "items": [{"id": f"item-{n}", "features": row.tolist()} for n, row in enumerate(rows)],
        "sharing": {"first_update": 1},
        "privacy": {"feedback": PRIVATE["feedback"]},
    }
    fill = feeding(lambda number: Ask(NAME, f"client-{number}"), people)
    return ReleaseCase(f"fclub, {people:,} people, 10 dimensions", document, fill)


def mirror(dimension: int) -> ReleaseCase:
    """Return a case of mirror-descent with 2,000 records of 50 features."""
    rng = np.random.default_rng(0)

    def features() -> dict[str, list[Any]]:
        indices = np.sort(rng.choice(dimension, _FEATURES, replace=False)).tolist()
        return {"indices": indices, "values": rng.random(_FEATURES).round(4).tolist()}

    document = {
        "algorithm": "mirror-descent",
        "features": {"dimension": dimension},
        "items": [{"id": f"item-{number}", "features": features()} for number in range(100)],
        "privacy": PRIVATE,
    }
    fill = feeding(lambda number: Ask(NAME, f"client-{number}"), 2_000)
    return ReleaseCase(f"mirror-descent, {dimension:,} features", document, fill)


def profiles(people: int) -> ReleaseCase:
    """Return a case of collaborative, whose release trains on profiles of ten items each."""
    items = [f"item-{number}" for number in range(1_000)]

    async def fill(services: DecisionServices, recommender: Recommender[Any]) -> None:
        rng = np.random.default_rng(0)
        kept = recommender.part(Profiles)
        for number in range(people):
            chosen = [items[place] for place in rng.choice(len(items), 10, replace=False)]
            await kept.keep(client=f"client-{number}", items=chosen, replace=True)

    document = {
        "algorithm": "collaborative",
        "items": items,
        "privacy": {"answers": "on-device", "feedback": PRIVATE["feedback"]},
    }
    return ReleaseCase(f"collaborative, {people:,} profiles, 1,000 items", document, fill)


def cases(*, quick: bool) -> list[ReleaseCase]:
    """Return what is measured."""
    some = [partition(1), partition(1_023), clusters(1_000), mirror(10_000)]
    more = [] if quick else [clusters(10_000), mirror(1_000_000)]
    trained = [profiles(1_000 if quick else 10_000)] if find_spec("implicit") else []
    return sorted(some + more + trained, key=lambda case: case.name.partition(",")[0])


async def measured(case: ReleaseCase) -> Found:
    """Teach a recommender, and time one release of it."""
    services = await open_simulation(store=MemoryStore(), noise=SystemNoise())
    try:
        await services.registry.put(NAME, read_document(case.document))
        recommender = await services.registry.find(NAME)
        await case.fill(services, recommender)
        began, cpu = time.perf_counter(), time.process_time()
        if not await services.releaser.release(recommender):
            raise SystemExit(f"{case.name}: nothing was released")
        return {
            "seconds": round(time.perf_counter() - began, 3),
            "cpu_seconds": round(time.process_time() - cpu, 3),
            "model_bytes": len(recommender.encode(recommender.current.model)),
        }
    finally:
        await services.close()


def releases(*, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure every case."""
    found = {}
    for case in cases(quick=quick):
        found[case.name] = asyncio.run(measured(case))
        say(f"{case.name}: {found[case.name]['seconds']} s")
    return found


def table(found: Found) -> list[str]:
    """Return the figures for a person to read."""
    lines = [f"{'one release':48}{'seconds':>9}{'CPU s':>9}{'model bytes':>13}"]
    lines += [
        f"  {name:46}{one['seconds']:9.2f}{one['cpu_seconds']:9.2f}{one['model_bytes']:13,}"
        for name, one in found.items()
    ]
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller ends")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args()
    found = releases(quick=chosen.quick, say=lambda text: None)
    print(json.dumps(found) if chosen.json else "\n".join(table(found)))


if __name__ == "__main__":
    main()
