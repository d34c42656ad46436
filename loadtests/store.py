"""What the store carries: CPU, bytes and memory of an answer and a feedback, one server or many.

    python loadtests/store.py [--quick] [--json]

The shipped `RedisStore` sends what an answer (a debit) and a feedback (claimed, charged and added)
send, to Valkeys of its own. CPU is the server's, from its own books: of two runs on a busy machine
it says the same, which requests a second do not. Sizes that would not fit are computed, and say so.
"""

import argparse
import asyncio
import json
import logging
import math
import sys
import tempfile
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path
from typing import Any

from store_releases import many_recommenders, one_release
from store_servers import StoreServer, cluster_url, running_cluster
from store_sizing import sizing
from store_sizing import table as sizing_table
from store_work import BUSY, Work, alone, answers, cost, do, each, feedback, linear_entries, opened

from discreet.state.keys import StoreKeys
from discreet.state.redis_store import RedisStore, open_store
from discreet.state.slots import SHARD_TAGS

FSYNC = ("always", "everysec", "no")
TOGETHER = (1, BUSY, 64)
"""Commands of one turn of a worker's event loop: an idle one, a busy one, a batch."""
MASTERS = (1, 3, 6)
LEDGERS = (1_000, 100_000, 1_000_000, 10_000_000)
RECOMMENDERS = (1, 30, 1_000)
ITEMS = (10, 1_000, 100_000)
WORKERS = (1, 8, 64)
MANY = (6_000, 1_500)
"""Operations of each, and of a short run."""
RELEASED = ((1_000, 100), (50, 5))
"""Items of a large model, and recommenders that are released together; and of a short run."""
SIZED = 4_000
"""People whose day is compared with what was predicted."""
MOST_MEMORY = 4 * 2**30
TICKS_PER_SECOND = 4
WORKER_US = 100.0
"""CPU of a worker for an answer, where it was not measured in the same run."""
_GIB = 2**30

Found = dict[str, Any]
Say = Callable[[str], None]


