"""The noise of a release that protects everything a person did.

What a person puts into a release: nothing, or c = `contribution` times the mean of their records,
added to one of the release's slots. A record is z = (g, the upper triangle of x x^T, w u x), with
the names of `sums` and g = 1/4 for the count, which is private here: whether feedback came at all
is not public. So |z|^2 <= g^2 + 1 + a, and |z - z'| <= (2 + a)/sqrt(2).

How far can a person move a release? Distances are convex, so the farthest that one person's data
can be from other data of theirs is attained by single records:

    same slot         c |z - z'|                  <=  c (2 + a)/sqrt(2)           = 1.812 c
    another slot      c sqrt(|z|^2 + |z'|^2)      <=  c sqrt(2 (g^2 + 1 + a))     = 1.803 c
    no part at all    c |z|                       <=  c sqrt(g^2 + 1 + a)         = 1.275 c

So the sensitivity of replacing *everything* a person did is 1.812 c, and a release costs
rho = (1.812 c / deviation)^2 / 2. A release in which the person takes part in one world only costs
at most half of that, since 1.275^2 <= 1.812^2 / 2. Hence the whole: in two worlds that differ in
everything that a person did, in which they take part N and N' times, in the same releases or in
others, all releases together lose at most max(N, N') rho, which is what one of the two ledgers
charged.
"""

import math
from dataclasses import dataclass

from discreet.errors import InvalidArgument
from discreet.families.fclub.sums import BALANCE, ONE_REPLACED, STEPS
from discreet.privacy.charges import NANO, round_down
from discreet.privacy.conversions import zcdp_rho
from discreet.privacy.events import GaussianRelease
from discreet.privacy.matrices import half_size

COUNT_WEIGHT = 0.25
"""The g of the proof."""

_UP = 1 + 2.0**-40


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonNoise:
    """The noise of a release: of one person, at most `contribution` observations are in it."""

    dimensions: int
    contribution: int
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if self.contribution < 1:
            raise InvalidArgument("contribution", "must be at least 1")
        apart = 2 * (COUNT_WEIGHT**2 + 1 + BALANCE**2)
        assert apart <= ONE_REPLACED**2, "another slot must not be farther than another record"

    @property
    def fields(self) -> int:
        """Numbers of a slot."""
        return 1 + half_size(self.dimensions) + self.dimensions

    @property
    def sensitivity(self) -> float:
        """How far everything that one person did moves a release.

        Rounding every record to the grid, and the scaled sums once more, moves each number by half
        a step a time; there are two worlds.
        """
        rounding = (self.contribution + 1) * math.sqrt(self.fields) / STEPS
        return (self.contribution * ONE_REPLACED + rounding) * _UP

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise on every number of every slot."""
        # The ledger's unit is coarser than a float: the scale is derived from whole units.
        units = round_down(zcdp_rho(epsilon=self.epsilon, delta=self.delta), NANO)
        if units == 0:
            raise InvalidArgument("epsilon", "must be larger for this delta")
        return self.sensitivity / math.sqrt(2 * units / NANO) * _UP

    @property
    def event(self) -> GaussianRelease:
        """What a release is to a person who takes part in it."""
        return GaussianRelease(scale=self.deviation, sensitivity=self.sensitivity)
