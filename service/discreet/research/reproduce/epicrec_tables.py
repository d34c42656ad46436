"""The evaluation of profile perturbation as estimates, rows, tables and figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from discreet.research.reproduce.epicrec_trials import (
    COUNTED_ONLY,
    FIELDS,
    GS,
    LPA,
    METHODS,
    NOTHING,
    POPULAR,
    PUBLISHED,
    RAW,
    SERVED,
    Key,
)
from discreet.research.reproduce.tables import Figure, Line, Panel, ResultTable

Floats = npt.NDArray[np.float64]
Table = Mapping[Key, Floats]
"""Sums of the trials' fields, a row for each tenth of the people."""

SYSTEMS = ("single", "category")
TITLES = {"single": "overall control", "category": "control by category"}
JUDGED = (PUBLISHED, LPA, GS, SERVED, POPULAR)
NAMES = {
    "single": {PUBLISHED: "S-DPDP as published", LPA: "Pseudo-LPA", GS: "Pseudo-GS"},
    "category": {PUBLISHED: "M-DPDP as published", LPA: "Pseudo-LPA", GS: "Pseudo-GS"},
}
MOST = 1.0
"""The paper's largest epsilon; what is beyond it is for the theorems."""

PRINTED_LOSSES = {"movielens": (0.2, 0.05), "yelp": (0.3, 0.03)}
"""Epsilon, and the MAE loss of S-EpicRec that the paper prints for it."""
QUANTIFIED: dict[str, dict[str, float]] = {
    "movielens": {"single": 0.23, "category": 0.29},
    "yelp": {"single": 0.25, "category": 0.33},
}
"""The epsilons that the paper prints as proposed."""
NO_RELEASE = 0.05
"""How much worse the loss in "no release" categories is at most, as the paper prints it."""


@dataclass(frozen=True, slots=True)
class RatioEstimate:
    """A number, and half of the 95% interval around it."""

    value: float
    half: float

    def percent(self) -> str:
        """Return it in per cent."""
        return f"{percent(self.value)} ± {self.half:.1%}"

    @property
    def sure(self) -> bool:
        """Whether the whole interval lies above 0."""
        return self.value - self.half > 0


def percent(value: float) -> str:
    """Return a number in per cent, without a sign where it rounds to 0."""
    return f"{value:.1%}".replace("-0.0%", "0.0%")


def ratio(above: Floats, below: Floats) -> RatioEstimate:
    """Estimate a ratio of sums; its interval is by leaving out each tenth of the people in turn."""
    there = below > 0
    above, below = above[there], below[there]
    count = len(below)
    if not count:
        return RatioEstimate(float("nan"), float("inf"))
    value = float(above.sum() / below.sum())
    if count < 2:
        return RatioEstimate(value, float("inf"))
    without = (above.sum() - above) / (below.sum() - below)
    error = np.sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))
    return RatioEstimate(value, float(student.ppf(0.975, count - 1) * error))


def column(table: Floats, name: str) -> Floats:
    """Return a field's sums, one for each tenth."""
    values: Floats = table[:, FIELDS.index(name)]
    return values


def mean(table: Floats, name: str) -> RatioEstimate:
    """Return a field's mean over people."""
    return ratio(column(table, name), column(table, "people"))


def loss(table: Floats, prefix: str = "") -> RatioEstimate:
    """Return the MAE loss against the raw history; `prefix` picks the fields, such as "sets_"."""
    raw = column(table, f"{prefix}raw")
    return ratio(column(table, f"{prefix}error") - raw, raw)


def below(found: Table, mine: Key, other: Key, field: str = "aggregate") -> RatioEstimate:
    """Return by how much one error is below another, relative to that other one."""
    theirs = column(found[other], field)
    return ratio(theirs - column(found[mine], field), theirs)


def gain(found: Table, mine: Key, other: Key) -> RatioEstimate:
    """Return how much less one loses than another, in points of the MAE loss."""
    raw = column(found[other], "raw")
    return ratio(column(found[other], "error") - column(found[mine], "error"), raw)


def epsilons(found: Table, system: str, method: str = PUBLISHED) -> list[float]:
    """Return the epsilons of a method, up to the paper's largest."""
    return sorted(key[2] for key in found if key[:2] == (system, method) and key[2] <= MOST)


def row(dataset: str, found: Table, key: Key) -> dict[str, Any]:
    """Return the row that programs read."""
    system, method, epsilon = key
    table = found[key]
    made = {
        "dataset": dataset,
        "system": system,
        "method": method,
        "epsilon": epsilon,
        "aggregate_mae": mean(table, "aggregate").value,
        "aggregate_mae_half": mean(table, "aggregate").half,
        "countable_mae": mean(table, "own").value,
        "seconds": mean(table, "seconds").value,
    }
    if method in COUNTED_ONLY:
        return made
    made |= {
        "mae_loss": loss(table).value,
        "mae_loss_half": loss(table).half,
        "mae_loss_sets": loss(table, "sets_").value,
        "ndcg10": mean(table, "ndcg").value,
    }
    if system == "category":
        made |= {
            "mae_loss_perturbed": loss(table, "protected_").value,
            "mae_loss_no_release": loss(table, "hidden_").value,
        }
    return made


def rows(dataset: str, found: Table, methods: Sequence[str] = METHODS) -> list[dict[str, Any]]:
    """Return the rows of these methods."""
    return [
        row(dataset, found, key)
        for system in SYSTEMS
        for method in methods
        for key in sorted(key for key in found if key[:2] == (system, method))
    ]


