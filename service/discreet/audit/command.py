"""`discreet audit`: examine every claim, look for every planted fault, and exit accordingly."""

import math
import sys
from collections.abc import Callable, Iterable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from discreet.audit import discovery
from discreet.audit.claims import AuditRun, Claim, Finding, PlantedFault
from discreet.audit.report import ExaminedClaim, ExaminedFault, Report, table_console

NOT_EXAMINED = Finding(0.0, math.inf, holds=False)


def _examine(name: str, examine: Callable[[AuditRun], Finding], run: AuditRun) -> Finding | None:
    """Return the finding, or None if the examination itself broke down."""
    try:
        return examine(run)
    except Exception as error:  # an audit that stops half-way would hide all later failures
        print(f"{name}: could not be examined: {error!r}", file=sys.stderr)
        return None


def audit(
    run: AuditRun,
    *,
    claims: Iterable[Claim],
    faults: Iterable[PlantedFault],
    unaudited: Iterable[str] = (),
    progress: Callable[[str], None] = lambda name: None,
) -> Report:
    """Examine everything. What could not be examined does not hold, and was not caught."""
    examined, planted = [], []
    for claim in claims:
        progress(claim.name)
        found = _examine(claim.name, claim.examine, run)
        examined.append(ExaminedClaim(claim, found or NOT_EXAMINED))
    for fault in faults:
        progress(fault.name)
        found = _examine(fault.name, fault.examine, run)
        planted.append(ExaminedFault(fault, caught=found is not None and not found.holds))
    return Report(examined, planted, list(unaudited))


def run_audit(*, quick: bool, as_json: bool, only: str | None = None) -> int:
    """Run the audit, print the report on standard output, and return the exit code.

    `only` leaves out what does not have this text in its name; nothing left is a failure.
    Progress is shown on standard error if that is a terminal.
    """
    claims, faults = list(discovery.all_claims()), list(discovery.all_faults())
    unaudited = discovery.unaudited()
    if only is not None:
        claims = [each for each in claims if only in each.name]
        faults = [each for each in faults if only in each.name]
        unaudited = []
        if not claims and not faults:
            print(f"no claim and no planted fault is called {only!r}", file=sys.stderr)
            return 2
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
        task = bar.add_task("audit", total=len(claims) + len(faults), name="")

        def progress(name: str) -> None:
            bar.update(task, advance=1, name=name)

        report = audit(
            AuditRun(quick=quick),
            claims=claims,
            faults=faults,
            unaudited=unaudited,
            progress=progress,
        )
    if as_json:
        print(report.as_json())
    else:
        report.print(table_console())
    return 0 if report.passed else 1
