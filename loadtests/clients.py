"""What our own client of the store saves, beside redis-py and coredis in the same run.

    python loadtests/clients.py              a table, in about three minutes
    python loadtests/clients.py --quick      a look, in half a minute
    python loadtests/clients.py --json       one JSON object and nothing else

The same `RedisStore` runs on each client, on one embedded Valkey over a unix socket, with every
write synced to disk before it is acknowledged and with a sync every second. A turn is a stretch of
the same work with each client, one right after the other; ratios are taken within a turn, where the
machine's noise falls on all alike, and the median of the turns counts. CPU is that of this process,
the store's work included (making commands and reading replies), the server's not.
"""

import argparse
import gc
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, NamedTuple

import redis
import uvloop
from stage import OUR_CLIENT
from store_clients import CLIENTS, installed

from discreet.privacy.charges import Charge, Limit
from discreet.state.embedded import EmbeddedStore
from discreet.state.keys import StoreKeys
from discreet.state.redis_store import RedisStore, open_store
from discreet.state.stores import Debit, FeedbackRecord, Store

FSYNC = ("always", "everysec")
PEOPLE = 10_000
CHARGE = Charge(nano_epsilon=1_000, nano_rho=10, pico_delta=0)
GENERATION = b"benchmark"

Work = Callable[[Store, Iterator[int]], Awaitable[Sequence[object]]]


class Stretch(NamedTuple):
    """One client's part of a turn."""

    cpu_us: float
    commands_per_second: float


def spending(size: int) -> Work:
    """Return the work of one turn of the event loop: so many debits."""

    def work(store: Store, numbers: Iterator[int]) -> Awaitable[Sequence[object]]:
        some = itertools.islice(numbers, size)
        return store.spend([Debit(_person(number), CHARGE, Limit()) for number in some])

    return work


def learning(size: int) -> Work:
    """Return the work of one turn of the event loop: so many records of five increments."""

    def work(store: Store, numbers: Iterator[int]) -> Awaitable[Sequence[object]]:
        return store.learn([_record(number) for number in itertools.islice(numbers, size)])

    return work


def _person(number: int) -> bytes:
    return (number * 2_654_435_761 % 2**32 % PEOPLE).to_bytes(4, "little") * 4


def _record(number: int) -> FeedbackRecord:
    increments = [(field, number % 7 + field) for field in range(5)]
    return FeedbackRecord(
        principal=_person(number),
        generation=GENERATION,
        claim=number.to_bytes(16, "big"),
        reward=1,
        claim_ttl=60,
        increments={b"block %d" % (number % 50): increments},
        charge=CHARGE,
    )


WORKS = {
    "spend of 1": (spending(1), 1),
    "spend of 16": (spending(16), 16),
    "learn of 1": (learning(1), 1),
    "learn of 16": (learning(16), 16),
}


async def stretch(
    store: Store, work: Work, size: int, numbers: Iterator[int], seconds: float
) -> Stretch:
    """Do the work over and over, each time waiting for the answers."""
    gc.collect()
    count, began, cpu = 0, time.perf_counter(), time.process_time()
    # At least once, however long ago the clock was read.
    while (lasted := time.perf_counter() - began) < seconds or not count:
        for answer in await work(store, numbers):
            if isinstance(answer, Exception):
                raise answer
        count += size
    return Stretch((time.process_time() - cpu) / count * 1e6, count / lasted)


async def measured(url: str, seconds: float, turns: int) -> dict[str, Any]:
    """Return the figures of every client by fsync and work."""
    stores = {OUR_CLIENT: open_store(url)}
    stores |= {name: RedisStore(CLIENTS[name](url), StoreKeys()) for name in installed()}
    numbers = itertools.count()
    found: dict[str, Any] = {}
    for store in stores.values():
        await store.open()
    with redis.Redis.from_url(url) as server:
        for fsync in FSYNC:
            server.config_set("appendfsync", fsync)
            found[fsync] = {}
            for name, (work, size) in WORKS.items():
                print(f"  {name}, appendfsync {fsync}", file=sys.stderr, flush=True)
                for store in stores.values():
                    await stretch(store, work, size, numbers, seconds / 5)
                samples: dict[str, list[Stretch]] = {client: [] for client in stores}
                for turn in range(turns):
                    # Turned round every time, so that nobody is always the first or the last.
                    for client in [*stores][:: -1 if turn % 2 else 1]:
                        taken = await stretch(stores[client], work, size, numbers, seconds)
                        samples[client].append(taken)
                found[fsync][name] = {client: _figures(samples, client) for client in stores}
    for store in stores.values():
        await store.close()
    return found


def _figures(samples: dict[str, list[Stretch]], client: str) -> dict[str, float]:
    pairs = list(zip(samples[client], samples[OUR_CLIENT], strict=True))

    def median(values: Iterator[float]) -> float:
        return round(statistics.median(values), 2)

    return {
        "cpu_us_per_command": median(one.cpu_us for one in samples[client]),
        "commands_per_second": round(
            statistics.median(one.commands_per_second for one in samples[client])
        ),
        "cpu_ratio_to_ours": median(one.cpu_us / ours.cpu_us for one, ours in pairs),
        "speed_ratio_to_ours": median(
            one.commands_per_second / ours.commands_per_second for one, ours in pairs
        ),
    }


def table(found: dict[str, Any]) -> str:
    """Return the figures for a person to read."""
    lines = [f"{'':28}{'CPU us a command':>18}{'commands/s':>14}{'CPU':>8}{'speed':>8}  (to ours)"]
    for fsync, works in found.items():
        for name, clients in works.items():
            lines.append(f"{name}, appendfsync {fsync}")
            lines += [
                f"  {client:26}{one['cpu_us_per_command']:18.1f}{one['commands_per_second']:14,}"
                f"{one['cpu_ratio_to_ours']:7.2f}x{one['speed_ratio_to_ours']:7.2f}x"
                for client, one in clients.items()
            ]
    return "\n".join(lines)


FULL, QUICK = (0.6, 5), (0.2, 2)
"""Seconds of a stretch, and turns."""


def on_own_store(seconds: float, turns: int) -> dict[str, Any]:
    """Measure on a store that nothing else uses."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedStore(folder) as url:
        return uvloop.run(measured(url, seconds, turns))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="short stretches, few turns")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args()
    found = on_own_store(*(QUICK if chosen.quick else FULL))
    print(json.dumps(found, indent=2) if chosen.json else table(found))


if __name__ == "__main__":
    main()
