"""Results as plain data: rows for programs, tables and figures for people.

Drawing them is `pictures`' business, printing them the command's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from discreet.research.reproduce.verdicts import PaperClaim


@dataclass(frozen=True, slots=True)
class Line:
    """One curve; `spread` is a standard deviation around it, over seeds.

    `published` marks numbers that the paper prints, not ours.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] | None = None
    published: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes."""

    title: str
    xlabel: str
    ylabel: str
    lines: Sequence[Line]
    log_x: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """One picture, in a file of that name."""

    name: str
    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class ResultTable:
    """One table to print: the published number stands beside ours."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The results of a paper, `claims` first: what it says, and whether that holds.

    `quick` marks a small run, whose verdicts are provisional. `details` is everything else that
    belongs into the JSON file; `extras` are further entries of the summary, beside those that
    every paper has.
    """

    name: str
    seeds: int
    results: Sequence[Mapping[str, Any]]
    published: Mapping[str, Any]
    details: Mapping[str, Any] = field(default_factory=dict)
    tables: Sequence[ResultTable] = ()
    figures: Sequence[Figure] = ()
    notes: Sequence[str] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)
    claims: Sequence[PaperClaim] = ()
    quick: bool = False

    def claims_table(self) -> ResultTable:
        """Return the table that is printed first."""
        title = "What the paper claims"
        if self.quick:
            title += " (a small run: few seeds and rounds, so verdicts are provisional)"
        return ResultTable(
            title,
            ["the paper says", "where", "published", "ours", "verdict", "why"],
            [tuple(claim.row().values()) for claim in self.claims],
        )

    def summary(self) -> dict[str, Any]:
        """Return the object that programs read."""
        return {
            "name": self.name,
            "seeds": self.seeds,
            "quick": self.quick,
            "claims": [claim.row() for claim in self.claims],
            "results": [dict(row) for row in self.results],
            "published": dict(self.published),
            **self.extras,
        }
