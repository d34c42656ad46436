"""The p-REC rule: votes, truncated and shifted, exponentiated, and mixed with a little chance.

Gilbert, Liu and Yu, "On Differentially Private Online Collaborative Recommendation Systems"
(2015), algorithm 1, procedure RecommendByWeight.

| paper   | here            | range                                   |
|---------|-----------------|-----------------------------------------|
| m       | `objects`       | at least 1                              |
| lambda  | `sharpness`     | at least 2 m ln 2, at most 4096         |
| gamma   | `uniform_share` | (0, 1/2]                                |
| rho     | 1 / (2 m)       |                                         |
| x_j     | share of the votes that object j has |                    |
| W       | number of votes, each of weight 1 | `survivors` and more  |

With phi(x) = exp(lambda x) - exp(lambda rho) above rho and 0 below, and F = sum of phi(x_j),

    P(j) = gamma / m + (1 - gamma) * phi(x_j) / F.

If there are fewer objects than m, the others are taken to have no votes, and their chance, which is
gamma / m each, goes to those that there are in equal parts: as if one of them were drawn, and a
random one shown in its place. That is post-processing, so all that follows holds with m.

Several objects (`choose_several`, ours; the paper shows one): the first as above, each further one
among those that are left, in proportion to

    exp(lambda / 2 * min(x_j - rho, x* - rho)), below 0 taken as 0,

x* being the largest share of an object drawn so far. A further draw depends on the votes only if
some object drawn before *and* some object that is left have shares above rho: the proof of what a
run of draws reveals needs that (`discreet.families.p_rec.model`).

Guarantee. Protects one voter against whoever sees the object drawn. Neighbouring inputs: one vote
is there or not, and both inputs hold at least `survivors` votes (the caller must see to that, by a
test that it pays for; fewer votes are refused here). Then |ln P(j) / P'(j)| <= `event.epsilon`,
j being one object or a list of k of them:

    epsilon = (K + 3/4 (min(k, m - 1) - 1)) * lambda * ln(1 + 1 / survivors),
    K = 1 + ln(1 + 1 / (e g)) / lambda + (c - 1) + 1 / (m (tau - 1)),
    tau = exp(lambda / (2 m)),  g = gamma / (m (1 - gamma)),  c = max(1, 1 / (g m (tau - 1))).

For 2 to 10 objects and tau of 10 or more, K lies between 1.05 and 1.28 if gamma >= 1 / tau, and is
at most 1.82 with the paper's own gamma at m = 2, where that is less than 1 / tau. The paper's lemma
12 has 3 / W where we have K ln(1 + 1 / (W - 1)), needs W >= 6 m, and is loose because it
bounds F by phi(1/m), where convexity gives m times that.

Proof. Let the weight of the vote for object k grow from 0 to 1, w being the number of votes so
far. Then dx_k = (1 - x_k) dw/w and dx_j = -x_j dw/w for the others; every ln P(j) is continuous
and piecewise smooth in w, so it is enough to show |d ln P(j)| <= K lambda dw/w and integrate
dw/w from W - 1 to W. Write M = exp(lambda rho). Where phi > 0, dphi = lambda (phi + M) dx. As phi
is convex and the x_j sum to 1, F >= m phi(1/m) = m M (tau - 1). Put, for an object j with
phi_j > 0 (else P(j) stays gamma / m and loses nothing),

    A_j = (phi_j + M) / (phi_j + g F) <= max(1, M / (g F)) <= c,
    B_j = phi_j / (phi_j + g F) <= min(1, A_j),
    v = M / F <= 1 / (m (tau - 1)),   s_j = phi_j / F,

and note for objects i, j with y = x_i - x_j >= 0 that phi_i / phi_j >= exp(lambda y), so that
B_j y <= y / (1 + g exp(lambda y)) <= Y = ln(1 + 1 / (e g)) / lambda (the maximum is Lambert's
W(1 / (e g)) / lambda, and W(z) <= ln(1 + z)). Because 1/(gF + phi_j) * F = B_j / s_j,

    d ln P(j) = (dphi_j - s_j dF) / (phi_j + g F).

(i) j = k. It is lambda dw/w times at least 0 and at most A_k (1 - x_k) + B_k (x_max + v), x_max
    being the largest other share. If x_max <= x_k that is at most c + v; otherwise, with
    y = x_max - x_k, at most c (1 - x_k) + x_k + B_k y + v <= c + Y + v = K.
(ii) j != k, upwards: at most B_j (x_max + v) - A_j x_j <= B_j (x_max - x_j) + v <= Y + v.
(iii) j != k, downwards: at most A_j x_j + B_j (s_k + v) (1 - x_k), the second term only if
    phi_k > 0. If x_j <= x_k, it is at most c x_j + (1 - x_j) + v. Otherwise, with y = x_j - x_k,
    (1 - x_k) s_k = (1 - x_j) s_k + y s_k <= (1 - x_j) + y / (1 + exp(lambda y)), and the last
    fraction is at most Y because g <= 1. In both cases at most c + Y + v = K.

A further draw. Given what was drawn before, |d ln P(j)| = |dq_j - sum of P(i) dq_i| is at most by
what two of the exponents q move apart. In units of lambda/2 dw/w an exponent follows the smaller of
x_j and x*, or stays where that is below rho. If k holds x*, those that follow x* rise by 1 - x*,
and one that follows its own x_i <= x* falls by no more than x*: 1 at most. If k is left, its own
rises by at most 1 - x_k; another i falls by at most the smaller of x_i and x*, which with x_k are
shares of three different objects, so by at most (1 - x_k) / 2: 3/2 at most. Otherwise none rises
and none falls by more than 1/2. So |d ln P(j)| <= 3/4 lambda dw/w. The chances of the draws
multiply, so their losses add; and of the m objects the last one that is left is certain.

Arithmetic. Exponentials are fixed-point integers with relative error below 2**-115; so phi, whose
argument exceeds rho by at least 1 / (2 m W) when it is not 0, has relative error below 2**-70,
probabilities below 2**-68, and their log-ratio below 2**-66, to which the draw adds its bias. The
event's epsilon has 2**-40 on top for that. gamma is rounded up to a multiple of 2**-64; K falls
as gamma grows. Each draw performs the same operations whatever the votes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.privacy.arms import Floats
from discreet.privacy.draw import SPARE, draw_counted
from discreet.privacy.events import Released, TruncatedChoice
from discreet.privacy.noise import NoiseSource
from discreet.privacy.tables import exp_below

Votes = npt.NDArray[np.integer]
Weights = npt.NDArray[np.object_]

MOST_SHARPNESS = 4096.0
MOST_VOTES = 2**40

_SHARE_BITS = 64
_PLACES = 160
_DIGITS = 16
"""A share of the votes is cut to 16 digits of base 256, and its exponential is the product of one
table entry for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedExponential:
    """The rule with its parameters. See this module's first lines for the guarantee."""

    objects: int
    sharpness: float
    uniform_share: float
    survivors: int
    event: TruncatedChoice = field(init=False, repr=False, compare=False)
    _share: int = field(init=False, repr=False, compare=False)
    _half_powers: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)
    _powers: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)
    _threshold: int = field(init=False, repr=False, compare=False)
    _bits: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        event = TruncatedChoice(self.objects, self.sharpness, self.uniform_share, self.survivors)
        if self.sharpness > MOST_SHARPNESS:
            raise InvalidArgument("sharpness", f"must be at most {MOST_SHARPNESS:g}")
        if self.survivors > MOST_VOTES:
            raise InvalidArgument("survivors", f"must be at most {MOST_VOTES}")
        powers = _powers(self.sharpness)
        set_field = object.__setattr__
        set_field(self, "event", event)
        set_field(self, "_share", math.ceil(Fraction(self.uniform_share) * 2**_SHARE_BITS))
        set_field(self, "_powers", powers)
        set_field(self, "_half_powers", _powers(self.sharpness / 2))
        set_field(self, "_threshold", _exponential(powers, 1, 2 * self.objects))
        # The weights sum to 2**64 * objects * F, and F is at most objects * exp(sharpness).
        bits = _SHARE_BITS + 2 * self.objects.bit_length() + powers[0][1].bit_length()
        set_field(self, "_bits", bits + SPARE)

    @classmethod
    def published(
        cls, *, objects: int, rounds: int, mistakes: int, survivors: int
    ) -> "TruncatedExponential":
        """Take lambda and gamma from the number of rounds T and the peers' mistakes R."""
        if not 0 <= mistakes < rounds:
            raise InvalidArgument("mistakes", "must not be negative and be fewer than the rounds")
        ratio = rounds / (mistakes + 1)
        if ratio < 2 or 3 * ratio - 1 < 2 * objects:
            raise InvalidArgument("rounds", "must be more, for so many objects and mistakes")
        return cls(
            objects=objects,
            sharpness=2 * objects * math.log(ratio),
            uniform_share=objects / (3 * ratio - 1),
            survivors=survivors,
        )

    def weights(self, votes: Votes) -> Weights:
        """Return the integers to which the objects' probabilities are proportional.

        They are gamma F + m (1 - gamma) phi_j, times 2**64, in the fixed point of `_powers`; if
        there are fewer objects than m, each has its part of what the others would have.
        """
        return np.array(self._weights(*self._counts(votes)), dtype=object)

    def _weights(self, counts: Sequence[int], total: int) -> list[int]:
        excess = []
        for count in counts:
            phi = _exponential(self._powers, count, total) - self._threshold
            # Truncation is decided in whole votes; phi is computed in either case.
            excess.append(phi if 2 * self.objects * count > total else 0)
        floor = self._share * sum(excess)
        slope = self.objects * (2**_SHARE_BITS - self._share)
        missing = self.objects - len(counts)
        if not missing:
            return [floor + slope * phi for phi in excess]
        here = len(counts)
        return [here * (floor + slope * phi) + missing * floor for phi in excess]

    def further_weights(self, votes: Votes, *, drawn: Sequence[int]) -> dict[int, int]:
        """Return integers to which the chances of all objects but those drawn are proportional."""
        counts, total = self._counts(votes)
        return _capped(counts, self._heights(counts, total), drawn)

    def _heights(self, counts: Sequence[int], total: int) -> list[int]:
        """Return exp(lambda / 2 * (x_j - rho)) for each object, 1 below rho, in fixed point."""
        whole = 2 * self.objects * total
        return [
            _exponential(self._half_powers, max(2 * self.objects * count - total, 0), whole)
            for count in counts
        ]

    def probabilities(self, votes: Votes) -> Floats:
        """Return the objects' probabilities, rounded to double precision."""
        weights = self.weights(votes)
        total = sum(weights)
        return np.array([weight / total for weight in weights], dtype=np.float64)

    def choose(self, *, votes: Votes, noise: NoiseSource) -> Released[int]:
        """Return the position of one object."""
        return Released(self._first(*self._counts(votes), noise), self.event)

    def _first(self, counts: Sequence[int], total: int, noise: NoiseSource) -> int:
        bits = self._bits
        if len(counts) < self.objects:
            bits += self.objects.bit_length()
        return draw_counted(self._weights(counts, total), noise, bits=bits)

    def choose_several(
        self, *, votes: Votes, limit: int, noise: NoiseSource
    ) -> Released[tuple[int, ...]]:
        """Return the positions of `limit` different objects, in the order in which to show them."""
        if not 1 <= limit <= len(votes):
            raise InvalidArgument("limit", "must be from 1 to the number of objects")
        counts, total = self._counts(votes)
        drawn = [self._first(counts, total, noise)]
        if limit == self.event.shown == 1:
            return Released(tuple(drawn), self.event)
        heights = self._heights(counts, total)
        bits = self._half_powers[0][1].bit_length() + self.objects.bit_length() + SPARE
        for _ in range(limit - 1):
            left = _capped(counts, heights, drawn)
            place = draw_counted(list(left.values()), noise, bits=bits)
            drawn.append(list(left)[place])
        return Released(tuple(drawn), replace(self.event, shown=limit))

    def _counts(self, votes: Votes) -> tuple[list[int], int]:
        array = np.asarray(votes)
        if array.ndim != 1 or not 1 <= len(array) <= self.objects:
            raise InvalidArgument(
                "votes", f"must have one count for each object, of which there are {self.objects}"
            )
        if array.dtype.kind not in "iu":
            raise InvalidArgument("votes", "must be integers")
        counts = array.tolist()
        total = sum(counts)
        if min(counts) < 0 or total > MOST_VOTES:
            raise InvalidArgument("votes", f"must not be negative nor sum above {MOST_VOTES}")
        if total < self.survivors:
            raise InvalidArgument("votes", "must be at least as many as the promised survivors")
        return counts, total


