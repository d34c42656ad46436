"""What the paper on EpicRec proves, beside what was computed and measured.

The bounds of Theorems 3 and 5 are computed for each person's choice of levels, and set against the
error of the published algorithm's counts, both as means over people.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.research.reproduce.epicrec_tables import Table, epsilons, mean
from discreet.research.reproduce.epicrec_trials import PUBLISHED, SPARSE
from discreet.research.reproduce.verdicts import PaperClaim, held, number, span

BEYOND = 20.0
"""An epsilon for the theorems, which are for every one."""

EXAMPLE = (3.61, 2.36, 3.34, 2.36, 1.38)


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """What is known of a data set before anybody's history is looked at.

    Epsilons have a mean, a least and a largest value. `epsilons` are what a hub proposes, which for
    the overall control is the paper's; `by_category` is M-PBQ's and `line_7` what S-PBQ would find
    by that line of Algorithm 2. `exact_loss` is the largest loss of the noise at epsilon 1.
    """

    epsilons: Mapping[str, tuple[float, float, float]]
    by_category: tuple[float, float, float]
    line_7: tuple[float, float, float]
    seconds: Mapping[str, float]
    mean_magnitude: float
    plain_magnitude: float
    exact_loss: float
    groups: int
    maximal_rows: int
    typical: int

    def detail(self) -> dict[str, Any]:
        """Return it for the JSON file."""
        spans = {**self.epsilons, "category_published": self.by_category, "line_7": self.line_7}
        return {
            "quantified_epsilon": {
                system: {"mean": mean, "least": least, "most": most}
                for system, (mean, least, most) in spans.items()
            },
            "seconds": dict(self.seconds),
            "mean_magnitude_at_1": self.mean_magnitude,
            "laplace_magnitude_at_1": self.plain_magnitude,
            "expected_error_below_laplace": 1 - self.mean_magnitude / self.plain_magnitude,
            "groups": self.groups,
            "maximal_rows": self.maximal_rows,
            "typical_history": self.typical,
        }


@dataclass(frozen=True, slots=True)
class LeakRuns:
    """How often M-DPDP sent an item of an "all" category, of `runs` each with it and without it."""

    runs: int
    with_it: int
    without_it: int


def calibration_claims(
    known: Mapping[str, PublicFacts], example: Sequence[float]
) -> list[PaperClaim]:
    """Return what is claimed about the noise, and about its sum."""
    mean_of_example = sum(example) / len(example)
    return [
        PaperClaim(
            "the noise of the five-item example",
            "figure 4",
            published=", ".join(f"{each:.2f}" for each in EXAMPLE),
            ours=", ".join(f"{each:.2f}" for each in example),
            verdict=held(tuple(round(each, 2) for each in example) == EXAMPLE),
            why="to the last digit that is printed",
        ),
        PaperClaim(
            "calibrated noise is always less than the Laplace mechanism's",
            "example 1, figure 4",
            published="2.61 against 3",
            ours="; ".join(
                [
                    f"{mean_of_example:.2f} against 3",
                    *(
                        f"{name} {one.mean_magnitude:.2f} against {one.plain_magnitude:g}"
                        for name, one in known.items()
                    ),
                ]
            ),
            verdict=held(all(one.mean_magnitude < one.plain_magnitude for one in known.values())),
            why="expected error of a count before anything is drawn, at epsilon 1; equal noise is "
            "one of the choices that it is the least of",
        ),
        PaperClaim(
            "the sum of the magnitudes at epsilon 1 is at most ||C||_1, the most categories of an "
            "item, so the error is O(||C||_1 / c)",
            "sections 4.5 and 5.4",
            published="at most 3 in the paper's own example",
            ours=f"{sum(example):.2f}",
            verdict=held(sum(example) <= 3),
            why="||C||_1 bounds each magnitude's mean, not the sum: the bound is c times too small",
        ),
    ]


def privacy_claims(known: Mapping[str, PublicFacts], leak: LeakRuns) -> list[PaperClaim]:
    """Return Theorems 2 and 4."""
    return [
        PaperClaim(
            "S-DPDP is epsilon-differentially private",
            "theorem 2",
            published="epsilon for one item of a history",
            ours=span(one.exact_loss for one in known.values()) + " at epsilon 1",
            verdict=held(all(one.exact_loss <= 1 for one in known.values())),
            why="the largest loss over all items, computed in rationals from the scales that are "
            "used; what is drawn after that sees noisy counts only",
        ),
        PaperClaim(
            "M-DPDP is epsilon-differentially private",
            "theorem 4",
            published="epsilon for one item of a history",
            ours=f"an item is sent in {leak.with_it} of {leak.runs} runs with it in the history, "
            f"and in {leak.without_it} without it",
            verdict=held(leak.with_it < leak.runs or leak.without_it > 0),
            why='the exact count of an "all" category must be met, over protected items too. Where '
            "one is alone in such a category, it is sent if and only if it is in the history, at "
            "any epsilon",
        ),
    ]


def theorem_claim(name: str, found: Table, system: str) -> PaperClaim:
    """Return Theorem 3, or 5, at the paper's epsilons."""
    several = epsilons(found, system)
    tables = [found[system, PUBLISHED, epsilon] for epsilon in several]
    bounds = [mean(table, "bound").value for table in tables]
    shares = [
        mean(table, "aggregate").value / bound for table, bound in zip(tables, bounds, strict=True)
    ]
    latest = mean(tables[-1], "aggregate")
    return PaperClaim(
        f"the expected error of {algorithm(system)}'s counts is at most 2 ||z||_1 / c",
        f"{_theorem_of(system)}, {name}",
        published=f"at most {number(bounds[-1])} at epsilon {several[-1]:g}",
        ours=f"{latest.value:.2f} ± {latest.half:.2f}",
        verdict=held(all(share <= 1 for share in shares)),
        why=f"{span(shares)} of the bound at epsilon {several[0]:g} to {several[-1]:g}, mean over "
        "people",
    )


def beyond_claim(name: str, found: Table, system: str) -> PaperClaim:
    """Return Theorem 3, or 5, where the noise is small."""
    even, sparse = (
        mean(found[system, method, BEYOND], "aggregate") for method in (PUBLISHED, SPARSE)
    )
    bound = mean(found[system, PUBLISHED, BEYOND], "bound").value
    return PaperClaim(
        f"the same bound for every epsilon, and every solution of the program: at {BEYOND:g}",
        f"{_theorem_of(system)}, {name}",
        published=f"at most {number(bound)}",
        ours=f"{even.value:.2f} with an even solution, {sparse.value:.2f} with a sparse one",
        verdict=held(max(even.value, sparse.value) <= bound),
        why="rounding item by item errs by the fractions that the relaxed solution has, whatever "
        "epsilon is; the proof leaves it out, and it is small only if the solver happens to find "
        "few fractions"
        + ("" if system == "single" else ". Counts of hidden items cannot always be met, either"),
    )


def algorithm(system: str) -> str:
    """Return what the paper calls it."""
    return "S-DPDP" if system == "single" else "M-DPDP"


def _theorem_of(system: str) -> str:
    return "theorem 3" if system == "single" else "theorem 5"
