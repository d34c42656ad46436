"""What a released model says about all items together: the shortlist, and how much is explored.

What could be gained by knowing more is the expected improvement of an item over the best one that
is listed, for those who come. An answer ignores the visitor with a probability that falls with the
square of that, never below `rate`. Then half of the draws go to items that have hardly been tried,
if there are any; the rest by expected improvement, with a fifth for all items alike.

With exact feedback and many items only some contend (`exploring.contenders`), and the others wait:
they get a first look each, and a share of `rate`.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.families.choice import COIN_SIDES, Floats, ShortlistOdds, Slots, Weights
from discreet.families.contextual.cells import CellSpace
from discreet.families.contextual.estimates import Estimates
from discreet.families.contextual.exploring import (
    SEEN,
    TRIALS,
    TRIED,
    contenders,
    expected_improvement,
    first_curiosity,
    first_looks,
    listed_worth,
    private_gains,
    told_of_tastes,
    worthwhile_trials,
)
from discreet.families.contextual.spaces import LinearSpace
from discreet.families.contextual.sums import ContextualSums
from discreet.families.shortlist import grow_shortlist

Chosen = npt.NDArray[np.bool_]

_EAGERNESS = 1.0
"""All answers explore while knowing more could gain as much as the best listed items earn;"""
_EAGERNESS_EXACT_CELLS = 2.0
"""in cells half as much, which say less about each other; not with noise, which leaves much unknown
that exploring will not tell soon."""
_IGNORANT = 4
"""In noisy cells answers explore at least as the unknown part of the items' levels to this power: a
release of hardly any feedback, after a night without visitors, is noise and must not end exploring.
How items differ between cells has no part in it: fine differences stay unknown for long."""
_ALIKE = 0.2
_CURIOSITY_STEPS = 2**20
_GREAT = 50.0
"""Stands for the epsilon of an exact answer."""


@dataclass(frozen=True, slots=True, eq=False)
class CatalogueOutlook:
    """What the model says about all items together.

    `ranking` holds every slot, the `listed` ones first; `popular` every slot by its mean among
    those who come. `odds` are those of one item of the whole catalogue.
    """

    ranking: Slots
    listed: Slots
    popular: Slots
    curiosity: Weights
    coin: int
    odds: ShortlistOdds | None


@dataclass(frozen=True, slots=True, eq=False)
class Prospects:
    """A released model, and the rule that it is asked under; `epsilon` None answers exactly."""

    space: CellSpace | LinearSpace
    sums: ContextualSums
    estimates: Estimates | None
    visible: Slots
    epsilon: float | None
    optimism: float
    rate: float

    def outlook(self) -> CatalogueOutlook:
        """Return it, without odds."""
        slots, visible = self.sums.slots, self.visible
        curiosity = first_curiosity(slots, visible, exact=self.space.exact)
        listed, popular = visible, np.arange(slots, dtype=np.intp)
        chance = 1.0 if self.rate else 0.0
        if self.estimates is not None and len(visible):
            overall = np.full(slots, -np.inf)
            overall[visible] = self._levels(self.estimates)
            popular = np.argsort(-overall, kind="stable").astype(np.intp)
            listed, explored = self._looked_at(self.estimates, overall[visible])
            if self.rate:
                chance = float(explored.sum())
            if chance:
                curiosity[visible] = np.ceil(_CURIOSITY_STEPS * explored / chance)
        rank = np.full(slots, 2)
        rank[visible] = 1
        rank[listed] = 0
        ranking = np.concatenate([listed, popular[rank[popular] == 1], popular[rank[popular] == 2]])
        return CatalogueOutlook(
            ranking=ranking.astype(np.intp),
            listed=listed,
            popular=popular,
            curiosity=curiosity,
            coin=round(chance * COIN_SIDES),
            odds=None,
        )

    def _levels(self, estimates: Estimates) -> Floats:
        """Return the visible items' means among those who come."""
        centre = estimates.shares @ estimates.people
        levels: Floats = estimates.means(centre[None], self.visible)[0]
        return levels

    @property
    def _noisy(self) -> bool:
        return bool(self.sums.variance.any())

    @property
    def _shown(self) -> Floats:
        shown: Floats = self.sums.count[self.visible].sum(axis=1)
        return shown

    def _looked_at(self, estimates: Estimates, levels: Floats) -> tuple[Slots, Floats]:
        """Return the shortlist, and how much of all answers explores each visible item."""
        inside = np.ones(len(self.visible), dtype=np.bool_)
        if not self._noisy:
            inside = contenders(self._shown, levels, self.sums.seen)
        among = self.visible[inside]
        means = estimates.means(estimates.people, among)
        errors = estimates.deviations(estimates.people, among)
        listed = among
        if self.epsilon is not None:
            odds = np.full(len(means), math.exp(min(self.epsilon, _GREAT)))
            counting = _counting(errors, estimates.levels[among], self.epsilon)
            flattered = np.clip(means + self.optimism * counting, 0.0, 1.5)
            listed = among[grow_shortlist(means=flattered, shares=estimates.shares, odds=odds)]
        shown = np.isin(among, listed)
        by_item, gain = self._gains(estimates, means, errors, among, shown)
        gains = by_item / by_item.sum()
        chance = self._chance(estimates, gain)
        explored = chance * self._spread_out(gains, inside, chance)
        if self.sums.latest_variance and isinstance(self.space, LinearSpace):
            noise = self.sums.latest_variance * float(self.space.uneven[-1])
            told = self._told_of_tastes(estimates, means, errors, noise)
            trials = self._trials(estimates, means, shown, np.where(shown, 0.0, by_item) * told)
            explored += (1.0 - chance) * trials
        looks = self._looks(inside)
        return listed, explored * (1.0 - looks.sum()) + looks

    def _gains(
        self, estimates: Estimates, means: Floats, errors: Floats, among: Slots, listed: Chosen
    ) -> tuple[Floats, float]:
        """Return what knowing each item could gain, and what part of the worth there is to gain."""
        shares, leading = estimates.shares, means[:, listed]
        best = leading.max(axis=1)
        improvement = expected_improvement(means - best[:, None], errors)
        by_item = np.maximum(shares @ improvement, 0.0) + 1e-12
        most = float(shares @ improvement.max(axis=1))
        worth = float(shares @ best)
        if self.epsilon is not None:
            odds = math.exp(min(self.epsilon, _GREAT))
            errors = estimates.levels[among]
            by_item, worth = private_gains(shares, means, improvement, leading, errors, odds)
            size = leading.shape[1]
            most = min(float(by_item.sum()), most * (odds - 1.0) / (odds + size - 1.0))
        return by_item, most / max(worth, 1e-6)

    def _chance(self, estimates: Estimates, gain: float) -> float:
        """Return the share of answers that explore."""
        exact_cells = isinstance(self.space, CellSpace) and not self._noisy
        eagerness = _EAGERNESS_EXACT_CELLS if exact_cells else _EAGERNESS
        unsure = min(1.0, eagerness * gain) ** 2
        if isinstance(self.space, CellSpace) and not exact_cells:
            unknown = 1.0 - float(estimates.known[self.visible].mean())
            unsure = max(unsure, unknown**_IGNORANT)
        # Where every item has been tried, optimism explores and knows where.
        known = self.epsilon is None and not self._noisy and not self._untried().any()
        least = 0.0 if known else self.rate
        return least + (1.0 - least) * unsure

    def _spread_out(self, gains: Floats, inside: Chosen, chance: float) -> Floats:
        """Return how the draws that explore are spread over the visible items.

        At least half of the least share is for those that have hardly been tried: the less often
        one of them was shown, the larger its part of it.
        """
        spread = np.zeros(len(inside))
        spread[inside] = (1.0 - _ALIKE) * gains + _ALIKE / len(gains)
        untried = self._untried()
        contending, waiting = untried & inside, untried & ~inside
        if contending.any():
            turns = contending / (1.0 + self._shown)
            spread = 0.5 * spread + 0.5 * turns / turns.sum()
        if waiting.any() and chance:
            share = 0.5 * self.rate / chance * float(waiting.sum() / untried.sum())
            spread = (1.0 - share) * spread + share * waiting / waiting.sum()
        return spread

    def _looks(self, inside: Chosen) -> Floats:
        """Return how much items are shown for the first time that do not contend."""
        unseen = ~inside & (self._shown < SEEN)
        share = first_looks(self.sums.seen) if unseen.any() else 0.0
        looks: Floats = share * unseen / max(1, int(unseen.sum()))
        return looks

    def _told_of_tastes(
        self, estimates: Estimates, means: Floats, errors: Floats, noise: float
    ) -> Floats:
        """Return what part of an item's tastes a trial of each size (a row) would tell."""
        shares, numbers = estimates.shares, estimates.people[:, 1:]
        apart = numbers - shares @ numbers
        rate = float(shares @ means.mean(axis=1))
        return told_of_tastes(
            np.maximum(shares @ errors**2 - estimates.levels[self.visible] ** 2, 0.0),
            size=numbers.shape[1],
            length=float(shares @ (apart**2).sum(axis=1)),
            shown=self.sums.latest * TRIALS,
            noise=noise * ((1.0 - rate) ** 2 + rate**2),
            spread=max(rate * (1.0 - rate), 0.003),
        )

    def _trials(
        self, estimates: Estimates, means: Floats, listed: Chosen, tastes: Floats
    ) -> Floats:
        """Return how much items are tried that are not listed, and so shown anyway."""
        shares, sums = estimates.shares, self.sums
        epsilon = _GREAT if self.epsilon is None else min(self.epsilon, _GREAT)
        return worthwhile_trials(
            shares @ means,
            np.where(listed, 0.0, estimates.levels[self.visible]),
            listed_worth(shares, means[:, listed], math.exp(epsilon)),
            untried=self._untried() & ~listed,
            tastes=tastes,
            visits=sums.latest,
            horizon=max(sums.feedback, sums.latest),
            variance=sums.latest_variance,
        )

    def _untried(self) -> Chosen:
        """Return which visible items have hardly been tried, as far as noise lets one tell."""
        doubt = 2.0 * np.sqrt(self.sums.variance[self.visible].max(axis=1))
        untried: Chosen = self._shown < TRIED + doubt
        return untried


def _counting(errors: Floats, levels: Floats, epsilon: float) -> Floats:
    """Return standard errors as far as they count for a shortlist at epsilon.

    What is unknown about how tastes differ counts as far as answers can differ: by randomised
    response between two items, one is answered more often than the other by tanh(epsilon / 2).
    """
    apart = np.maximum(errors**2 - levels**2, 0.0)
    counting: Floats = np.sqrt(levels**2 + math.tanh(0.5 * epsilon) * apart)
    return counting
