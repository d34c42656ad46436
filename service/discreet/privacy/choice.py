"""Choosing one arm among several: exactly, by the exponential mechanism, or from a shortlist.

Each mechanism's distribution is an explicit vector of integers, `weights(...)`, so its privacy
loss can be computed in rationals instead of being estimated; `discreet audit` does. The draw's own
tiny bias is paid for by taking `draw.BIAS` off epsilon (proof in `discreet.privacy.draw`).

Utilities must be finite and within their declared range: a value outside would have more influence
than was promised, so it is refused, never clipped in silence. Errors name arguments, not values.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.privacy.arms import (
    Base,
    Floats,
    check_base,
    check_best,
    check_count,
    check_ranking,
    check_size,
    check_utilities,
)
from discreet.privacy.draw import MOST, Multiples
from discreet.privacy.events import (
    ExactRelease,
    ExponentialChoice,
    RandomisedResponse,
    Released,
    Repeated,
)
from discreet.privacy.noise import NoiseSource
from discreet.privacy.tables import (
    NarrowTable,
    Points,
    Weights,
    WideTable,
    check_epsilon,
    exp_below,
    promised,
    weight_table,
)

MOST_STEPS = 2**20
MOST_RESPONSE = 100.0
"""A shortlist answers its best arm all but once in 10**43 at this epsilon: say `Exact` instead."""

_EXACT = ExactRelease()
_OTHER_BITS = 64
_OTHER: int = 2**_OTHER_BITS
RESPONSE_BITS = 320
"""exp(100) < 2**145, so a shortlist's total has fewer than 64 + 145 + 31 bits: `SPARE` are left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """The best arm itself; among equals, the lowest slot. Protects nobody, costs infinity."""

    def weights(self, utilities: Floats, base: Base | None = None) -> Weights:
        """Return 1 for the best arm and 0 for all others."""
        best = self._order(utilities, base)[0]
        chosen = np.zeros(len(utilities), dtype=np.int64)
        chosen[best] = 1
        return chosen

    def choose(
        self, *, utilities: Floats, noise: NoiseSource | None = None, base: Base | None = None
    ) -> Released[int]:
        """Return the slot of the best arm. Takes `noise`, so that mechanisms can be swapped."""
        return Released(int(self._order(utilities, base)[0]), _EXACT)

    def choose_several(
        self,
        *,
        utilities: Floats,
        count: int,
        noise: NoiseSource | None = None,
        base: Base | None = None,
    ) -> Released[tuple[int, ...]]:
        """Return the best `count` arms, best first."""
        order = self._order(utilities, base)
        check_count(count, len(order))
        return Released(tuple(int(slot) for slot in order[:count]), _EXACT)

    def _order(self, utilities: Floats, base: Base | None) -> npt.NDArray[np.intp]:
        values = check_utilities(utilities, -sys.float_info.max, sys.float_info.max)
        order = np.argsort(-values, kind="stable")
        if base is not None:
            order = order[check_base(base, len(values), MOST)[order] > 0]
        return order


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialMechanism:
    """An arm with probability proportional to base * exp(epsilon * utility / (2 sensitivity)).

    Neighbouring inputs are those whose utilities differ by at most `sensitivity` in every arm.
    The privacy loss then ranges over an interval of length at most `epsilon` (bounded range, which
    implies epsilon-DP), exactly, for the integers that are really drawn from:

    1. Grid. A utility u becomes q = floor((u - lower) * steps / (upper - lower) + 1/2). Five
       roundings of double precision move the number under the floor by less than
       steps * 2**-50 <= 2**-30, so utilities that differ by at most `sensitivity` have grid
       points that differ by at most
           stride = ceil(sensitivity * steps / (upper - lower)) + 1,
       where the 1 pays for the roundings, here and in the caller's arithmetic; and never by more
       than `steps`.
    2. Table. `geometric_table` gives integers with T[a] / T[b] <= exp(h) whenever
       a - b <= stride, for h = (epsilon - BIAS) / 2. No data-dependent maximum is subtracted
       anywhere: the table is fixed before any utility is seen.
    3. Range. An arm's weight is base * T[q]. Between neighbours the base cancels, so each
       log-ratio of weights lies in [-h, h]. Normalising adds the same constant to every arm's
       log-ratio, so differences between arms stay within 2h = epsilon - BIAS.
    4. Draw. Adds at most BIAS to such a difference.

    `base` is a measure over arms that must not depend on the data being protected: non-negative
    integers, 0 meaning "not available".

    The table has 2**42 at its top, so that two million arms sum below 2**63. If the range of
    utilities is worth more than exp(25) or so, it is wider, and the draw works in several columns:
    slower, fixed-time all the same, and decided by the parameters alone.
    """

    epsilon: float
    sensitivity: float = 1.0
    lower: float = 0.0
    upper: float = 1.0
    steps: int = 4096
    _factor: float = field(init=False, repr=False, compare=False)
    _table: NarrowTable | WideTable = field(init=False, repr=False, compare=False)
    _event: ExponentialChoice = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if not (math.isfinite(self.sensitivity) and self.sensitivity > 0):
            raise InvalidArgument("sensitivity", "must be finite and greater than 0")
        if not math.isfinite(self.lower):
            raise InvalidArgument("lower", "must be finite")
        if not (math.isfinite(self.upper - self.lower) and self.lower < self.upper):
            raise InvalidArgument("upper", "must be finite and greater than lower")
        if not math.isfinite(MOST_STEPS / (self.upper - self.lower)):
            raise InvalidArgument("upper", "must be further above lower")
        if not 1 <= self.steps <= MOST_STEPS:
            raise InvalidArgument("steps", f"must be between 1 and {MOST_STEPS}")
        width = Fraction(self.upper) - Fraction(self.lower)
        stride = math.ceil(Fraction(self.sensitivity) * self.steps / width) + 1
        table = weight_table(self.epsilon, self.steps, min(stride, self.steps))
        object.__setattr__(self, "_factor", self.steps / (self.upper - self.lower))
        object.__setattr__(self, "_table", table)
        object.__setattr__(self, "_event", ExponentialChoice(self.epsilon))

    def weights(self, utilities: Floats, base: Base | None = None) -> Weights:
        """Return the integers to which the arms' probabilities are proportional."""
        points = self._points(utilities)
        return self._table.weights(points, self._multiples(base, points))

    def probabilities(self, utilities: Floats, base: Base | None = None) -> Floats:
        """Return the arms' probabilities, rounded to double precision."""
        weights = self.weights(utilities, base)
        total = int(weights.sum())
        return np.asarray(weights / total, dtype=np.float64)

    def choose(
        self, *, utilities: Floats, noise: NoiseSource, base: Base | None = None
    ) -> Released[int]:
        """Return the slot of one arm."""
        points = self._points(utilities)
        return Released(self._table.draw(points, self._multiples(base, points), noise), self._event)

    def choose_each(self, *, utilities: Floats, noise: NoiseSource) -> tuple[list[int], Floats]:
        """Return the slot of one arm for each row of utilities, and its probability.

        The rows are different people's, and their draws are independent: each is what `choose`
        releases. For a caller that has its events already.
        """
        points = self._points(utilities.ravel(), arms=utilities.shape[1])
        chosen, shares = self._table.draw_each(points.reshape(utilities.shape), noise)
        return chosen.tolist(), shares

    def choose_several(
        self, *, utilities: Floats, count: int, noise: NoiseSource, base: Base | None = None
    ) -> Released[tuple[int, ...]]:
        """Return `count` different arms, drawn one after another from those that remain.

        Which arms remain is known from the answer so far, so each draw is a release of its own
        under a base that does not depend on the data: `count` releases, adaptively composed.
        """
        points = self._points(utilities)
        left = self._multiples(base, points)
        left = np.ones(len(points), dtype=np.int64) if left is None else left.copy()
        check_count(count, int(np.count_nonzero(left)))
        chosen = []
        for _ in range(count):
            chosen.append(self._table.draw(points, left, noise))
            left[chosen[-1]] = 0
        return Released(tuple(chosen), Repeated(self._event, count))

    def _points(self, utilities: Floats, *, arms: int | None = None) -> Points:
        values = check_utilities(utilities, self.lower, self.upper)
        if (arms or len(values)) > self._table.most_base:
            raise InvalidArgument("utilities", f"must be at most {self._table.most_base} arms")
        return ((values - self.lower) * self._factor + 0.5).astype(np.int64)

    def _multiples(self, base: Base | None, points: Points) -> Multiples | None:
        return None if base is None else check_base(base, len(points), self._table.most_base)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortlistResponse:
    """The best arm of a public shortlist, or another: randomised response.

    The best of h arms is answered with probability e^epsilon / (e^epsilon + h - 1), each other one
    with probability 1 / (e^epsilon + h - 1). The shortlist and its size are public; which arm is
    the best depends on the person asking, and that is what is protected.

    Proof. The weights are A for the best arm and C for every other, with A / C <= exp(epsilon -
    BIAS) by `exp_below`, and the total A + (h - 1) C is the same for every person. So the ratio of
    one arm's probabilities for two persons is A / C, 1 or C / A, times the draw's bias: the loss
    lies within [-epsilon, epsilon], and takes both signs when the best arms differ, which is why
    this is priced as a pure release and not as one of bounded range.

    A shortlist of one arm shows nothing. It is answered with the same event all the same, because
    events are planned before the shortlist is looked at.
    """

    epsilon: float
    _best: int = field(init=False, repr=False, compare=False)
    _event: RandomisedResponse = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.epsilon > MOST_RESPONSE:
            raise InvalidArgument("epsilon", f"must be at most {MOST_RESPONSE:g}")
        best = exp_below(promised(self.epsilon), _OTHER_BITS)
        object.__setattr__(self, "_best", best)
        object.__setattr__(self, "_event", RandomisedResponse(self.epsilon))

    def weights(self, *, best: int, size: int) -> Weights:
        """Return the integers to which the probabilities of a shortlist's arms are proportional."""
        check_best(best, size)
        weights = np.full(size, _OTHER, dtype=object)
        weights[best] = self._best
        return weights

    def probability(self, *, is_best: bool, size: int) -> float:
        """Return the probability with which the best, or any one other arm, is answered."""
        check_size(size)
        weight = self._best if is_best else _OTHER
        return weight / (self._best + (size - 1) * _OTHER)

    def choose(self, *, best: int, size: int, noise: NoiseSource) -> Released[int]:
        """Return the position of one arm in a shortlist of `size` whose best is at `best`."""
        check_best(best, size)
        return Released(self._draw(best, size, noise), self._event)

    def choose_several(
        self, *, ranking: Sequence[int], count: int, noise: NoiseSource
    ) -> Released[tuple[int, ...]]:
        """Return `count` different positions; `ranking` holds all of them, best first.

        Each draw is a randomised response over what remains of the shortlist, which is known from
        the answer so far: `count` releases, adaptively composed.
        """
        remaining = check_ranking(ranking)
        check_count(count, len(remaining))
        left = sorted(remaining)
        chosen = []
        for _ in range(count):
            position = left.pop(self._draw(left.index(remaining[0]), len(left), noise))
            remaining.remove(position)
            chosen.append(position)
        return Released(tuple(chosen), Repeated(self._event, count))

    def propensities(self, *, ranking: Sequence[int], chosen: Sequence[int]) -> tuple[float, ...]:
        """Return the probability of each of `choose_several`'s draws, given the ones before."""
        remaining = check_ranking(ranking)
        shares = []
        for position in chosen:
            if position not in remaining:
                raise InvalidArgument("chosen", "must be different positions of the ranking")
            shares.append(self.probability(is_best=position == remaining[0], size=len(remaining)))
            remaining.remove(position)
        return tuple(shares)

    def _draw(self, best: int, size: int, noise: NoiseSource) -> int:
        return self.position_at(noise.bits(RESPONSE_BITS), best=best, size=size)

    def position_at(self, uniform: int, *, best: int, size: int) -> int:
        """Return the position that a uniform integer of `RESPONSE_BITS` bits falls upon.

        For a caller that draws for many at once, and has its event already. [0, total) is cut into
        the best arm's interval and then one for each other arm, in order.
        """
        drawn = uniform * (self._best + (size - 1) * _OTHER) >> RESPONSE_BITS
        other = (drawn - self._best) // _OTHER
        other += other >= best
        return best if drawn < self._best else other
