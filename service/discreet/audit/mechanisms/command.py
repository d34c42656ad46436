"""`discreet audit`: examine every claim, look for every planted fault, and exit accordingly."""

import math
import sys
from collections.abc import Callable, Iterable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from discreet.audit.mechanisms.catalogue import all_checks, all_faults
from discreet.audit.mechanisms.claims import Bench, Check, Claim, Fault, Finding, Planted
from discreet.audit.mechanisms.report import Report, table_console


def _examine(name: str, examine: Callable[[Bench], Finding], bench: Bench) -> Finding | None:
    """Return the finding, or None if the examination itself broke down."""
    try:
        return examine(bench)
    except Exception as error:  # an audit that stops half-way would hide all later failures
        print(f"{name}: could not be examined: {error!r}", file=sys.stderr)
        return None


def audit(
    bench: Bench,
    *,
    checks: Iterable[Check],
    faults: Iterable[Fault],
    progress: Callable[[str], None] = lambda name: None,
) -> Report:
    """Examine everything. What could not be examined does not hold, and was not caught."""
    claims, planted = [], []
    for check in checks:
        progress(check.name)
        found = _examine(check.name, check.examine, bench)
        claims.append(Claim(check.name, check.method, found or Finding(0.0, math.inf, holds=False)))
    for fault in faults:
        progress(fault.name)
        found = _examine(fault.name, fault.examine, bench)
        planted.append(Planted(fault.name, caught=found is not None and not found.holds))
    return Report(claims, planted)


def run(
    *,
    quick: bool,
    as_json: bool,
    further: Iterable[Check] = (),
    further_faults: Iterable[Fault] = (),
) -> int:
    """Run the audit, print the report on standard output, and return the exit code.

    `further` are claims and faults of higher layers, which this one may not import. Progress is
    shown on standard error if that is a terminal.
    """
    checks, faults = [*all_checks(), *further], [*all_faults(), *further_faults]
    bar = Progress(
        TextColumn("{task.fields[name]}", style="dim"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task("audit", total=len(checks) + len(faults), name="")

        def progress(name: str) -> None:
            bar.update(task, advance=1, name=name)

        report = audit(Bench(quick=quick), checks=checks, faults=faults, progress=progress)
    if as_json:
        print(report.as_json())
    else:
        report.print(table_console())
    return 0 if report.passed else 1
