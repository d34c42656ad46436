"""Releases of large models, and of many recommenders, over a real store: time, CPU, memory, age.

What has gathered is as much as can: every shard has every item's sums.
"""

import asyncio
import re
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stage import PRIVATE

from discreet.decisions.services import open_simulation
from discreet.families.contextual.spaces import item_block
from discreet.families.contract import Recommender
from discreet.families.registration import read_document
from discreet.privacy.noise import SystemNoise
from discreet.state.embedded import EmbeddedStore
from discreet.state.redis_store import open_store
from discreet.state.stores import SHARDS, FeedbackRecord, Store

Found = dict[str, Any]
Say = Callable[[str], None]


def one_release(*, items: int, dimensions: int, say: Say) -> Found:
    """Measure one release of a contextual recommender, and what loading it takes a worker."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedStore(folder) as url:
        found = asyncio.run(_one(url, items, dimensions))
    say(f"a release of {items:,} items in {dimensions} dimensions")
    return {f"contextual, {items:,} items, {dimensions} dimensions": found}


def many_recommenders(count: int, *, say: Say) -> Found:
    """Measure one release of each of many recommenders, one after the other in one worker."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedStore(folder) as url:
        found = asyncio.run(_many(url, count))
    say(f"releases of {count} recommenders")
    return {f"contextual, 20 items, 8 dimensions, {count} recommenders": found}


def _document(items: int, dimensions: int) -> dict[str, Any]:
    return {
        "algorithm": "contextual",
        "items": [f"item-{number}" for number in range(items)],
        "context": {"dimensions": dimensions},
        "privacy": PRIVATE,
    }


async def _one(url: str, items: int, dimensions: int) -> Found:
    services = await open_simulation(store=open_store(url, timeout=60), noise=SystemNoise())
    try:
        await services.registry.put("large", read_document(_document(items, dimensions)))
        recommender = await services.registry.find("large")
        await _fill(services.store, recommender, items)
        resident = _peak(reset=True)
        began, cpu = time.perf_counter(), time.process_time()
        if not await services.releaser.release(recommender):
            raise SystemExit("nothing was released")
        found = {
            "seconds": round(time.perf_counter() - began, 2),
            "cpu_seconds": round(time.process_time() - cpu, 2),
            "memory_mib": round((_peak() - resident) / 2**20),
            "model_bytes": len(recommender.encode(recommender.current.model)),
        }
        cpu = time.process_time()
        await asyncio.to_thread(recommender.decode, recommender.encode(recommender.current.model))
        found["load_cpu_seconds"] = round(time.process_time() - cpu, 2)
        return found
    finally:
        await services.close()


async def _fill(store: Store, recommender: Recommender[Any], items: int) -> None:
    """Let every shard have the sums of every item, and the shared ones."""
    space: Any = getattr(recommender, "space")  # noqa: B009  of this family alone
    for shard in range(SHARDS):
        await store.learn(
            [
                FeedbackRecord(
                    principal=bytes([shard]) + b"person",
                    generation=recommender.generation,
                    claim=(shard * items + item).to_bytes(14, "little"),
                    reward=1,
                    claim_ttl=600,
                    increments={
                        item_block(space, item): [(2 * space.kept - 1, 1)],
                        space.blocks[1]: [(max(space.products, 1) - 1, 1)],
                    },
                )
                for item in range(items)
            ]
        )


async def _many(url: str, count: int) -> Found:
    services = await open_simulation(store=open_store(url, timeout=60), noise=SystemNoise())
    try:
        for number in range(count):
            await services.registry.put(f"r{number}", read_document(_document(20, 8)))
        found = [await services.registry.find(f"r{number}") for number in range(count)]
        for one in found:
            await _fill(services.store, one, 20)
        began, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(services.releaser.release(one) for one in found))
        seconds = time.perf_counter() - began
        return {
            "seconds": round(seconds, 2),
            "cpu_seconds": round(time.process_time() - cpu, 2),
            "seconds_each": round(seconds / count, 4),
        }
    finally:
        await services.close()


def _peak(*, reset: bool = False) -> int:
    """Return the most memory that this process has had, since the last reset where there is one."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
    return int(found[1]) * 1024 if found else 0
