"""`discreet size`: what a deployment needs, by a formula whose figures are measured.

`python loadtests/store.py` measures them, and prints what this predicts beside what a run used.
"""

import argparse
import json
import math
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from discreet.errors import InvalidArgument
from discreet.state.stores import SHARDS

EXAMPLES = """\
examples:
  discreet size --requests 500 --people 1000000 --items 1000
  discreet size --requests 500 --people 1000000 --items 1000 --feedback 0.05 --peak 5 --json

Rates are averages of a day; --peak says how much more comes in its busiest hour, for which workers
and masters are counted, so that they are half busy then. CPU differs from machine to machine:
`make bench` measures it on yours, and --answer-us and --feedback-us take what it found.
"""

BUSY = 0.5
"""How busy workers and masters may be in the busiest hour."""
ANSWER_US, FEEDBACK_US = 80.0, 65.0
"""CPU of a worker for a request, in microseconds."""
STORE_ANSWER_US, STORE_FEEDBACK_US = 20.0, 60.0
"""CPU of the store, with commands that come together and a sync for each group."""
FIELD_US = 0.25
"""CPU of the store for each number that feedback adds to."""
ANSWER_LOG, FEEDBACK_LOG, FIELD_LOG = 190, 600, 8.5
"""Bytes in the append-only file."""
ANSWER_WIRE, FEEDBACK_WIRE, FIELD_WIRE = 150, 600, 4.5
"""Bytes between a worker and the store, both ways."""
LEDGER, LEDGER_OF_FEEDBACK, LEDGER_DAY = 121, 24, 42
"""Bytes of a ledger, those of its second account, and of a day on which an account was used."""
KEPT_DAYS = 35
CLAIM, COUNTED_CLIENT = 119, 39
"""Bytes of feedback until its decision expires, and of its client until the next release."""
BLOCK = 110
"""Bytes of a block of sums beside its numbers."""
WORKER, PROCESS = 55_000_000, 73_000_000
"""Bytes of each worker, and of what they share."""
LOG_TIMES = 4
"""The append-only file grows to twice the memory, and is copied when it is rewritten."""
_CELLS = {1: 18, 2: 40, 3: 72}
"""Numbers that a contextual recommender keeps in each of an item's sums, by few dimensions."""


@dataclass(frozen=True)
class Load:
    """What is asked of a deployment: averages of a day, and how much more its peak is."""

    requests: float
    people: int
    items: int
    feedback: float = 0.2
    dimensions: int = 8
    peak: float = 3.0
    ttl: int = 86_400
    release_seconds: float = 3_600.0
    days: int = KEPT_DAYS
    answer_us: float = ANSWER_US
    feedback_us: float = FEEDBACK_US

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            least = 1 if name in ("people", "items", "dimensions", "peak", "ttl", "days") else 0
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= least):
                raise InvalidArgument("--" + name.replace("_", "-"), f"must be at least {least}")


@dataclass(frozen=True)
class Needs:
    """What a deployment needs; bytes, and shares of one core."""

    workers: int
    worker_bytes: int
    worker_cpu: float
    store_cpu: float
    masters: int
    ledger_bytes: int
    claim_bytes: int
    sums_bytes: int
    model_bytes: int
    store_bytes: int
    disk_bytes: int
    log_bytes_per_second: float
    network_bytes_per_second: float


def needs(load: Load) -> Needs:
    """Return what such a load of a contextual recommender needs."""
    feedback = load.requests * load.feedback
    top, kept, added = load.peak * load.requests, numbers_kept(load), numbers_added(load)
    worker_cpu = top * (load.answer_us + load.feedback * load.feedback_us) / 1e6
    of_feedback = STORE_FEEDBACK_US + FIELD_US * added
    store_cpu = top * (STORE_ANSWER_US + load.feedback * of_feedback) / 1e6
    ledgers = load.people * ledger_bytes(load)
    counted = min(load.people, feedback * load.release_seconds)
    claims = feedback * load.ttl * CLAIM + counted * COUNTED_CLIENT
    # No more blocks than feedback between two releases, and no more than all items on all shards.
    blocks = min(SHARDS * load.items, feedback * load.release_seconds)
    shared = SHARDS * 8 * _products(load)
    sums = blocks * (BLOCK + 16 * kept) + shared
    model = load.items * 16 * kept + 8 * _products(load)
    memory = ledgers + claims + sums + model
    workers = max(2, math.ceil(worker_cpu / BUSY))
    return Needs(
        workers=workers,
        # The numbers of a model, and what answers are looked up in.
        worker_bytes=math.ceil(PROCESS + workers * (WORKER + 4 * model)),
        worker_cpu=worker_cpu,
        store_cpu=store_cpu,
        masters=max(1, math.ceil(store_cpu / BUSY)),
        ledger_bytes=math.ceil(ledgers),
        claim_bytes=math.ceil(claims),
        sums_bytes=math.ceil(sums),
        model_bytes=math.ceil(model),
        store_bytes=math.ceil(memory),
        disk_bytes=math.ceil(LOG_TIMES * memory),
        log_bytes_per_second=(
            load.requests * ANSWER_LOG + feedback * (FEEDBACK_LOG + FIELD_LOG * added)
        ),
        network_bytes_per_second=(
            top * (ANSWER_WIRE + load.feedback * (FEEDBACK_WIRE + FIELD_WIRE * added))
        ),
    )


