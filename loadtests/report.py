"""What a run has found: the bars it was held to, and the table.

Works on the JSON object that `bench.py` prints, so that a saved run can be shown again. Sections
that were not measured are left out.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import clients
import families
import releases
import store

PATHS = ("recommend", "feedback")
SERVICES = ("discreet", "floor", "alternative")

TIMES_FLOOR = {"1": 4.5, "2": 3.0}
"""By workers of each."""
FAMILY_TIMES_FLOOR = 2.5
TIMES_ALTERNATIVE = 1.0
BATCH_DECISIONS = 40_000
GROWTH = {"arms": 1.5, "cells": 1.5, "clients": 1.2}
LEDGER_BYTES = 200

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "at least": operator.ge,
    "at most": operator.le,
    "under": operator.lt,
}
BYTES = {
    "ledger_bytes": "ledger of a client, both accounts",
    "claim_bytes": "feedback that was counted, until it expires",
    "unreleased_feedback_bytes": "client with feedback, until the next release",
    "sums_bytes": "block of sums (a cell), by arms",
    "model_bytes": "released model of p-dap, cells x arms",
    "pending_decision_bytes": "pending decision",
    "pending_decision_with_event_id_bytes": "pending decision with an event_id",
    "vote_bytes": "voter on the roster, and each vote",
}

Found = Mapping[str, Any]
Bar = dict[str, Any]


def with_summary(by_workers: Found) -> dict[str, Any]:
    """Put one worker's figures, which most readers look for, above all others."""
    one = by_workers["1"]
    return {
        **{key: one["discreet"][key] for key in ("rps", "p50_ms", "p99_ms", "cpu_us")},
        "ratio_to_floor": one["ratio_to_floor"]["median"],
        "ratio_to_alternative": one["ratio_to_alternative"]["median"],
        "workers": dict(by_workers),
    }


def bars(found: Found) -> list[Bar]:
    """Hold what was measured to what was promised."""
    return [*_path_bars(found), *_family_bars(found), *_other_bars(found)]


def _bar(what: str, measured: float, how: str, limit: float) -> Bar:
    met = _COMPARE[how](measured, limit)
    return {"bar": f"{what}, {how}", "measured": measured, "limit": limit, "met": met}


def _path_bars(found: Found) -> Iterator[Bar]:
    for path in PATHS:
        for workers, row in found.get(path, {"workers": {}})["workers"].items():
            name = f"{path}, {workers} worker{'s' if workers != '1' else ''}"
            ours, floor = row["discreet"], row["floor"]
            yield _bar(
                f"{name}: times the floor",
                row["ratio_to_floor"]["median"],
                "at least",
                TIMES_FLOOR[workers],
            )
            # Never below means in no turn.
            yield _bar(
                f"{name}: times the alternative in the worst turn",
                row["ratio_to_alternative"]["min"],
                "at least",
                TIMES_ALTERNATIVE,
            )
            yield _waited(name, ours, floor, row["offered_rps"])


def _waited(name: str, ours: Found, floor: Found, offered: int) -> Bar:
    bar = _bar(f"{name}: p99 in ms at {offered:,} /s", ours["p99_ms"], "at most", floor["p99_ms"])
    # Whoever drops arrivals, or fails them, is not quick.
    lost = ours["dropped"] > floor["dropped"] or ours["failed_share"] > 0
    return {**bar, "met": bar["met"] and not lost}


def _family_bars(found: Found) -> Iterator[Bar]:
    if "families" not in found:
        return
    floor = found["families"]["floor"]
    for name, kind in found["families"]["kinds"].items():
        for path in PATHS:
            one, what = kind[path], f"{name}, {path}"
            times = one["ratio_to_floor"]["median"]
            yield _bar(f"{what}: times the floor", times, "at least", FAMILY_TIMES_FLOOR)
            yield _waited(what, one, floor[path], floor[path]["offered_rps"])
        batch = kind["batch"]
        times = batch["ratio_to_floor"]["median"]
        yield _bar(f"{name}, batches: times the floor", times, "at least", FAMILY_TIMES_FLOOR)
        yield _bar(f"{name}, batches: entries that failed", batch["failed"], "at most", 0)


def _other_bars(found: Found) -> Iterator[Bar]:
    if "batch" in found:
        rate = found["batch"]["decisions_per_second"]
        yield _bar("batch: decisions a second", rate, "at least", BATCH_DECISIONS)
    for name, limit in GROWTH.items():
        if name in found.get("scaling", {}):
            series = found["scaling"][name]
            first, *_, last = series["cpu_us"]
            # The ends stand in the name: a quick run does not go as far as a full one.
            what = f"scaling: cost from {int(first):,} to {reached(series, last):,} {name}"
            yield _bar(what, series["growth"], "under", limit)
    if "memory" in found:
        size = found["memory"]["ledger_bytes"]
        yield _bar("memory: bytes of a ledger", size, "at most", LEDGER_BYTES)


def reached(series: Found, size: str) -> int:
    """Return how many there really were: cells come from feedback, and may stay fewer."""
    return int(series.get("cells", {}).get(size, size))


def table(found: Found) -> str:
    """Return everything as text."""
    parts = [
        _machine(found["machine"]),
        *_paths(found),
        *_batch(found),
        *_families(found),
        *_scaling(found),
        *_clients(found),
        *_protocol(found),
        *_releases(found),
        *_memory(found),
        *_store(found),
        *_mixed(found),
        *_bars(found),
    ]
    return "\n".join(parts)


def _machine(machine: Found) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in machine.items())