def references(found: Table) -> dict[str, dict[str, float]]:
    """Return what the raw history gives, and what nothing at all gives."""
    return {
        name: {
            "mae": ratio(column(table, "error"), column(table, "ratings")).value,
            "mae_loss": loss(table).value,
            "mae_loss_sets": loss(table, "sets_").value,
            "ndcg10": mean(table, "ndcg").value,
        }
        for name in (RAW, NOTHING)
        for table in [found[name, name, 0.0]]
    }


def tables(dataset: str, found: Table) -> list[ResultTable]:
    """Return two tables for each system: the counts, and what the server makes of what is sent."""
    made = []
    for system in SYSTEMS:
        counts: list[Sequence[str]] = []
        losses: list[Sequence[str]] = []
        for name, one in references(found).items():
            kinds = ("–", "–") if system == "category" else ()
            mae, sets, ndcg = one["mae_loss"], one["mae_loss_sets"], one["ndcg10"]
            losses.append((name, "–", percent(mae), *kinds, percent(sets), f"{ndcg:.3f}"))
        for method in METHODS:
            for key in sorted(key for key in found if key[:2] == (system, method)):
                table = found[key]
                name, epsilon = NAMES[system].get(method, method), f"{key[2]:g}"
                error, own = mean(table, "aggregate"), mean(table, "own")
                counts.append(
                    (
                        name,
                        epsilon,
                        f"{error.value:.2f} ± {error.half:.2f}",
                        *([f"{own.value:.2f}"] if system == "category" else []),
                        f"{mean(table, 'bound').value:.2f}",
                        f"{mean(table, 'seconds').value * 1000:.1f}",
                    )
                )
                if method in COUNTED_ONLY:
                    continue
                kinds = (
                    (loss(table, "protected_").percent(), loss(table, "hidden_").percent())
                    if system == "category"
                    else ()
                )
                losses.append(
                    (
                        name,
                        epsilon,
                        loss(table).percent(),
                        *kinds,
                        loss(table, "sets_").percent(),
                        f"{mean(table, 'ndcg').value:.3f}",
                    )
                )
        number = 5 if system == "single" else 6
        own_title = ["of what may leave"] if system == "category" else []
        made.append(
            ResultTable(
                f"Figure {number}a, {dataset}: error of the counts",
                ["method", "epsilon", "error", *own_title, "bound of the theorem", "ms a profile"],
                counts,
            )
        )
        kind_titles = ['"perturbed" items', '"no release" items'] if system == "category" else []
        made.append(
            ResultTable(
                f"Figure {number}b, {dataset}: loss of recommendations, everybody perturbed",
                ["method", "epsilon", "MAE loss", *kind_titles, "from sets alone", "NDCG@10"],
                losses,
            )
        )
    return made


def figures(found: Mapping[str, Table]) -> list[Figure]:
    """Return Figures 5 and 6 of each data set, with what the paper prints, and Figure 7."""
    made = []
    for dataset, one in found.items():
        for number, system in ((5, "single"), (6, "category")):
            panels = [
                _panel("error of the counts", "counts", one, system, "aggregate"),
                _loss_panel(dataset, one, system),
            ]
            if system == "category":
                panels.append(_no_release_panel(one))
            title = f"Figure {number}, {dataset}: {TITLES[system]}, everybody perturbed"
            made.append(Figure(f"figure-{number}-{dataset}", title, panels))
    panels = []
    for dataset, one in found.items():
        lines = [
            _line(f"{TITLES[system]}, {method}", one, system, method, "seconds")
            for system in SYSTEMS
            for method in (PUBLISHED, SERVED)
        ]
        panels.append(Panel(dataset, "epsilon", "seconds a profile", lines, log_x=True))
    return [*made, Figure("figure-7", "Figure 7: running time of a release", panels)]


def _loss_panel(dataset: str, found: Table, system: str) -> Panel:
    printed = QUANTIFIED.get(dataset, {}).get(system)
    title = "MAE loss" + ("" if printed is None else f" (the paper proposes ε = {printed:g})")
    panel = _panel(title, "MAE loss", found, system, "loss")
    places = epsilons(found, system)
    nothing = references(found)[NOTHING]["mae_loss"]
    lines = [*panel.lines, Line("nothing sent at all", places, [nothing] * len(places))]
    if system == "single" and dataset in PRINTED_LOSSES:
        epsilon, most = PRINTED_LOSSES[dataset]
        lines.append(Line(f"published: up to {most:.0%}", [epsilon], [most]))
    return Panel(panel.title, panel.xlabel, panel.ylabel, lines, log_x=True)


def _no_release_panel(found: Table) -> Panel:
    panel = _panel('MAE loss in "no release" categories', "MAE loss", found, "category", "hidden")
    places = epsilons(found, "category")
    most = [
        loss(found["category", PUBLISHED, epsilon], "protected_").value + NO_RELEASE
        for epsilon in places
    ]
    lines = [*panel.lines, Line(f'published: below "perturbed" + {NO_RELEASE:.0%}', places, most)]
    return Panel(panel.title, panel.xlabel, panel.ylabel, lines, log_x=True)


def _panel(title: str, ylabel: str, found: Table, system: str, what: str) -> Panel:
    lines = [
        _line(NAMES[system].get(method, method), found, system, method, what) for method in JUDGED
    ]
    return Panel(title, "epsilon", ylabel, lines, log_x=True)


def _line(label: str, found: Table, system: str, method: str, what: str) -> Line:
    places = epsilons(found, system, method)
    seen = []
    for epsilon in places:
        table = found[system, method, epsilon]
        if what in ("loss", "hidden"):
            seen.append(loss(table, "hidden_" if what == "hidden" else ""))
        else:
            seen.append(mean(table, what))
    # Losses share their largest doubt, the raw history's error: one band shows it.
    banded = method == PUBLISHED or what not in ("loss", "hidden")
    spread = [one.half for one in seen] if banded else None
    return Line(label, places, [one.value for one in seen], spread)
