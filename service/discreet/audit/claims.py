"""What an audit says: a claim that was examined, and a planted fault that had to be caught.

A claim is a name, a method and a function from the run to a finding. A planted fault is the same
with something broken on purpose, and it is caught when the very same examination says that the
claim does *not* hold. No examination knows whether it looks at a real mechanism or a broken one.

To add claims, write a module in `mechanisms`, or the module of a family in `families`, with a
function `claims` or `faults` that yields them: `discovery` finds it.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from discreet.privacy.noise import NoiseSource, SystemNoise

FALSE_ALARM = 1e-6
"""Probability with which a run of the audit doubts a claim that is true, all tests together."""

SHARES = 512
"""Statistical tests in one run, at most. Each may err with probability FALSE_ALARM / SHARES."""


class Method(Enum):
    """How a claim was examined, which says what `measured` is.

    EXACT: computed without sampling; `measured` is the worst value over all neighbouring inputs
    that were enumerated, rounded up, and the comparison is made in rationals. (The deltas of
    calibrated Gaussian noise alone are sums of doubles.)
    LOWER_BOUND: a value that the truth is above, at the audit's confidence, from sampled runs.
    FIT: evidence against the stated distribution, in nats (minus the logarithm of a bound on the
    probability of a sample at least this far off); `claimed` is how much luck may explain.
    """

    EXACT = "exact"
    LOWER_BOUND = "lower-bound"
    FIT = "fit"


class Scope(Enum):
    """What a claim is about.

    RELEASE: one release, or one part, with all else held fixed.
    PERSON: everything that anybody sees if one person had done all things differently, with
    feedback on: the closed loop.
    """

    RELEASE = "release"
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class Finding:
    """A number that was claimed, the one that was found, and whether the claim survives it."""

    claimed: float
    measured: float
    holds: bool


class Allowance:
    """Hands out shares of the false-alarm probability, and no more than there are."""

    def __init__(self) -> None:
        self.taken = 0

    def share(self) -> float:
        """Return the error probability of one more test (Bonferroni)."""
        if self.taken == SHARES:
            raise RuntimeError("more statistical tests than the stated false-alarm rate covers")
        self.taken += 1
        return FALSE_ALARM / SHARES


@dataclass(frozen=True, slots=True)
class AuditRun:
    """What every examination is given: the production noise, the size of the run, its luck."""

    quick: bool
    noise: NoiseSource = field(default_factory=SystemNoise)
    allowance: Allowance = field(default_factory=Allowance)

    def size(self, *, quick: int, full: int) -> int:
        """Return how many samples to draw, or inputs to enumerate, in this run."""
        return quick if self.quick else full


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim and the way to examine it."""

    name: str
    method: Method
    examine: Callable[[AuditRun], Finding]
    scope: Scope = Scope.RELEASE


@dataclass(frozen=True, slots=True)
class PlantedFault:
    """Something broken on purpose, and the examination that has to notice."""

    name: str
    examine: Callable[[AuditRun], Finding]
    scope: Scope = Scope.RELEASE


def finite(value: float) -> float:
    """Return `value`, or the largest double in place of infinity: JSON has no infinity."""
    if math.isnan(value):
        return sys.float_info.max
    return min(max(value, -sys.float_info.max), sys.float_info.max)
