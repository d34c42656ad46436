"""The work of measuring the store: what answers and feedback ask of it, and what that uses."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from typing import Any

from store_servers import StoreServer, StoreUse, free_ports, running_server

from discreet.errors import DiscreetError
from discreet.privacy.charges import Charge
from discreet.state.redis_store import RedisStore, open_store
from discreet.state.stores import Debit, FeedbackRecord

BUSY = 8
"""Commands of one turn of a busy worker's event loop."""
_CHARGE = Charge(nano_epsilon=10**9, nano_rho=10**6)
_PURPOSE = b"films"

Entries = Mapping[bytes, Sequence[tuple[int, int]]]
Work = Callable[[RedisStore, Sequence[int]], Awaitable[Sequence[object]]]


def person(number: int) -> bytes:
    """Return a principal, as good as random, of the length that principals have."""
    return (number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128).to_bytes(16, "big")


def answers(people: int) -> Work:
    """Return the work of answers: a debit each, from so many people in turn."""

    def work(store: RedisStore, some: Sequence[int]) -> Awaitable[Sequence[object]]:
        return store.spend(
            [Debit(person(number % people), _CHARGE, purpose=_PURPOSE) for number in some]
        )

    return work


def feedback(
    people: int,
    *,
    items: int = 20,
    recommenders: int = 1,
    name: bytes = b"recommender",
    entries: Callable[[int], Entries] | None = None,
) -> Work:
    """Return the work of feedback: two sums of one item of a cell, or the `entries` given."""

    def added(number: int) -> Entries:
        if entries is not None:
            return entries(number)
        slot = number * 7_919 % items
        return {b"a cell": ((2 * slot, 1 << 19), (2 * slot + 1, 1 << 19))}

    def work(store: RedisStore, some: Sequence[int]) -> Awaitable[Sequence[object]]:
        return store.learn(
            [
                FeedbackRecord(
                    principal=person(number % people),
                    generation=b"%b %d" % (name, number % recommenders),
                    claim=number.to_bytes(14, "little"),
                    reward=1,
                    claim_ttl=86_400,
                    increments=added(number),
                    charge=_CHARGE,
                    purpose=_PURPOSE,
                )
                for number in some
            ]
        )

    return work


def linear_entries(dimensions: int, items: int) -> Callable[[int], dict[bytes, Any]]:
    """Return what feedback adds in a contextual recommender with many numbers in its context."""
    own = [(2 * place, 1_000 + place) for place in range(dimensions + 1)]
    shared = [(place, place - 900) for place in range(dimensions * (dimensions + 1) // 2)]
    return lambda number: {b"i%d" % (number % items): own, b"g": shared}


@contextmanager
def alone(**options: str) -> Iterator[StoreServer]:
    """Run one server in a folder that goes with it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(Path(folder) / "one", free_ports(1)[0], **options) as server,
    ):
        yield server


async def do(store: RedisStore, work: Work, numbers: Iterable[int], together: int) -> None:
    """Do so much work, so many at a time."""
    left = iter(numbers)
    while some := list(islice(left, together)):
        for one in await work(store, some):
            if isinstance(one, DiscreetError):
                raise one


async def cost(
    servers: Sequence[StoreServer],
    store: RedisStore,
    work: Work,
    numbers: "count[int]",
    *,
    many: int,
    together: int = BUSY,
) -> list[StoreUse]:
    """Return what each server used for so many operations, after a few that do not count."""
    await do(store, work, islice(numbers, many // 10), together)
    before = [server.used() for server in servers]
    await do(store, work, islice(numbers, many), together)
    return [server.used() - old for server, old in zip(servers, before, strict=True)]


def each(use: StoreUse, many: int) -> dict[str, Any]:
    """Return the use of one operation."""
    return {
        "cpu_us": round(use.cpu / many * 1e6, 2),
        "received_bytes": round(use.received / many),
        "sent_bytes": round(use.sent / many),
        "log_bytes": round(use.logged / many),
    }


@contextmanager
def opened(loop: asyncio.Runner, url: str) -> Iterator[RedisStore]:
    """Open a store in a loop."""
    store = open_store(url, timeout=60)
    loop.run(store.open())
    try:
        yield store
    finally:
        loop.run(store.close())
