"""What a run found, for programs (JSON) and for people (two tables)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from discreet.audit.mechanisms.claims import FALSE_ALARM, Claim, Planted, finite

_WIDTH = 120
"""Columns of a table that does not go to a terminal."""


@dataclass(frozen=True, slots=True)
class Report:
    """All rows, and the verdict."""

    claims: Sequence[Claim]
    planted: Sequence[Planted]

    @property
    def passed(self) -> bool:
        """Whether every claim holds and every planted fault was caught."""
        return all(claim.finding.holds for claim in self.claims) and all(
            fault.caught for fault in self.planted
        )

    def as_json(self) -> str:
        """Return the report as one JSON object; its numbers are finite.

        An infinite loss is written as the largest double.
        """
        return json.dumps(
            {
                "claims": [
                    {
                        "name": claim.name,
                        "claimed": finite(claim.finding.claimed),
                        "measured": finite(claim.finding.measured),
                        "method": claim.method.value,
                        "holds": claim.finding.holds,
                    }
                    for claim in self.claims
                ],
                "planted": [{"name": fault.name, "caught": fault.caught} for fault in self.planted],
            },
            allow_nan=False,
            indent=2,
        )

    def print(self, console: Console) -> None:
        """Print both tables and the verdict."""
        claims = Table(title="Claims", title_justify="left")
        claims.add_column("claim", overflow="fold")
        claims.add_column("method")
        claims.add_column("claimed", justify="right")
        claims.add_column("measured", justify="right")
        claims.add_column("holds")
        for claim in self.claims:
            found = claim.finding
            claims.add_row(
                claim.name,
                claim.method.value,
                f"{found.claimed:.7g}",
                f"{found.measured:.7g}",
                "yes" if found.holds else "[bold red]NO[/]",
            )
        planted = Table(title="Planted faults", title_justify="left")
        planted.add_column("fault", overflow="fold")
        planted.add_column("caught")
        for fault in self.planted:
            planted.add_row(fault.name, "yes" if fault.caught else "[bold red]NO[/]")
        console.print(claims)
        console.print(planted)
        console.print(self.verdict())

    def verdict(self) -> str:
        """Say in one line what was found."""
        held = sum(claim.finding.holds for claim in self.claims)
        caught = sum(fault.caught for fault in self.planted)
        return (
            f"{held} of {len(self.claims)} claims hold, "
            f"{caught} of {len(self.planted)} planted faults caught. "
            f"A true claim is doubted with probability below {FALSE_ALARM:g}."
        )


def table_console() -> Console:
    """Return a console on standard output: as wide as the terminal, or wide enough for a log."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_WIDTH)
