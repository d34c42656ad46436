"""What everybody knows about histories, used to read noisy counts: the catalogue, popularity.

The paper turns noisy counts into items as if any counts were as likely as any others, and every
item as likely as any other. At a small epsilon the noise then fills a profile with hundreds of
items, and a recommender does worse with it than with nothing at all. But something is public: the
catalogue always, and the popularity of its items wherever a service shows what is popular. So

- a category's count is taken to be T p_j give or take `spread` of it, where p_j is the share of
  the public's attention that the category has (of the catalogue's items, where no popularity is
  known) and T the length of the history, itself estimated from the noisy counts and a typical
  length; the noisy count and this expectation are averaged by their precisions, as for normal
  variables;
- among groups that fit equally well, and among the items of a group, popular ones are preferred.

**This costs no privacy.** It is a function of the noisy counts and of public numbers. The numbers
must really be public: a popularity that was computed from this person's raw history is not.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet.errors import InvalidArgument
from discreet.families.collaborative.on_device.catalogue import (
    TYPICAL,
    Catalogue,
    Floats,
    ReleaseScope,
)

SPREAD = 0.8
"""How far a person's share of a category is from everybody's, relative to it."""


@dataclass(frozen=True, slots=True, eq=False)
class Expectation:
    """Public popularity by group: make it with `Expectation.of`, compare it by identity.

    `weights` has an array a group, aligned with `catalogue.members`; `shares` is what part of all
    attention each group has.
    """

    catalogue: Catalogue
    weights: tuple[Floats, ...]
    shares: Floats
    typical: float
    spread: float

    @classmethod
    def of(
        cls,
        *,
        catalogue: Catalogue,
        popularity: Mapping[str, float],
        typical: float,
        spread: float = SPREAD,
    ) -> "Expectation":
        """Compile item -> popularity, in any unit; an item that is not named has the least."""
        if not (math.isfinite(typical) and typical > 0):
            raise InvalidArgument("typical", "must be finite and greater than 0")
        if not (math.isfinite(spread) and spread > 0):
            raise InvalidArgument("spread", "must be finite and greater than 0")
        known = [float(popularity[item]) for item in catalogue.items if item in popularity]
        if not all(math.isfinite(value) and value >= 0 for value in known):
            raise InvalidArgument("popularity", "must be finite and not negative")
        seen = [value for value in known if value > 0]
        if not seen:
            raise InvalidArgument("popularity", "must name an item of the catalogue that has some")
        # Nobody's item is impossible: half of the least that was seen stands for "hardly any".
        least = min(seen) / 2
        weights = tuple(
            np.array([max(float(popularity.get(item, 0.0)), least) for item in members])
            for members in catalogue.members
        )
        masses = np.array([group.sum() for group in weights])
        return cls(catalogue, weights, masses / masses.sum(), float(typical), float(spread))

    @classmethod
    def of_catalogue(cls, catalogue: Catalogue) -> "Expectation":
        """Return what the catalogue alone lets expect: every item is as popular as any other."""
        return _of_catalogue(catalogue)

    def masses(self, scope: ReleaseScope) -> Floats:
        """Return how readily the protected groups are drawn from, in units of items."""
        shares = self.shares[scope.protected]
        scaled: Floats = shares * (float(scope.sizes.sum()) / float(shares.sum()))
        return scaled

    def read(self, *, noisy: Floats, magnitudes: Floats, scope: ReleaseScope) -> Floats:
        """Return the counts that noisy ones most plausibly stand for, in whole items."""
        attention = self.shares[scope.protected] @ scope.incidence
        doubt = 2 * magnitudes**2  # the variance of Laplace noise
        length = self._length(noisy, attention, doubt)
        expected = length * attention
        variety = (self.spread * expected) ** 2 + expected
        read = (noisy / doubt + expected / variety) / (1 / doubt + 1 / variety)
        counts: Floats = np.rint(np.maximum(read, 0.0))
        return counts

    def _length(self, noisy: Floats, attention: Floats, doubt: Floats) -> float:
        """Return how long the history seems to be: least squares, pulled to the typical length."""
        precision = float(np.sum(attention**2 / doubt))
        typical_precision = self.typical**-2
        seen = float(np.sum(noisy * attention / doubt))
        length = (seen + self.typical * typical_precision) / (precision + typical_precision)
        return max(length, 1.0)


@lru_cache(maxsize=64)
def _of_catalogue(catalogue: Catalogue) -> Expectation:
    return Expectation.of(
        catalogue=catalogue,
        popularity=dict.fromkeys(catalogue.items, 1.0),
        typical=min(TYPICAL, max(len(catalogue.items) / 4, 1.0)),
    )