def _capped(counts: Sequence[int], heights: Sequence[int], drawn: Sequence[int]) -> dict[int, int]:
    """Return the heights of the objects that are left, none above that of the largest drawn."""
    most = max(drawn, key=counts.__getitem__)
    return {
        position: heights[position if counts[position] <= counts[most] else most]
        for position in range(len(counts))
        if position not in drawn
    }


@lru_cache(maxsize=128)
def _powers(sharpness: float) -> tuple[tuple[int, ...], ...]:
    """Return, for each place of a share in base 256, exp(sharpness * digit / 256**place).

    Place 0 holds the digits 0 and 1: a share of exactly 1. Each entry is the one before times the
    first, so the relative error at digit d is below 2 d * 2**-160, and a product of 17 entries has
    less than 17 * 2**-150; cutting the share costs sharpness * 2**-128 <= 2**-116 more.
    """
    one = 1 << _PLACES
    table = []
    for place in range(_DIGITS + 1):
        step = exp_below(Fraction(sharpness) / 256**place, _PLACES)
        row = [one]
        for _ in range(255 if place else 1):
            row.append(row[-1] * step >> _PLACES)
        table.append(tuple(row))
    return tuple(table)


def _exponential(powers: tuple[tuple[int, ...], ...], count: int, total: int) -> int:
    """Return exp(sharpness * count / total) in fixed point."""
    digits = ((count << (8 * _DIGITS)) // total).to_bytes(_DIGITS + 1, "big")
    value = powers[0][digits[0]]
    for entries, digit in zip(powers[1:], digits[1:], strict=True):
        value = value * entries[digit] >> _PLACES
    return value
