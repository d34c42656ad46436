"""The papers whose results can be reproduced, by name; a further paper adds its line here.

A paper's module has `reproduce(options, watch) -> Reproduction`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol

from discreet.errors import InvalidArgument
from discreet.research.reproduce.tables import Reproduction

PAPERS: Mapping[str, tuple[str, str]] = {
    "p-dap": (
        "discreet.research.reproduce.p_dap",
        "adaptive partition over vendors: P-DAP, GP-DAP, DAP, CAP, DUP (Zhou et al. 2016)",
    ),
    "mirror-descent": (
        "discreet.research.reproduce.mirror_descent",
        "sparse mirror descent over data centres (Li et al. 2016)",
    ),
    "epicrec": (
        "discreet.research.reproduce.epicrec",
        "profile perturbation: S-EpicRec, M-EpicRec, Pseudo-LPA, Pseudo-GS (Shen, Jin 2016)",
    ),
    "p-rec": (
        "discreet.research.reproduce.p_rec",
        "voters' weights: p-REC, p-REC_sim (Gilbert, Liu and Yu 2015)",
    ),
    "fclub": (
        "discreet.research.reproduce.fclub",
        "federated clusters: CDP-FCLUB-DC, FCLUB-DC, FCLUB, CLUB, SCLUB, LinUCB, Homo (Liu 2022)",
    ),
}


@dataclass(frozen=True, slots=True)
class ReproductionOptions:
    """How much to run. `seeds` and `rounds` None leave it to the paper's module."""

    quick: bool = False
    seeds: int | None = None
    rounds: int | None = None
    data: Path | None = None
    processes: int | None = None


class ProgressWatcher(Protocol):
    """Is called with how much is done, of how much, and what was done last."""

    def __call__(self, done: int, total: int, what: str) -> None: ...


Reproduce = Callable[[ReproductionOptions, ProgressWatcher], Reproduction]


def reproduction_of(name: str) -> Reproduce:
    """Return the function that reproduces a paper, or raise `InvalidArgument` with the names."""
    if name not in PAPERS:
        known = "; ".join(f"{each}: {about}" for each, (_, about) in PAPERS.items())
        raise InvalidArgument("NAME", f"no paper is called {name!r}. There are: {known}")
    module = import_module(PAPERS[name][0])
    reproduce: Reproduce = module.reproduce
    return reproduce
