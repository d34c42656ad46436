"""What the paper on distributed private online learning claims, judged on the social records.

A claim about a figure is about the published algorithm, so that is what is judged: at the least
epsilon at which it learns anything, because nothing can be said of what makes a model better where
none is learned. What it does at epsilon 1, without any noise, and what the served reading does
stands beside it and decides nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log2

import numpy as np

from discreet.research.published.mirror_descent_bounds import disclosed, regret_bound
from discreet.research.reproduce.mirror_descent_settings import (
    COUNTS,
    DROWNED,
    DROWNED_LASSO,
    LASSOS,
    NON_PRIVATE,
    PUBLISHED_EPSILONS,
    SERVED,
    TRUNCATIONS,
    MirrorOutcome,
    MirrorSetting,
    outcome_of,
)
from discreet.research.reproduce.node_topologies import TOPOLOGIES
from discreet.research.reproduce.verdicts import PaperClaim, held, number

CHANCE = 0.55
"""Below this an algorithm has learned nothing: half of the labels are right by chance."""
_HARDLY = 0.02
"""A difference in accuracy that nobody would call significant."""
_NOT_MUCH = 0.05
"""Accuracy that privacy may cost without hurting significantly."""
_COMPOSED = 100
"""Rounds over which Theorem 1 is tested."""


@dataclass(frozen=True, slots=True)
class MirrorFindings:
    """The outcomes of all settings, and the size of the runs.

    `learns` is the epsilon at which the figures are judged, `longest` the largest L1 norm of a
    record.
    """

    outcomes: Sequence[MirrorOutcome]
    learns: float
    dimension: int
    records: int
    longest: float

    def at(self, base: MirrorSetting, **changes: object) -> MirrorOutcome:
        """Return the outcome of a setting that differs from another by these."""
        return outcome_of(self.outcomes, replace(base, **changes))  # type: ignore[arg-type]

    def accuracies(self, base: MirrorSetting, name: str, values: Sequence[object]) -> list[float]:
        """Return the accuracy for each value of one field."""
        return [self.at(base, **{name: value}).accuracy for value in values]

    def regret_bound(self, one: MirrorOutcome) -> float:
        """Return what Theorem 2 says of a setting without lambda.

        Its R is the diameter of W: here of a ball as large as the comparator is long.
        """
        nodes = one.setting.nodes
        terms = regret_bound(
            radius=2 * _radius(one),
            nodes=nodes,
            dimension=self.dimension,
            turns=self.records // nodes,
            epsilon=one.setting.epsilon,
        )
        return sum(terms)

    @property
    def judged(self) -> MirrorSetting:
        """Return the published setting at which figures are judged."""
        return replace(DROWNED, epsilon=self.learns)

    @property
    def learned(self) -> bool:
        """Whether anything was learned there."""
        return self.at(self.judged).accuracy > CHANCE


def claims_of(found: MirrorFindings) -> list[PaperClaim]:
    """Return every claim with its verdict."""
    return [
        _less_privacy_less_regret(found),
        _not_hurt(found),
        _topologies(found),
        _some_sparsity(found),
        _eighteen_percent(found),
        _more_nodes(found),
        _lemma_1(found),
        _theorem_1(),
        _theorem_2(found),
        _root(found),
    ]


def _less_privacy_less_regret(found: MirrorFindings) -> PaperClaim:
    regrets = {each: found.at(DROWNED, epsilon=each).regret for each in PUBLISHED_EPSILONS}
    plain = found.at(NON_PRIVATE)
    idle = float(np.mean([run.idle for run in plain.runs]))
    worse = [f"{each:,g}" for each, regret in regrets.items() if regret > idle]
    return PaperClaim(
        "the non-private algorithm has the least regret, and the weaker the privacy, the nearer "
        "to it",
        "figure 2",
        published="a picture",
        ours=", ".join(f"{number(one)} (ε={each:,g})" for each, one in regrets.items())
        + f", {number(plain.regret)} without noise",
        verdict=held(all(a > b for a, b in pairwise([*regrets.values(), plain.regret]))),
        why=f"predicting nothing has a regret of {number(idle)}, and is better than the algorithm "
        f"at ε={', '.join(worse) or 'none'}: noise is added to every coordinate in every round",
    )


def _not_hurt(found: MirrorFindings) -> PaperClaim:
    plain = found.at(NON_PRIVATE).accuracy
    accuracies = {each: found.at(DROWNED, epsilon=each).accuracy for each in PUBLISHED_EPSILONS}
    learned = [each for each, one in accuracies.items() if one > CHANCE]
    near = [each for each, one in accuracies.items() if one > plain - _NOT_MUCH]
    first = f"learns from ε={learned[0]:,g} on" if learned else "learns nothing at any of these"
    close = f"is within 5 points from ε={near[0]:,g} on" if near else "never within 5 points"
    return PaperClaim(
        "the privacy-preserving method does not significantly hurt the performance",
        "abstract",
        published="no number, and no epsilon",
        ours="accuracy "
        + ", ".join(f"{one:.1%} (ε={each:,g})" for each, one in accuracies.items())
        + f", {plain:.1%} without noise",
        verdict=held(accuracies[1.0] > plain - _NOT_MUCH),
        why=f"it is at chance at ε=1, {first}, and {close}. An ε of 1 promises something, one of "
        "1,000 nothing",
    )


def _topologies(found: MirrorFindings) -> PaperClaim:
    judged = found.accuracies(found.judged, "topology", TOPOLOGIES)
    drowned = found.accuracies(DROWNED, "topology", TOPOLOGIES)
    plain = found.accuracies(NON_PRIVATE, "topology", TOPOLOGIES)
    served = found.accuracies(SERVED, "topology", TOPOLOGIES)
    return _judged(
        found,
        "topologies make no significant difference",
        "figure 3",
        published="a picture",
        ours=_apart(judged),
        holds=max(judged) - min(judged) < _HARDLY,
        why=f"ring, grid, complete, random. At ε=1 all are at chance ({_percent(drowned)}); "
        f"without noise {_apart(plain)}; served at ε=1 {_apart(served)}",
    )


def _some_sparsity(found: MirrorFindings) -> PaperClaim:
    accuracies = found.accuracies(found.judged, "lasso", LASSOS)
    sparsities = [found.at(found.judged, lasso=one).sparsity for one in LASSOS]
    best = int(np.argmax(accuracies))
    return _judged(
        found,
        "an appropriate sparsity is best; a lower or a higher one is worse",
        "figure 4",
        published="a picture",
        ours=", ".join(
            f"{one:.1%} at {share:.0%}" for one, share in zip(accuracies, sparsities, strict=True)
        ),
        holds=0 < best < len(LASSOS) - 1,
        why="accuracy, by the share of features that lambda removes",
    )


def _eighteen_percent(found: MirrorFindings) -> PaperClaim:
    judged, plain, served = (
        _gain(found.accuracies(base, "lasso", values))
        for base, values in (
            (found.judged, LASSOS),
            (NON_PRIVATE, LASSOS),
            (SERVED, TRUNCATIONS),
        )
    )
    drowned = found.at(DROWNED, lasso=DROWNED_LASSO * found.learns).accuracy
    return _judged(
        found,
        "the right sparsity is worth nearly 18% of accuracy over none",
        "figure 4",
        published="18%",
        ours=f"{judged:.1%}",
        holds=judged >= 0.15,
        why="15% and more counts. What lambda removes is noise, so it depends on how much there "
        "is: without noise "
        f"{plain:.1%}; at ε=1 as much lambda leaves {drowned:.1%} of accuracy, chance; served at "
        f"ε=1 {served:.1%}",
    )


def _more_nodes(found: MirrorFindings) -> PaperClaim:
    judged, drowned, plain, served = (
        found.accuracies(base, "nodes", COUNTS)
        for base in (found.judged, DROWNED, NON_PRIVATE, SERVED)
    )
    return _judged(
        found,
        "four more nodes cost at most 4% of accuracy",
        "figure 5",
        published="at most 4%",
        ours=", ".join(f"{one:.1%}" for one in judged) + " with 4, 8, 12 and 16 nodes",
        holds=_lost(judged) <= 0.04,
        why=f"at most {_lost(judged):.1%} is lost: nodes average each other's noise away. At ε=1 "
        f"all are at chance ({_percent(drowned)}); without noise {_lost(plain):.1%}; served at "
        f"ε=1, where every node has noise of its own for fewer records, {_lost(served):.1%}",
    )


def _lemma_1(found: MirrorFindings) -> PaperClaim:
    return PaperClaim(
        "a record moves what is broadcast by at most 2 alpha sqrt(n) L in L1 norm",
        "lemma 1",
        published=f"at most {number(2 * np.sqrt(found.dimension))} alpha",
        ours=f"{number(2 * found.longest)} alpha",
        verdict=held(found.longest <= np.sqrt(found.dimension)),
        why="as if a record had all features; noise is drawn for that, many times more than our "
        "sparse records need",
    )


def _theorem_1() -> PaperClaim:
    loss = disclosed(rounds=_COMPOSED)
    return PaperClaim(
        "what nodes broadcast is epsilon-differentially private, however many rounds there are",
        "theorem 1",
        published="epsilon",
        ours=f"epsilon times {number(loss)} in {_COMPOSED} rounds",
        verdict=held(loss <= 1),
        why="computed for two streams that differ in one record. Lines 7 to 10 evaluate the next "
        "gradient at parameters without noise, so that a record decides which of the later ones "
        "count: half an epsilon for each. Predictions at the node itself have no noise either",
    )


def _theorem_2(found: MirrorFindings) -> PaperClaim:
    named = [
        ("ε=1", found.at(DROWNED)),
        (f"ε={found.learns:,g}", found.at(found.judged)),
        *((f"{m} nodes, no noise", found.at(NON_PRIVATE, nodes=m)) for m in COUNTS),
    ]
    bounds = {name: found.regret_bound(one) for name, one in named}
    radius = _radius(found.at(NON_PRIVATE))
    above = [name for name, one in named if one.regret > bounds[name] / 2]
    return PaperClaim(
        "the regret is at most R sqrt((L+lambda) m T L) + 2 sqrt(2) m² n T L / epsilon "
        "(sqrt(T) - 1/2)",
        "theorem 2",
        published=", ".join(f"{number(bound)} ({name})" for name, bound in bounds.items()),
        ours=", ".join(f"{number(one.regret)} ({name})" for name, one in named),
        verdict=held(all(one.regret <= bounds[name] for name, one in named)),
        why=f"R = {number(2 * radius)}, twice the length of the comparator; L = 1, lambda = 0, "
        f"{found.records:,} records. With noise the bound is so large that it says nothing. "
        "Without noise it does not grow with the nodes, as the regret does: the proof loses a "
        "factor m after equation 18. With half of R, the length itself, the regret would exceed it "
        f"with {' and with '.join(above) or 'none of these'}",
    )


def _root(found: MirrorFindings) -> PaperClaim:
    curve = np.mean([run.regret for run in found.at(DROWNED).runs], axis=0)
    plain = np.mean([run.regret for run in found.at(NON_PRIVATE).runs], axis=0)
    half = len(curve) // 2 - 1
    growths = [log2(float(one[-1] / one[half])) for one in (curve, plain)]
    return PaperClaim(
        "with privacy the regret is O(sqrt(T))",
        "theorem 2 and equation 20",
        published="T^0.5",
        ours=f"the bound T^1.5, the regret T^{growths[0]:.2f} at ε=1, T^{growths[1]:.2f} without "
        "noise",
        verdict=held(growths[0] <= 0.75),
        why="the second term is T (sqrt(T) - 1/2), which equation 20 calls O(sqrt(T)); the regret "
        "is measured over the second half of the run",
    )


def _judged(
    found: MirrorFindings,
    says: str,
    where: str,
    *,
    published: str,
    ours: str,
    holds: bool,
    why: str,
) -> PaperClaim:
    """Return a claim about a figure; nothing can be said of it where nothing was learned."""
    return PaperClaim(
        says,
        where,
        published=published,
        ours=f"at ε={found.learns:,g}: {ours}",
        verdict=held(holds) if found.learned else "not testable",
        why=why,
    )


def _radius(outcome: MirrorOutcome) -> float:
    return float(np.mean([run.radius for run in outcome.runs]))


def _gain(accuracies: Sequence[float]) -> float:
    return max(accuracies) / accuracies[0] - 1


def _lost(accuracies: Sequence[float]) -> float:
    return max(0.0, *(a - b for a, b in pairwise(accuracies)))


def _percent(accuracies: Sequence[float]) -> str:
    return f"{min(accuracies):.1%} to {max(accuracies):.1%}"


def _apart(accuracies: Sequence[float]) -> str:
    return f"{max(accuracies) - min(accuracies):.1%} apart ({_percent(accuracies)})"
