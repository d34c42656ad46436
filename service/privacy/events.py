"""What was released, with what parameters: frozen facts, without a price.

A mechanism returns its value together with one of these; an accountant prices it. Keeping the two
apart lets one release be priced by several composition rules, and makes "forgot to charge" a type
error instead of an oversight. Every event validates its own parameters, so that a malformed
release cannot even be described.
"""

import math
from dataclasses import dataclass
from typing import Generic, TypeVar

from service.errors import InvalidArgument

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
