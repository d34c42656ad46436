"""Bytes in the store: a ledger, a claim, a block of sums, a released model, an event, a vote.

Each is the growth of the store's memory over many of them, keys and all, divided by their number.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np
import redis

from discreet.errors import DiscreetError
from discreet.families.p_dap import learning
from discreet.families.p_dap.statistics import CellStatistics
from discreet.privacy.charges import Charge
from discreet.privacy.noise import SystemNoise
from discreet.state.keys import StoreKeys
from discreet.state.redis_store import open_store
from discreet.state.stores import NO_CHARGE, Account, Debit, FeedbackRecord, Store

MANY = 100_000
ARMS = (10, 100, 1_000)
MODELS = ((1, 20), (learning.MOST_CELLS - 1, 20), (learning.MOST_CELLS - 1, 200))
"""Cells and items of the models that are weighed."""
EVENTS = 20_000
_AT_ONCE = 2_000
_BLOCKS = 2_000
_STILL = 4_096
"""Bytes of difference that are no change any more."""
_CHARGE = Charge(nano_epsilon=10**9, nano_rho=10**6)
_GENERATION = b"footprint"
_NAMESPACE = "footprint"

Make = Callable[[Sequence[int]], Awaitable[Sequence[object]]]


def footprint(url: str) -> dict[str, Any]:
    """Measure an empty store of one's own."""
    return asyncio.run(_measured(url))


async def _measured(url: str) -> dict[str, Any]:
    server = redis.from_url(url)
    store = open_store(url, namespace=_NAMESPACE)
    await store.open()
    try:
        return {
            "ledger_bytes": await _each(server, MANY, lambda some: _ledgers(store, some)),
            **await _feedback(server, store),
            "sums_bytes": {str(arms): await _blocks(server, store, arms) for arms in ARMS},
            "model_bytes": {
                f"{cells} x {items}": await _model(server, store, cells, items)
                for cells, items in MODELS
            },
            "pending_decision_bytes": 0,
            "pending_decision_with_event_id_bytes": await _each(
                server, EVENTS, lambda some: _events(store, some)
            ),
            "vote_bytes": await _votes(server, store),
        }
    finally:
        await store.close()
        server.close()


async def _each(server: "redis.Redis", count: int, make: Make) -> float:
    before = await _used(server)
    for start in range(0, count, _AT_ONCE):
        for one in await make(range(start, min(start + _AT_ONCE, count))):
            if isinstance(one, DiscreetError):
                raise one
    return round((await _used(server) - before) / count, 1)


async def _used(server: "redis.Redis") -> int:
    """Return the memory of what is stored, once the server has put its tables in order.

    Buffers of connections and of the append-only file come and go with the last command's size, and
    a table that is growing exists twice until all is moved.
    """
    seen = -1
    for _ in range(30):
        memory: Any = server.info("memory")
        buffers = memory["mem_clients_normal"] + memory["mem_aof_buffer"]
        last, seen = seen, int(memory["used_memory"]) - int(buffers)
        if abs(seen - last) < _STILL:
            break
        await asyncio.sleep(0.5)
    return seen


def _expiring(server: "redis.Redis") -> int:
    """Return how many keys have a date on which they go."""
    databases: Any = server.info("keyspace")
    return sum(int(one["expires"]) for one in databases.values())


def _ledgers(store: Store, some: Sequence[int]) -> Awaitable[Sequence[object]]:
    """Debit both accounts of these clients."""
    return store.spend(
        [
            Debit(_name(b"client", number), _CHARGE, account=account)
            for number in some
            for account in Account
        ]
    )


async def _feedback(server: "redis.Redis", store: Store) -> dict[str, float]:
    """Weigh one piece of feedback of every client: until it is released, and until it expires."""

    def learn(some: Sequence[int]) -> Awaitable[Sequence[object]]:
        return store.learn(
            [
                _record(_name(b"client", number), number, b"a cell", 20, charge=_CHARGE)
                for number in some
            ]
        )

    before = await _used(server)
    gathered = await _each(server, MANY, learn)
    await store.freeze(generation=_GENERATION, number=1)
    await store.discard(generation=_GENERATION, number=1)
    claims = round((await _used(server) - before) / MANY, 1)
    return {"claim_bytes": claims, "unreleased_feedback_bytes": round(gathered - claims, 1)}


async def _blocks(server: "redis.Redis", store: Store, arms: int) -> float:
    """Weigh a block of sums alone: the claims of its first feedback are left to expire."""
    claims = _expiring(server)

    def learn(some: Sequence[int]) -> Awaitable[Sequence[object]]:
        return store.learn(
            [
                _record(b"somebody", arms * MANY + number, b"%d" % number, 2 * arms, claim_ttl=1)
                for number in some
            ]
        )

    before = await _used(server)
    await _each(server, _BLOCKS, learn)
    for _ in range(50):
        if _expiring(server) <= claims:
            break
        await asyncio.sleep(0.2)
    held = round((await _used(server) - before) / _BLOCKS, 1)
    await store.erase_sums(generation=_GENERATION)
    return held


def _record(
    principal: bytes,
    number: int,
    block: bytes,
    fields: int,
    *,
    charge: Charge = NO_CHARGE,
    claim_ttl: int = 86_400,
) -> FeedbackRecord:
    return FeedbackRecord(
        principal=principal,
        generation=_GENERATION,
        claim=number.to_bytes(14, "little"),  # as long as a decision's id and a position
        reward=1,
        claim_ttl=claim_ttl,
        increments={block: ((0, 1), (fields - 1, 1))},
        charge=charge,
    )


async def _model(server: "redis.Redis", store: Store, cells: int, items: int) -> int:
    """Weigh a model of p-dap whose sums have noise in every entry."""
    statistics = CellStatistics.blank(segments=2, slots=items)
    while len(statistics.tree) < cells:
        statistics = statistics.divided(dimensions=2, base=0.0, growth=1.0, most_cells=cells)
    live = np.arange(items, dtype=np.intp)
    statistics = statistics.grown({}, live=live, deviation=6.0, noise=SystemNoise())
    guests = CellStatistics.blank(segments=2, slots=items)
    name = b"model%d-%d" % (cells, items)
    await store.save(key=name, content=learning.encode(statistics, guests))
    return int(server.memory_usage(StoreKeys(_NAMESPACE).blob(name), samples=0) or 0)


async def _events(store: Store, some: Sequence[int]) -> Sequence[object]:
    names = [_name(b"event", number) for number in some]
    await asyncio.gather(
        *(store.claim_event(event=one, fingerprint=one, ttl=86_400) for one in names)
    )
    return await asyncio.gather(
        *(store.answer_event(event=one, answer=os.urandom(330), ttl=86_400) for one in names)
    )


async def _votes(server: "redis.Redis", store: Store) -> dict[str, float]:
    voters: Sequence[bytes] = [_name(b"voter", number) for number in range(MANY)]
    before = await _used(server)
    for start in range(0, MANY, 10_000):
        await store.enrol(roster=b"voters", names=voters[start : start + 10_000])
    enrolled = await _used(server)
    for start in range(0, MANY, 10_000):
        writes = [(number, b"\1") for number in range(start, start + 10_000)]
        await store.write_page(page=b"a round's votes", writes=writes)
    return {
        "voter": round((enrolled - before) / MANY, 1),
        "vote": round((await _used(server) - enrolled) / MANY, 2),
    }


def _name(kind: bytes, number: int) -> bytes:
    return (kind + number.to_bytes(8, "little")).rjust(16, b"\0")[-16:]
