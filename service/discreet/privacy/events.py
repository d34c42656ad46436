"""What was released, with what parameters: frozen facts, without a price.

A mechanism returns its value together with one of these; an accountant prices it. Keeping the two
apart lets one release be priced by several composition rules, and makes "forgot to charge" a type
error instead of an oversight. Every event validates its own parameters, so that a malformed
release cannot even be described.
"""

import math
from dataclasses import dataclass
from typing import Generic, TypeVar

from discreet.errors import InvalidArgument

T = TypeVar("T")


def _positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise InvalidArgument(name, "must be finite and greater than 0")


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise InvalidArgument(name, f"must be at least {least}")


@dataclass(frozen=True, slots=True)
class PrivacyEvent:
    """A release that costs something. Only subclasses mean anything to an accountant."""


@dataclass(frozen=True, slots=True)
class ExactRelease(PrivacyEvent):
    """The data themselves, or a deterministic function of them. Infinite cost."""


@dataclass(frozen=True, slots=True)
class ExponentialChoice(PrivacyEvent):
    """A draw whose privacy loss ranges over an interval of length `epsilon` (bounded range)."""

    epsilon: float

    def __post_init__(self) -> None:
        _positive("epsilon", self.epsilon)


@dataclass(frozen=True, slots=True)
class RandomisedResponse(PrivacyEvent):
    """The best of a public shortlist, or another: loss in {-epsilon, 0, +epsilon}."""

    epsilon: float

    def __post_init__(self) -> None:
        _positive("epsilon", self.epsilon)


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(PrivacyEvent):
    """Epsilon-DP like the exponential mechanism, but not of bounded range."""

    epsilon: float

    def __post_init__(self) -> None:
        _positive("epsilon", self.epsilon)


@dataclass(frozen=True, slots=True)
class PureRelease(PrivacyEvent):
    """Any other release proved epsilon-DP, named so that a reader finds the proof."""

    epsilon: float
    name: str

    def __post_init__(self) -> None:
        _positive("epsilon", self.epsilon)


@dataclass(frozen=True, slots=True)
class TruncatedChoice(PrivacyEvent):
    """Objects drawn by the p-REC rule from the votes of at least `survivors` voters: one, or more.

    `sharpness` and `uniform_share` are the paper's lambda and gamma, `shown` is how many objects
    are drawn. Neighbouring inputs differ by one voter's vote being there or not.
    `discreet.privacy.truncated` proves `epsilon`.
    """

    objects: int
    sharpness: float
    uniform_share: float
    survivors: int
    shown: int = 1

    def __post_init__(self) -> None:
        _at_least("objects", self.objects, 1)
        _at_least("shown", self.shown, 1)
        _at_least("survivors", self.survivors, 1)
        _positive("sharpness", self.sharpness)
        # The bound is proved where truncation has a meaning: exp(sharpness / (2 objects)) >= 2.
        if self.sharpness < 2 * self.objects * math.log(2):
            raise InvalidArgument("sharpness", "must be at least 2 ln(2) for each object")
        if not 0 < self.uniform_share <= 0.5:
            raise InvalidArgument("uniform_share", "must be above 0 and at most 1/2")

    @property
    def epsilon(self) -> float:
        """The most that all draws together can lose, either way, to one voter's vote."""
        excess = math.expm1(self.sharpness / (2 * self.objects))
        odds = self.uniform_share / (self.objects * (1 - self.uniform_share))
        factor = (
            1
            + math.log1p(1 / (math.e * odds)) / self.sharpness
            + max(0.0, 1 / (odds * self.objects * excess) - 1)
            + 1 / (self.objects * excess)
        )
        # Each further draw costs 3/4 of the sharpness; the last object that is left is not drawn.
        factor += 0.75 * max(0, min(self.shown, self.objects - 1) - 1)
        exact = factor * self.sharpness * math.log1p(1 / self.survivors)
        # For the roundings of this formula, and of the mechanism's fixed-point weights.
        return exact * (1 + 2.0**-40) + 2.0**-40


@dataclass(frozen=True, slots=True)
class ApproximateRelease(PrivacyEvent):
    """Releases that keep a proved bound unless an event of probability `delta` happens.

    Outside that event their privacy losses sum to at most `epsilon`, and their moments are those
    of `rho`-zCDP. Named so that a reader finds the proof.
    """

    epsilon: float
    rho: float
    delta: float
    name: str

    def __post_init__(self) -> None:
        _positive("epsilon", self.epsilon)
        _positive("rho", self.rho)
        if not 0 < self.delta < 1:
            raise InvalidArgument("delta", "must lie in (0, 1)")


@dataclass(frozen=True, slots=True)
class LaplaceRelease(PrivacyEvent):
    """Discrete Laplace noise of `scale` on a value of L1 sensitivity `sensitivity`, same units."""

    scale: float
    sensitivity: float

    def __post_init__(self) -> None:
        _positive("scale", self.scale)
        _positive("sensitivity", self.sensitivity)


@dataclass(frozen=True, slots=True)
class GaussianRelease(PrivacyEvent):
    """Discrete Gaussian noise of `scale` on a value of L2 sensitivity `sensitivity`, same units."""

    scale: float
    sensitivity: float

    def __post_init__(self) -> None:
        _positive("scale", self.scale)
        _positive("sensitivity", self.sensitivity)


@dataclass(frozen=True, slots=True)
class Repeated(PrivacyEvent):
    """The same release, `times` over, each perhaps chosen after seeing the ones before."""

    event: PrivacyEvent
    times: int

    def __post_init__(self) -> None:
        _at_least("times", self.times, 1)


@dataclass(frozen=True, slots=True)
class Composed(PrivacyEvent):
    """Several releases about the same data."""

    events: tuple[PrivacyEvent, ...]


@dataclass(frozen=True, slots=True)
class Released(Generic[T]):
    """A mechanism's answer: the value, and what releasing it is."""

    value: T
    event: PrivacyEvent