def operations(loop: asyncio.Runner, many: int, say: Say) -> Found:
    """Measure an answer and a feedback, by fsync and by how many come together."""
    found: Found = {}
    works = {
        "answer": answers(20_000),
        "feedback": feedback(20_000),
        "feedback, 64 dimensions": feedback(20_000, entries=linear_entries(64, 20)),
    }
    for fsync in FSYNC:
        with alone(appendfsync=fsync) as server, opened(loop, server.url) as store:
            numbers = count()
            for name, work in works.items():
                wide = name.endswith("dimensions")
                for together in (BUSY,) if wide else TOGETHER:
                    some = max(200, many // 50) if wide else many
                    # A write that is alone waits for its own fsync.
                    some = some if together > 1 else max(200, many // 10)
                    (use,) = loop.run(
                        cost([server], store, work, numbers, many=some, together=together)
                    )
                    found.setdefault(name, {}).setdefault(fsync, {})[str(together)] = each(
                        use, some
                    )
            say(f"operations, fsync {fsync}")
    return found


def clusters(loop: asyncio.Runner, many: int, say: Say) -> Found:
    """Measure one popular recommender on one master, and on several: how they share the work."""
    found: Found = {}
    for masters in MASTERS:
        with (
            tempfile.TemporaryDirectory() as folder,
            running_cluster(Path(folder), masters, appendfsync="everysec") as servers,
            opened(loop, cluster_url(servers)) as store,
        ):
            shares: Found = {}
            numbers = count()
            for name, work in (("answer", answers(20_000)), ("feedback", feedback(20_000))):
                used = loop.run(cost(servers, store, work, numbers, many=many, together=64))
                cpu = [one.cpu for one in used]
                shares[name] = {
                    "cpu_us": round(sum(cpu) / many * 1e6, 2),
                    "busiest_cpu_us": round(max(cpu) / many * 1e6, 2),
                    "busiest_share": round(max(cpu) / sum(cpu), 3),
                }
            found[str(masters)] = shares
        say(f"{masters} masters")
    first = found[str(MASTERS[0])]
    for shares in found.values():
        for name, one in shares.items():
            one["carries"] = round(first[name]["busiest_cpu_us"] / one["busiest_cpu_us"], 2)
    return found


FILL = """
for number = tonumber(ARGV[1]), tonumber(ARGV[2]) do
    local principal = struct.pack('>BI8', number % 256, number) .. '\\0\\0\\0\\0\\0\\0\\0'
    redis.call('HSET', KEYS[number % 64 + 1] .. 'l' .. principal, 'l', ARGV[3], ARGV[4], ARGV[5])
end
"""
"""Makes ledgers of the shape that debits make, without the time that so many debits would take."""


def ledgers(loop: asyncio.Runner, many: int, most: int, say: Say) -> Found:
    """Measure an answer among more and more ledgers, and how many fit."""
    found: Found = {"measured": {}, "bytes": 0.0, "debited_bytes": 0.0}
    shards = [StoreKeys().fence(shard)[:-1] for shard in range(len(SHARD_TAGS))]
    with alone(appendonly="no") as server, opened(loop, server.url) as store:
        empty = server.memory()
        loop.run(do(store, answers(many), range(many), 64))
        found["debited_bytes"] = round((server.memory() - empty) / many, 1)
        (name,) = [key for key in server.do("KEYS", "*l*") if len(key) > 25][:1]
        held: dict[bytes, bytes] = server.do("HGETALL", name)
        (day,) = (field for field in held if field != b"l")
        script = server.do("SCRIPT", "LOAD", FILL)
        made = many
        numbers = count()
        for size in LEDGERS:
            projected = empty + size * found["debited_bytes"] * 1.15
            if size > most or projected > MOST_MEMORY:
                continue
            while made < size:
                end = min(size, made + 20_000)
                server.do(
                    "EVALSHA", script, len(shards), *shards,
                    made + 1, end, held[b"l"], day, held[day],
                )  # fmt: skip
                made = end
            (use,) = loop.run(cost([server], store, answers(min(many, size)), numbers, many=many))
            found["measured"][str(size)] = round(use.cpu / many * 1e6, 2)
            found["bytes"] = round((server.memory() - empty) / max(size, many), 1)
            say(f"{size:,} ledgers")
    found["per_gib"] = int(_GIB / found["bytes"])
    found["computed_gib"] = {
        str(size): round(size * found["bytes"] / _GIB, 2)
        for size in LEDGERS
        if str(size) not in found["measured"]
    }
    return found


def flat(loop: asyncio.Runner, many: int, say: Say) -> Found:
    """Measure feedback for more and more recommenders, items and workers."""
    found: Found = {"recommenders": {}, "items": {}, "workers": {}}
    with alone(appendfsync="everysec") as server, opened(loop, server.url) as store:
        numbers = count()

        def measured(work: Work, together: int = BUSY) -> float:
            (use,) = loop.run(cost([server], store, work, numbers, many=many, together=together))
            return round(use.cpu / many * 1e6, 2)

        for size in RECOMMENDERS:
            found["recommenders"][str(size)] = measured(feedback(20_000, recommenders=size))
        for size in ITEMS:
            # The first feedback of a shard makes room for all items: that is done before.
            name = b"%d items" % size
            last = {b"a cell": ((2 * size - 1, 1),)}
            first = feedback(2_000, name=name, entries=lambda _, last=last: last)
            loop.run(do(store, first, islice(numbers, 2_000), BUSY))
            found["items"][str(size)] = measured(feedback(20_000, items=size, name=name))
        say("recommenders, items")
        found["poll_cpu_us"] = poll_cost(loop, server, store, many)
    with alone(appendfsync="everysec") as server:
        for workers in WORKERS:
            found["workers"][str(workers)] = loop.run(by_workers(server, workers, many))
        say("workers")
    return found


def poll_cost(loop: asyncio.Runner, server: StoreServer, store: RedisStore, many: int) -> float:
    """Return the CPU of asking whether there is a newer model of a recommender."""
    keys = [b"model of %d" % number for number in range(64)]

    async def ask(rounds: int) -> None:
        for key in keys:
            await store.save(key=key, content=bytes(1_000))
        for _ in range(rounds):
            await store.versions(keys=keys)

    loop.run(ask(10))
    before = server.used()
    rounds = max(20, many // 64)
    loop.run(ask(rounds))
    return round((server.used() - before).cpu / (rounds * len(keys)) * 1e6, 2)


async def by_workers(server: StoreServer, workers: int, many: int) -> float:
    """Return the CPU of an answer if so many workers, with a connection each, ask at once."""
    stores = [open_store(server.url, timeout=60) for _ in range(workers)]
    for store in stores:
        await store.open()
    try:
        work = answers(20_000)
        numbers = count()

        async def all_of(share: int) -> None:
            parts = [list(islice(numbers, share)) for _ in stores]
            await asyncio.gather(
                *(do(one, work, part, BUSY) for one, part in zip(stores, parts, strict=True))
            )

        share = max(BUSY, many // workers)
        await all_of(max(BUSY, share // 10))
        before = server.used()
        await all_of(share)
        return round((server.used() - before).cpu / (share * workers) * 1e6, 2)
    finally:
        for store in stores:
            await store.close()


def measured(*, quick: bool, say: Say, worker_us: float = WORKER_US) -> Found:
    """Measure everything; `worker_us` is the CPU of a worker for an answer."""
    many = MANY[quick]
    logging.getLogger("discreet").setLevel(logging.ERROR)  # that a store does not sync is meant
    with asyncio.Runner() as loop:
        found: Found = {
            "operations": operations(loop, many, say),
            "clusters": clusters(loop, 4 * many, say),
            "ledgers": ledgers(loop, many, LEDGERS[1 if quick else -1], say),
            **flat(loop, many, say),
            "sizing": sizing(loop, people=SIZED),
        }
    items, recommenders = RELEASED[quick]
    found["releases"] = {
        **one_release(items=items, dimensions=64, say=say),
        **many_recommenders(recommenders, say=say),
    }
    found["contention"] = contention(found, worker_us)
    return found


def contention(found: Found, worker_us: float = WORKER_US) -> Found:
    """Compute how much of one master so many busy workers use, from what was measured.

    A worker that is busy all the time answers 1 / c_w requests a second, for each of which the
    store needs c_s, and asks about up to 64 recommenders four times a second, c_p each. So w
    workers use w (c_s / c_w + 256 c_p) of it; c_s is that of commands which come together, as they
    do where there are many. At a share rho a command waits for rho / (2 (1 - rho)) others (M/D/1).
    """
    answer = found["operations"]["answer"]["always"]["64"]["cpu_us"]
    polls = 64 * TICKS_PER_SECOND * found["poll_cpu_us"] / 1e6
    by_count = {}
    for workers in WORKERS:
        share = workers * (answer / worker_us + polls)
        by_count[str(workers)] = {
            "share_of_one_master": round(share, 3),
            "masters_at_half_load": math.ceil(2 * share),
            "waits_for_commands": round(share / (2 * (1 - share)), 2) if share < 1 else None,
        }
    return {"worker_cpu_us": worker_us, "store_cpu_us": answer, "workers": by_count}


def table(found: Found) -> list[str]:
    """Return the figures for a person to read."""
    lines = ["the store: CPU us, bytes received, sent and logged, by fsync and commands together"]
    for name, by_fsync in found["operations"].items():
        for fsync, by_size in by_fsync.items():
            cells = "  ".join(
                f"{size}: {one['cpu_us']:.1f} us, {one['received_bytes']}, {one['sent_bytes']}, "
                f"{one['log_bytes']}"
                for size, one in by_size.items()
            )
            lines.append(f"  {name:24}{fsync:10}{cells}")
    for masters, shares in found["clusters"].items():
        cells = "  ".join(
            f"{name}: busiest {one['busiest_share']:.0%}, carries {one['carries']:.2f}"
            for name, one in shares.items()
        )
        lines.append(f"  {masters} masters, one recommender   {cells}")
    one = found["ledgers"]
    lines.append(f"  ledgers: {one['bytes']} bytes each, {one['per_gib']:,} in a GiB")
    for title, series in (
        ("ledgers", one["measured"]),
        ("recommenders", found["recommenders"]),
        ("items", found["items"]),
        ("workers", found["workers"]),
    ):
        cells = "  ".join(f"{int(size):,}: {cpu:.1f} us" for size, cpu in series.items())
        lines.append(f"  by {title:14}{cells}")
    for name, row in found["releases"].items():
        cells = ", ".join(f"{what} {value:,}" for what, value in row.items())
        lines.append(f"  {name}: {cells}")
    lines += [f"  {line}" for line in sizing_table(found["sizing"])]
    for workers, row in found["contention"]["workers"].items():
        lines.append(
            f"  {workers} busy workers (computed): {row['share_of_one_master']:.0%} of one master; "
            f"{row['masters_at_half_load']} masters at half load"
        )
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer of each; smaller ends")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args()
    found = measured(
        quick=chosen.quick, say=lambda text: print(f"  {text}", file=sys.stderr, flush=True)
    )
    print(json.dumps(found) if chosen.json else "\n".join(table(found)))


if __name__ == "__main__":
    main()
