"""The papers whose results can be regenerated, by name; a family adds its own line here.

A paper's module has `reproduce(options, watch) -> Reproduction`. What it returns is plain data:
rows for programs, tables and figures for people. Drawing them is the command's business.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from discreet.errors import InvalidArgument

PAPERS: Mapping[str, tuple[str, str]] = {
    "p-dap": (
        "discreet.research.pdap",
        "adaptive partition over vendors: P-DAP, GP-DAP, DAP, CAP, DUP (Zhou et al. 2016)",
    ),
    "mirror-descent": (
        "discreet.research.mirror",
        "sparse mirror descent over data centres (Li et al. 2016)",
    ),
    "epicrec": (
        "discreet.research.epicrec",
        "profile perturbation: S-EpicRec, M-EpicRec, Pseudo-LPA, Pseudo-GS (Shen, Jin 2016)",
    ),
    "p-rec": (
        "discreet.research.prec",
        "voters' weights: p-REC, p-REC_sim (Gilbert, Liu and Yu 2015)",
    ),
    "fclub": (
        "discreet.research.fclub",
        "federated clusters: CDP-FCLUB-DC, FCLUB-DC, FCLUB, CLUB, SCLUB, LinUCB, Homo (Liu 2022)",
    ),
}


@dataclass(frozen=True, slots=True)
class Options:
    """How thoroughly. `seeds` and `rounds` None leave it to the paper's module."""

    quick: bool = False
    seeds: int | None = None
    rounds: int | None = None
    data: Path | None = None
    processes: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One curve; `spread` is a standard deviation around it, over seeds."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] | None = None


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
class TableOf:
    """One table for people: the published number stands beside ours."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What was found. `details` is everything else that the JSON file should tell.

    `extras` are further entries of the summary, beside those that every paper has.
    """

    name: str
    seeds: int
    results: Sequence[Mapping[str, Any]]
    published: Mapping[str, Any]
    details: Mapping[str, Any] = field(default_factory=dict)
    tables: Sequence[TableOf] = ()
    figures: Sequence[Figure] = ()
    notes: Sequence[str] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """Return the object that programs read."""
        return {
            "name": self.name,
            "seeds": self.seeds,
            "results": [dict(row) for row in self.results],
            "published": dict(self.published),
            **self.extras,
        }


class Watch(Protocol):
    """Hears how much there is to do, and of every bit that is done."""

    def __call__(self, done: int, total: int, what: str) -> None: ...


Reproduce = Callable[[Options, Watch], Reproduction]


def reproduction_of(name: str) -> Reproduce:
    """Return how a paper's results are regenerated, or say which names there are."""
    if name not in PAPERS:
        known = "; ".join(f"{each}: {about}" for each, (_, about) in PAPERS.items())
        raise InvalidArgument("NAME", f"no paper is called {name!r}. There is {known}")
    module = import_module(PAPERS[name][0])
    reproduce: Reproduce = module.reproduce
    return reproduce
