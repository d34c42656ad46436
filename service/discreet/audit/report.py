"""What a run found, for programs (JSON) and for people (tables)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from discreet.audit.claims import FALSE_ALARM, Claim, Finding, PlantedFault, Scope, finite

_WIDTH = 120
"""Columns of a table that does not go to a terminal."""


@dataclass(frozen=True, slots=True)
class ExaminedClaim:
    """A claim, and what was found."""

    claim: Claim
    finding: Finding


@dataclass(frozen=True, slots=True)
class ExaminedFault:
    """A planted fault, and whether its examination noticed it."""

    fault: PlantedFault
    caught: bool


@dataclass(frozen=True, slots=True)
class Report:
    """All rows, the families that have no audit, and the verdict."""

    claims: Sequence[ExaminedClaim]
    planted: Sequence[ExaminedFault]
    unaudited: Sequence[str] = ()

    @property
    def passed(self) -> bool:
        """Whether every claim holds, every planted fault was caught, and no family was left out."""
        return (
            all(row.finding.holds for row in self.claims)
            and all(row.caught for row in self.planted)
            and not self.unaudited
        )

    def as_json(self) -> str:
        """Return the report as one JSON object; its numbers are finite.

        An infinite loss is written as the largest double.
        """
        return json.dumps(
            {
                "claims": [
                    {
                        "name": row.claim.name,
                        "scope": row.claim.scope.value,
                        "claimed": finite(row.finding.claimed),
                        "measured": finite(row.finding.measured),
                        "method": row.claim.method.value,
                        "holds": row.finding.holds,
                    }
                    for row in self.claims
                ],
                "planted": [
                    {
                        "name": row.fault.name,
                        "scope": row.fault.scope.value,
                        "caught": row.caught,
                    }
                    for row in self.planted
                ],
                "unaudited": list(self.unaudited),
            },
            allow_nan=False,
            indent=2,
        )

    def print(self, console: Console) -> None:
        """Print both tables and the verdict."""
        claims = Table(title="Claims", title_justify="left")
        claims.add_column("claim", overflow="fold")
        claims.add_column("scope")
        claims.add_column("method")
        claims.add_column("claimed", justify="right")
        claims.add_column("measured", justify="right")
        claims.add_column("holds")
        for row in self.claims:
            claims.add_row(
                row.claim.name,
                row.claim.scope.value,
                row.claim.method.value,
                f"{row.finding.claimed:.7g}",
                f"{row.finding.measured:.7g}",
                "yes" if row.finding.holds else "[bold red]NO[/]",
            )
        planted = Table(title="Planted faults", title_justify="left")
        planted.add_column("fault", overflow="fold")
        planted.add_column("scope")
        planted.add_column("caught")
        for each in self.planted:
            caught = "yes" if each.caught else "[bold red]NO[/]"
            planted.add_row(each.fault.name, each.fault.scope.value, caught)
        console.print(claims)
        console.print(planted)
        for algorithm in self.unaudited:
            console.print(f"[bold red]{algorithm} has no audit[/]")
        console.print(self.verdict())

    def verdict(self) -> str:
        """Say in a few lines what was found."""
        lines = []
        for scope in Scope:
            claims = [row for row in self.claims if row.claim.scope is scope]
            planted = [row for row in self.planted if row.fault.scope is scope]
            held = sum(row.finding.holds for row in claims)
            caught = sum(row.caught for row in planted)
            lines.append(
                f"{scope.value}: {held} of {len(claims)} claims hold, "
                f"{caught} of {len(planted)} planted faults caught."
            )
        lines.append(f"A true claim is doubted with probability below {FALSE_ALARM:g}.")
        return "\n".join(lines)


def table_console() -> Console:
    """Return a console on standard output: as wide as the terminal, or wide enough for a log."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_WIDTH)
