"""Bytes in the store: a ledger, a cell, a pending decision, a vote.

Each is the growth of the store's memory over many of them, keys and all, divided by their number.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import redis

from discreet.privacy.charges import Charge, Limit
from discreet.state.redis_store import open_store
from discreet.state.stores import Store

MANY = 100_000
ARMS = (10, 100, 1_000)
_AT_ONCE = 2_000
_CELLS = 2_000
_STILL = 4_096
"""Bytes of difference that are no change any more."""


def footprint(url: str) -> dict[str, Any]:
    """Measure an empty store of one's own."""
    return asyncio.run(_measured(url))


async def _measured(url: str) -> dict[str, Any]:
    server = redis.from_url(url)
    store = open_store(url, namespace="footprint")
    await store.open()
    try:
        found: dict[str, Any] = {
            "ledger_bytes": await _each(server, MANY, lambda n: _ledger(store, n)),
            "cell_bytes": {str(arms): await _cells(server, store, arms) for arms in ARMS},
            "claim_bytes": await _each(server, MANY, lambda n: _claim(store, n)),
            "pending_decision_bytes": 0,
            "pending_decision_with_event_id_bytes": await _each(
                server, 20_000, lambda n: _event(store, n)
            ),
            "vote_bytes": await _votes(server, store),
        }
    finally:
        await store.close()
        server.close()
    return found


async def _each(server: "redis.Redis", count: int, make: Callable[[int], Awaitable[Any]]) -> float:
    before = await _used(server)
    for start in range(0, count, _AT_ONCE):
        await asyncio.gather(*(make(n) for n in range(start, min(start + _AT_ONCE, count))))
    return round((await _used(server) - before) / count, 1)


async def _cells(server: "redis.Redis", store: Store, arms: int) -> float:
    """Return the bytes of a cell alone: the claims of its first feedback are left to expire."""
    claims = _expiring(server)
    before = await _used(server)
    for start in range(0, _CELLS, _AT_ONCE):
        await asyncio.gather(*(_cell(store, n, arms) for n in range(start, start + _AT_ONCE)))
    for _ in range(50):
        if _expiring(server) <= claims:
            break
        await asyncio.sleep(0.2)
    return round((await _used(server) - before) / _CELLS, 1)


async def _used(server: "redis.Redis") -> int:
    """Return the memory of what is stored, once the server has put its tables in order.

    Buffers of connections and of the append-only file come and go with the last command's size, and
    a table that is growing exists twice until all is moved.
    """
    seen = -1
    for _ in range(30):
        told: Any = server.info("memory")
        buffers = told["mem_clients_normal"] + told["mem_aof_buffer"]
        last, seen = seen, int(told["used_memory"]) - int(buffers)
        if abs(seen - last) < _STILL:
            break
        await asyncio.sleep(0.5)
    return seen


def _expiring(server: "redis.Redis") -> int:
    """Return how many keys have a date on which they go."""
    databases: Any = server.info("keyspace")
    return sum(int(one["expires"]) for one in databases.values())


async def _ledger(store: Store, number: int) -> None:
    await store.spend(
        principal=_name(b"ledger", number),
        charge=Charge(nano_epsilon=10**9),
        limit=Limit(nano_epsilon=10**12),
    )


async def _cell(store: Store, number: int, arms: int) -> None:
    address = _name(b"cell%d" % arms, number)
    await store.learn(
        address=address,
        increments=((0, 1), (2 * arms - 1, 1), (2 * arms, 1)),
        claim=address + b"first",
        reward=1,
        claim_ttl=1,
    )
    await store.index_cell(index=b"cells%d" % arms, address=address, level=1)


async def _claim(store: Store, number: int) -> None:
    await store.learn(
        address=b"one cell of all.",
        increments=((0, 1),),
        claim=_name(b"claim", number)[:14],
        reward=1,
        claim_ttl=86_400,
    )


async def _event(store: Store, number: int) -> None:
    event = _name(b"event", number)
    await store.claim_event(event=event, fingerprint=event, ttl=86_400)
    await store.answer_event(event=event, answer=os.urandom(330), ttl=86_400)


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