def _paths(found: Found) -> Iterator[str]:
    if not any(path in found for path in PATHS):
        return
    yield ""
    yield (
        f"{'path':12}{'workers':>7}  {'service':12}{'req/s':>8}{'CPU us':>8}"
        f"{'p50 ms':>9}{'p99 ms':>9}{'dropped':>9}  Discreet is, by turn"
    )
    for path in PATHS:
        for workers, row in found.get(path, {"workers": {}})["workers"].items():
            for service in SERVICES:
                one = row[service]
                first = service == SERVICES[0]
                yield (
                    f"{'/' + path if first else '':12}{workers if first else '':>7}  {service:12}"
                    f"{one['rps']:8,}{one['cpu_us']:8,}{one['p50_ms']:9.2f}{one['p99_ms']:9.2f}"
                    f"{one['dropped']:9,}{_ratio(row, service)}{_repeated(one)}"
                )
            yield f"{'':21}(latencies at {row['offered_rps']:,} requests a second)"


def _ratio(row: Found, service: str) -> str:
    if service == "discreet":
        return ""
    one = row[f"ratio_to_{service}"]
    return f"  {one['median']:.2f} times the {service} ({one['min']:.2f} to {one['max']:.2f})"


def _repeated(one: Found) -> str:
    # A duplicate is cheaper than feedback, so a rate with many of them flatters.
    return f"  {one['repeated']:,} of all feedback came twice" if one["repeated"] else ""


def _batch(found: Found) -> Iterator[str]:
    if "batch" not in found:
        return
    one = found["batch"]
    yield ""
    yield (
        f"batches of {one['size']:,}, {one['arms']} arms: {one['decisions_per_second']:,} "
        f"decisions a second, {one['cpu_us_per_decision']:.1f} us CPU each"
    )
    for many, row in one["in_flight"].items():
        yield (
            f"  {many} in flight: {row['decisions_per_second']:,} /s, "
            f"{row['cpu_us_per_decision']:.1f} us"
        )


def _families(found: Found) -> Iterator[str]:
    if "families" not in found:
        return
    yield ""
    yield from families.table(found["families"])


def _scaling(found: Found) -> Iterator[str]:
    if "scaling" not in found:
        return
    yield ""
    yield "CPU us of a recommendation (requests a second), and times from first to last by turn"
    for name, series in found["scaling"].items():
        sizes = "  ".join(
            f"{reached(series, size):,}: {cost:,.0f} ({series['rps'][size]:,})"
            for size, cost in series["cpu_us"].items()
        )
        spread = f"{series['growth_min']:.2f} to {series['growth_max']:.2f}"
        yield f"  {name:12}{series['growth']:6.2f} ({spread})  {sizes}"


def _clients(found: Found) -> Iterator[str]:
    if "clients" not in found:
        return
    yield ""
    yield "our client of the store beside others: commands of one process"
    yield clients.table(found["clients"]["commands"])
    yield ""
    yield from _variants("clients of the store, served", found["clients"]["requests"])


def _protocol(found: Found) -> Iterator[str]:
    if "protocol" not in found:
        return
    yield ""
    yield from _variants("the short way for requests (direct), and without it", found["protocol"])


def _releases(found: Found) -> Iterator[str]:
    if "releases" not in found:
        return
    yield ""
    yield from releases.table(found["releases"])


def _variants(title: str, paths: Found) -> Iterator[str]:
    """Show servers that differ in one thing; ratios are to the first of them."""
    first = next(iter(next(iter(paths.values()))))
    yield f"{title:52}{'req/s':>8}{'CPU us':>8}  beside {first}, by turn: req/s, CPU"
    for path, variants in paths.items():
        for name, one in variants.items():
            speed, cpu = (
                f"{ratio['median']:.2f} ({ratio['min']:.2f} to {ratio['max']:.2f})"
                for ratio in (one["rps_ratio"], one["cpu_ratio"])
            )
            shown = f"  {'/' + path:12}{name:38}{one['rps']:8,}{one['cpu_us']:8,}"
            yield shown if name == first else f"{shown}  {speed}, {cpu}{_repeated(one)}"


def _memory(found: Found) -> Iterator[str]:
    if "memory" not in found:
        return
    yield ""
    yield "bytes in the store"
    for key, name in BYTES.items():
        value = found["memory"][key]
        if isinstance(value, Mapping):
            value = ", ".join(f"{one}: {size:,}" for one, size in value.items())
        yield f"  {name:46}{value}"


def _store(found: Found) -> Iterator[str]:
    if "store" in found:
        yield ""
        yield from store.table(found["store"])


def _mixed(found: Found) -> Iterator[str]:
    if "mixed" not in found:
        return
    one = found["mixed"]
    yield ""
    yield (
        f"all families at once: {one['reached_per_second']:,} of {one['offered_per_second']:,} "
        f"arrivals a second, {one['dropped']:,} dropped"
    )
    for family, paths in one["families"].items():
        for path in PATHS:
            row = paths[path]
            yield (
                f"  {family:16}/{path:11}{row['count']:7,}  p50 {row['p50_ms']:8.2f} ms  "
                f"p99 {row['p99_ms']:8.2f} ms  {row['failures']} failures"
            )
    for family in one["left_out"]:
        yield f"  {family:16}left out: its package is not installed"


def _bars(found: Found) -> Iterator[str]:
    if not found.get("bars"):
        return
    yield ""
    yield "bars"
    for bar in found["bars"]:
        mark = "met   " if bar["met"] else "MISSED"
        yield f"  {mark}  {bar['bar']} {bar['limit']:,}: {bar['measured']:,}"
