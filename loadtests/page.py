"""The figures of docs/performance.md, written from a saved run.

    python loadtests/bench.py --from run.json --page docs/performance.md

The page's text is written by hand. Its tables stand between marks, one pair for each section:

    <!-- figures: growth -->
    …
    <!-- end of figures -->

and only what stands between them is replaced, for sections that were measured.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import report

Found = Mapping[str, Any]
Rows = Iterable[Sequence[object]]

_MARKED = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def filled(text: str, found: Found) -> str:
    """Return a page with the tables of a run; sections that were not measured stay as they are."""
    tables = {name: make(found) for name, make in _TABLES.items() if _measured(found, name)}

    def replaced(match: re.Match[str]) -> str:
        name = match[2]
        if name not in _TABLES:
            raise SystemExit(f"there are no figures called {name}: {', '.join(_TABLES)}")
        return f"{match[1]}{tables[name]}\n{match[3]}" if name in tables else match[0]

    return _MARKED.sub(replaced, text)


def _measured(found: Found, name: str) -> bool:
    return all(section in found for section in _NEEDS[name])


def _table(heads: Sequence[str], rows: Rows) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _range(ratio: Found) -> str:
    return f"**{ratio['median']:.2f}** ({ratio['min']:.2f} to {ratio['max']:.2f})"


def _machine(found: Found) -> str:
    one = found["machine"]
    short = " A short run (`--quick`)." if found.get("quick") else ""
    return (
        f"Measured on {one['date']}: {one['cpu']}, {one['cores']} cores, Python {one['python']}, "
        f"Valkey {one['valkey']} with fsync {one['fsync']}, {one['connections']} connections. The "
        f"load generator and the store run on the same cores.{short}"
    )


def _requests(found: Found) -> str:
    rows = []
    for path in report.PATHS:
        for workers, row in found[path]["workers"].items():
            ours, floor, other = (row[name] for name in report.SERVICES)
            rows.append(
                (
                    f"`/{path}`, {workers} worker{'s' if workers != '1' else ''}",
                    f"{ours['rps']:,} ({floor['rps']:,}, {other['rps']:,})",
                    f"{ours['cpu_us']:,} µs ({floor['cpu_us']:,}, {other['cpu_us']:,})",
                    _range(row["ratio_to_floor"]),
                    _range(row["ratio_to_alternative"]),
                    f"{ours['p50_ms']:.1f}, {ours['p99_ms']:.1f} ms at {row['offered_rps']:,} /s",
                    f"{floor['p50_ms']:.1f}, {floor['p99_ms']:.1f} ms",
                )
            )
    return _table(
        (
            "",
            "requests a second (floor, alternative)",
            "CPU a request (floor, alternative)",
            "times the floor",
            "times the alternative",
            "p50, p99",
            "floor's p50, p99",
        ),
        rows,
    )


def _batch(found: Found) -> str:
    one = found["batch"]
    rows = [
        (many, f"{row['decisions_per_second']:,}", f"{row['cpu_us_per_decision']:.1f} µs")
        for many, row in one["in_flight"].items()
    ]
    return _table(("batches in flight", "decisions a second", "CPU a decision"), rows)


def _families(found: Found) -> str:
    floor, kinds = found["families"]["floor"], found["families"]["kinds"]
    rows: list[Sequence[object]] = [
        ("floor", *(part for path in report.PATHS for part in _path(floor[path])), "")
    ]
    for name, kind in kinds.items():
        batch = kind["batch"]
        lost = f", {batch['failed']:,} of {batch['entries']:,} failed" if batch["failed"] else ""
        parts = [part for path in report.PATHS for part in _path(kind[path])]
        times = batch["ratio_to_floor"]["median"]
        many = f"{batch['decisions_per_second']:,} ({batch['cpu_us']} µs), **{times:.2f}**{lost}"
        rows.append((name, *parts, many))
    heads = [
        head
        for path in report.PATHS
        for head in (
            f"`/{path}` a second (CPU), times the floor",
            f"p50, p99 at {floor[path]['offered_rps']:,} /s",
        )
    ]
    return _table(("", *heads, "batches of 1,000: decisions a second"), rows)


def _path(one: Found) -> tuple[str, str]:
    times = f", {_range(one['ratio_to_floor'])}" if "ratio_to_floor" in one else ""
    return (
        f"{one['rps']:,} ({one['cpu_us']:,} µs){times}",
        f"{one['p50_ms']:.1f}, {one['p99_ms']:.1f} ms",
    )


_GROWS = {
    "arms": "items",
    "cells": "cells of the released model",
    "clients": "clients with a ledger",
    "dimensions": "dimensions",
    "candidates": "candidates named in the question",
    "described": "candidates with 50 features each (mirror-descent)",
}


def _growth(found: Found) -> str:
    rows = []
    for name, title in _GROWS.items():
        series = found["scaling"][name]
        sizes = [
            f"{report.reached(series, size):,}: {cost:,.0f}"
            for size, cost in series["cpu_us"].items()
        ]
        spread = f"({series['growth_min']:.2f} to {series['growth_max']:.2f})"
        rows.append((title, "; ".join(sizes), f"**{series['growth']:.2f}** {spread}"))
    return _table(("", "CPU µs, by size", "last to first"), rows)


def _variants(paths: Found) -> str:
    rows = []
    for path, variants in paths.items():
        first = next(iter(variants))
        for name, one in variants.items():
            alone = name == first
            rows.append(
                (
                    f"`/{path}`",
                    name,
                    f"{one['rps']:,}",
                    f"{one['cpu_us']:,} µs",
                    "" if alone else _range(one["rps_ratio"]),
                    "" if alone else _range(one["cpu_ratio"]),
                )
            )
    heads = ("", "", "requests a second", "CPU a request", "times as fast", "times the CPU")
    return _table(heads, rows)


def _commands(found: Found) -> str:
    rows = []
    for fsync, works in found["clients"]["commands"].items():
        for work, clients in works.items():
            for name, one in clients.items():
                rows.append(
                    (
                        f"{work}, fsync {fsync}",
                        name,
                        f"{one['commands_per_second']:,}",
                        f"{one['cpu_us_per_command']:.1f} µs",
                        f"{one['cpu_ratio_to_ours']:.2f}",
                    )
                )
    return _table(("", "", "commands a second", "CPU a command", "times our CPU"), rows)


def _releases(found: Found) -> str:
    rows = [
        (name, f"{one['seconds']:.2f} s", f"{one['cpu_seconds']:.2f} s", f"{one['model_bytes']:,}")
        for name, one in found["releases"].items()
    ]
    return _table(("one release", "takes", "CPU", "bytes of the model"), rows)


def _bytes(found: Found) -> str:
    rows = []
    for key, title in report.BYTES.items():
        value = found["memory"][key]
        if isinstance(value, Mapping):
            value = "; ".join(f"{name}: {size:,}" for name, size in value.items())
        rows.append((title, value))
    return _table(("each", "bytes"), rows)


def _operations(found: Found) -> str:
    rows = []
    for name, by_fsync in found["store"]["operations"].items():
        for fsync, by_size in by_fsync.items():
            for size, one in by_size.items():
                rows.append(
                    (
                        name,
                        fsync,
                        size,
                        f"{one['cpu_us']:,.1f} µs",
                        f"{one['received_bytes'] + one['sent_bytes']:,}",
                        f"{one['log_bytes']:,}",
                    )
                )
    heads = ("", "fsync", "together", "CPU of the store", "bytes on the wire", "bytes in the log")
    return _table(heads, rows)


def _masters(found: Found) -> str:
    rows = [
        (
            masters,
            *(
                f"{one['busiest_share']:.0%} of the CPU; carries **{one['carries']:.2f}** times one"
                for one in shares.values()
            ),
        )
        for masters, shares in found["store"]["clusters"].items()
    ]
    return _table(("masters", "answers: the busiest", "feedback: the busiest"), rows)


def _flat(found: Found) -> str:
    one = found["store"]
    series = {
        "ledgers (an answer)": one["ledgers"]["measured"],
        "recommenders (a feedback)": one["recommenders"],
        "items (a feedback)": one["items"],
        "workers (an answer)": one["workers"],
    }
    rows = [
        (title, "; ".join(f"{int(size):,}: {cpu:.1f}" for size, cpu in sizes.items()))
        for title, sizes in series.items()
    ]
    return _table(("", "CPU µs of the store, by size"), rows)


def _large_releases(found: Found) -> str:
    return _table(
        ("released", "figures"),
        [
            (name, ", ".join(f"{what.replace('_', ' ')} {value:,}" for what, value in one.items()))
            for name, one in found["store"]["releases"].items()
        ],
    )


def _contention(found: Found) -> str:
    rows = [
        (workers, f"{one['share_of_one_master']:.0%}", one["masters_at_half_load"])
        for workers, one in found["store"]["contention"]["workers"].items()
    ]
    return _table(("busy workers", "of one master (computed)", "masters at half load"), rows)


def _mixed(found: Found) -> str:
    one = found["mixed"]
    rows = [
        (family, *(f"{row['p50_ms']:.1f}, {row['p99_ms']:.1f}" for row in paths.values()))
        for family, paths in one["families"].items()
    ]
    failures = sum(row["failures"] for paths in one["families"].values() for row in paths.values())
    return (
        f"{one['offered_per_second']:,} arrivals a second, {one['requests_per_second']:,} requests "
        f"a second, {one['dropped']:,} dropped, {failures:,} failed.\n\n"
        + _table(("p50, p99 in ms", *(f"`/{path}`" for path in report.PATHS)), rows)
    )


_TABLES: Mapping[str, Callable[[Found], str]] = {
    "machine": _machine,
    "requests": _requests,
    "batch": _batch,
    "families": _families,
    "growth": _growth,
    "clients": lambda found: _variants(found["clients"]["requests"]),
    "commands": _commands,
    "protocol": lambda found: _variants(found["protocol"]),
    "releases": _releases,
    "bytes": _bytes,
    "operations": _operations,
    "masters": _masters,
    "flat": _flat,
    "scale": _large_releases,
    "contention": _contention,
    "mixed": _mixed,
}
_NEEDS: Mapping[str, Sequence[str]] = {
    **{name: (name,) for name in _TABLES},
    "machine": ("machine", "recommend"),
    "requests": report.PATHS,
    "growth": ("scaling",),
    "commands": ("clients",),
    "bytes": ("memory",),
    **dict.fromkeys(("operations", "masters", "flat", "scale", "contention"), ("store",)),
}
"""The sections of a run that each table is made from."""
