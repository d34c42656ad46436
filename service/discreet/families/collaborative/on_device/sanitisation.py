"""From noisy counts back to a set of items: phase 2 of S-DPDP and M-DPDP.

The paper looks for the items whose category counts come nearest, in squares, to the noisy ones: a
0-1 least squares over thousands of items. Items with the same categories are interchangeable, so
here the unknowns are how many of each group, 0 .. n_g, and then that many are drawn.

1. Relaxed, over the reals: minimise |A'x - b|^2 / 2 + evenness * sum_g x_g^2 / (2 m_g). Many x fit
   equally well; the second term picks the one that spreads over the groups as their masses m_g do,
   so that what is released does not pile up in a few odd ones. The mass is the number of items,
   or follows their public popularity (`expectation`). The dual has a variable a category,

       minimise  |u|^2 / 2 - b'u + sum_g h_g(a_g'u),   h_g' = clip(m_g t / evenness, 0, n_g),

   convex and piecewise quadratic: Newton's method with a line search ends after some ten steps.
2. Systematic rounding along the groups, which keeps the total and sends each x_g to one of its two
   neighbours; then local search: one more, one less, or one of a group for one of another, while
   that comes nearer to b.

How good the answer is, is known every time. For any u, b'u - |u|^2 / 2 - sum_g n_g max(a_g'u, 0)
is below the relaxed optimum (with no evenness at all), and so below every integer answer's
|A'x - b|^2 / 2. `excess` is the difference. Where b is made of integers, squares move in whole
steps, so an excess below 1/2 proves the answer optimal.

**Nothing here sees a history.** The noisy counts go in, and randomness that is independent of
everything. So whatever comes out is as private as the counts are: the choice of the items, not
only their number. Drawing from the history first, to keep the profile "true", would break that at
once: an item that is preferred because it is in the history tells that it is, and no noise on the
counts covers it.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.families.collaborative.on_device.catalogue import (
    Catalogue,
    Concerns,
    Floats,
    Integers,
    scope_of,
)
from discreet.families.collaborative.on_device.expectation import Expectation

EVENNESS = 1e-3

_NEWTON_STEPS = 200
_TOLERANCE = 1e-7
_SECANTS = 60
_LONGEST = 2.0**20
_CANDIDATES = 96
"""Groups that are tried for an exchange from each side; small catalogues have all of them tried."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """How many of each protected group; `excess` bounds what a better answer could save."""

    counts: Integers
    excess: float


@dataclass(frozen=True, slots=True, eq=False)
class Sanitiser:
    """The problem without its right-hand side: compiled once for a catalogue and an agreement."""

    incidence: Floats
    sizes: Floats
    masses: Floats
    overlap: Floats

    @classmethod
    def of(cls, incidence: Floats, sizes: Integers, masses: Floats | None = None) -> "Sanitiser":
        """Compile groups by categories, how many items the groups have, and their masses."""
        whole = sizes.astype(np.float64)
        return cls(incidence, whole, whole if masses is None else masses, incidence @ incidence.T)

    def relaxed(self, wanted: Floats) -> tuple[Floats, float]:
        """Return real counts, as even as fits, and a lower bound on half the squared misfit."""
        duals = np.zeros(len(wanted))
        pull = np.zeros(len(self.sizes))
        for _ in range(_NEWTON_STEPS):
            slope = duals - wanted + self._counts(pull) @ self.incidence
            if float(np.abs(slope).max(initial=0.0)) <= _TOLERANCE:
                break
            inside = (pull >= 0) & (self.masses * pull <= self.sizes * EVENNESS)
            bending = np.where(inside, self.masses / EVENNESS, 0.0)
            curvature = (self.incidence.T * bending) @ self.incidence
            curvature[np.diag_indices_from(curvature)] += 1.0
            move: Floats = np.linalg.solve(curvature, -slope).astype(np.float64)
            tow = self.incidence @ move
            step = self._step(duals, pull, move, tow, wanted)
            duals = duals + step * move
            pull = pull + step * tow
        bound = float(wanted @ duals - duals @ duals / 2 - self.sizes @ np.maximum(pull, 0.0))
        return self._counts(pull), max(0.0, bound)

    def fit(self, wanted: Floats, rng: np.random.Generator) -> Fit:
        """Return integer counts whose categories come near to `wanted`, and how near they are."""
        reals, bound = self.relaxed(wanted)
        ends = np.floor(np.cumsum(reals) + rng.random())
        counts = np.clip(np.diff(ends, prepend=0.0), 0.0, self.sizes)
        misfit = self._improve(counts, wanted)
        return Fit(counts.astype(np.int64), misfit - bound)

    def _counts(self, pull: Floats) -> Floats:
        counts: Floats = np.clip(self.masses * pull / EVENNESS, 0.0, self.sizes)
        return counts

    def _step(
        self, duals: Floats, pull: Floats, move: Floats, tow: Floats, wanted: Floats
    ) -> float:
        """Return the least point along the move, where the derivative, which only grows, is 0."""
        flat = float((duals - wanted) @ move)
        steep = float(move @ move)

        def derivative(step: float) -> float:
            return flat + step * steep + float(self._counts(pull + step * tow) @ tow)

        low, high = 0.0, 1.0
        below, above = derivative(low), derivative(high)
        while above < 0 and high < _LONGEST:
            low, below = high, above
            high *= 2
            above = derivative(high)
        # The secant of a piecewise linear function is exact within a piece; halving the value at
        # an end that stays (the Illinois rule) brings the two ends into the same one.
        enough = _TOLERANCE * (abs(below) + abs(above))
        stayed = 0
        for _ in range(_SECANTS):
            if above <= below:
                break
            middle = (low * above - high * below) / (above - below)
            value = derivative(middle)
            if abs(value) <= enough:
                return middle
            if value > 0:
                high, above = middle, value
                below, stayed = (below / 2 if stayed > 0 else below), 1
            else:
                low, below = middle, value
                above, stayed = (above / 2 if stayed < 0 else above), -1
        return (low + high) / 2

    def _improve(self, counts: Floats, wanted: Floats) -> float:
        """Move counts, in place, while that helps; return half the squared misfit in the end."""
        missing = wanted - counts @ self.incidence
        half_length = np.diagonal(self.overlap) / 2
        while True:
            pull = self.incidence @ missing
            # What half the squared misfit changes by, with one more or one less of a group.
            more = np.where(counts < self.sizes, half_length - pull, np.inf)
            less = np.where(counts > 0, half_length + pull, np.inf)
            gainers, losers = _best(more), _best(less)
            swaps = more[gainers, None] + less[None, losers]
            swaps -= self.overlap[np.ix_(gainers, losers)]
            best_more, best_less = int(np.argmin(more)), int(np.argmin(less))
            at = np.unravel_index(int(np.argmin(swaps)), swaps.shape)
            changes = (more[best_more], less[best_less], swaps[at])
            kind = int(np.argmin(changes))
            if changes[kind] >= -1e-9:
                return float(missing @ missing / 2)
            if kind == 0:
                moves = [(best_more, 1.0)]
            elif kind == 1:
                moves = [(best_less, -1.0)]
            else:
                moves = [(int(gainers[at[0]]), 1.0), (int(losers[at[1]]), -1.0)]
            for group, change in moves:
                counts[group] += change
                missing = missing - change * self.incidence[group]


def _best(changes: Floats) -> npt.NDArray[np.intp]:
    if len(changes) <= _CANDIDATES:
        return np.arange(len(changes))
    return np.argpartition(changes, _CANDIDATES)[:_CANDIDATES]


@lru_cache(maxsize=64)
def sanitiser_of(
    catalogue: Catalogue, concerns: Concerns, expectation: Expectation | None = None
) -> Sanitiser:
    """Return the compiled problem of a catalogue and an agreement."""
    scope = scope_of(catalogue, concerns)
    masses = None if expectation is None else expectation.masses(scope)
    return Sanitiser.of(scope.incidence, scope.sizes, masses)


def sanitise(
    *,
    catalogue: Catalogue,
    concerns: Concerns,
    wanted: Floats,
    seed: int,
    expectation: Expectation | None = None,
) -> frozenset[str]:
    """Return protected items whose counts in the counted categories come near to `wanted`.

    `seed` has to be independent of the history, and so should be drawn for the purpose.
    """
    scope = scope_of(catalogue, concerns)
    if wanted.shape != scope.counted.shape or not np.isfinite(wanted).all():
        raise InvalidArgument("wanted", "must be one finite number for each counted category")
    if expectation is not None and expectation.catalogue is not catalogue:
        raise InvalidArgument("expectation", "must be of the same catalogue")
    if not len(scope.counted):
        return frozenset()
    rng = np.random.default_rng(seed)
    fit = sanitiser_of(catalogue, concerns, expectation).fit(wanted, rng)
    drawn: list[str] = []
    for group in np.flatnonzero(fit.counts):
        at = int(scope.protected[group])
        members = catalogue.members[at]
        chances = None
        if expectation is not None:
            chances = expectation.weights[at] / expectation.weights[at].sum()
        chosen = rng.choice(len(members), int(fit.counts[group]), replace=False, p=chances)
        drawn.extend(members[each] for each in chosen)
    return frozenset(drawn)