def ledger_bytes(load: Load) -> float:
    """Return the bytes of one person's ledger: more of who comes on many days."""
    visits = 86_400 * load.requests / load.people
    kept = min(load.days, KEPT_DAYS)
    # On a day somebody comes with probability 1 - exp(-visits).
    answered = max(1.0, kept * -math.expm1(-visits))
    fed_back = kept * -math.expm1(-visits * load.feedback)
    return LEDGER + min(1.0, fed_back) * LEDGER_OF_FEEDBACK + LEDGER_DAY * (answered + fed_back)


def numbers_kept(load: Load) -> int:
    """Return how many numbers each of an item's two sums has."""
    return _CELLS.get(load.dimensions, min(load.dimensions, 64) + 1)


def numbers_added(load: Load) -> int:
    """Return how many numbers one piece of feedback adds to."""
    if load.dimensions in _CELLS:
        return 4
    return numbers_kept(load) + _products(load)


def _products(load: Load) -> int:
    size = min(load.dimensions, 64)
    return 0 if load.dimensions in _CELLS else size * (size + 1) // 2


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    add = parser.add_argument
    add("--requests", type=float, required=True, metavar="R", help="answers a second, on average")
    add("--people", type=int, required=True, metavar="P", help="clients that ever come")
    add("--items", type=int, required=True, metavar="N", help="items of the catalogue")
    add("--feedback", type=float, default=0.2, help="pieces for each answer (default: 0.2)")
    add("--dimensions", type=int, default=8, metavar="D", help="of the context (default: 8)")
    add("--peak", type=float, default=3.0, help="times the average (default: 3)")
    add("--ttl", type=int, default=86_400, help="decision_ttl_seconds (default: a day)")
    add(
        "--release-seconds", type=float, default=3_600.0, help="between releases (default: an hour)"
    )
    add("--days", type=int, default=KEPT_DAYS, help="since it began (default: all that are kept)")
    add(
        "--answer-us",
        type=float,
        default=ANSWER_US,
        help=f"CPU of a worker (default: {ANSWER_US:g})",
    )
    add(
        "--feedback-us",
        type=float,
        default=FEEDBACK_US,
        help=f"the same (default: {FEEDBACK_US:g})",
    )
    add("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print what is needed."""
    load = Load(**{name: getattr(args, name) for name in Load.__dataclass_fields__})
    found = needs(load)
    if args.json:
        shown = {name: round(value, 3) for name, value in asdict(found).items()}
        print(json.dumps(shown, indent=2))
        return 0
    table = Table("what", "how much", "why", box=None, pad_edge=False)
    for row in _rows(load, found):
        table.add_row(*row)
    Console().print(table)
    return 0


def _rows(load: Load, found: Needs) -> list[tuple[str, str, str]]:
    top = load.peak * load.requests
    return [
        ("workers", f"{found.workers}", f"{found.worker_cpu:.2f} cores busy at {top:,.0f} /s"),
        ("their memory", _size(found.worker_bytes), "in all, with the model in each"),
        ("masters", f"{found.masters}", f"{found.store_cpu:.2f} cores busy"),
        ("the store's memory", _size(found.store_bytes), "in all:"),
        ("  ledgers", _size(found.ledger_bytes), f"{ledger_bytes(load):,.0f} bytes a person"),
        ("  claims", _size(found.claim_bytes), f"feedback of {load.ttl:,} s"),
        ("  sums", _size(found.sums_bytes), "at most, until the next release"),
        ("  model", _size(found.model_bytes), "at most"),
        ("disk", _size(found.disk_bytes), f"{_size(found.log_bytes_per_second)} a second written"),
        ("network", _size(found.network_bytes_per_second) + "/s", "between workers and store"),
    ]


def _size(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1_000:
            return f"{size:,.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"
        size /= 1_000
    return f"{size:,.1f} TB"
