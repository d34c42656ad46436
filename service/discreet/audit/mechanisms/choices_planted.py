"""Choices broken on purpose, each a mistake that has been made in earnest.

They keep the shipped mechanisms' interface and say the shipped events, so that every examination
of `worlds` and `choices` takes them for the real thing.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import permutations, product

import numpy as np
import numpy.typing as npt

from discreet.audit.claims import Finding, PlantedFault
from discreet.audit.enclosures import exp_interval
from discreet.audit.examine_worlds import (
    World,
    enumerate_pairs,
    examine_choice_by_sampling,
    examine_epsilon,
    examine_frequencies,
    examine_rho,
)
from discreet.audit.mechanisms.choices import (
    FULL_RANGE,
    HALF_STEPS,
    LOPSIDED,
    STRADDLING,
    ChoosesByUtility,
    examine_draw,
    ranked_worlds,
    shortlist_worlds,
    utility_worlds,
    within,
)
from discreet.audit.mechanisms.votes import one_vote_apart, vote_worlds
from discreet.privacy.choice import ShortlistResponse
from discreet.privacy.draw import draw_index
from discreet.privacy.events import ExponentialChoice, RandomisedResponse, Released
from discreet.privacy.noise import NoiseSource
from discreet.privacy.truncated import TruncatedExponential

Floats = npt.NDArray[np.float64]
Base = Sequence[int] | None


def _weighted(
    exponents: Floats, base: Base, noise: NoiseSource, *, epsilon: float, bits: int = 40
) -> Released[int]:
    """Draw by floor(2**bits * exp(exponent)) times the base, and call it an exponential choice."""
    weights = np.floor(2.0**bits * np.exp(exponents)).astype(np.int64)
    multiples = [1] * len(weights) if base is None else list(base)
    drawn = draw_index([int(w) * b for w, b in zip(weights, multiples, strict=True)], noise)
    return Released(drawn, ExponentialChoice(epsilon))


@dataclass(frozen=True, slots=True)
class ForgottenHalf:
    """exp(epsilon * u) where exp(epsilon * u / 2) belongs: normalisation also moves."""

    epsilon: float

    def choose(self, *, utilities: Floats, noise: NoiseSource, base: Base = None) -> Released[int]:
        return _weighted(self.epsilon * (utilities - 1), base, noise, epsilon=self.epsilon)


@dataclass(frozen=True, slots=True)
class CoarseTable:
    """The exponential rounded down to a few bits: at the low end a unit is a large part of it."""

    epsilon: float

    def choose(self, *, utilities: Floats, noise: NoiseSource, base: Base = None) -> Released[int]:
        exponents = self.epsilon * (utilities - 1) / 2
        return _weighted(exponents, base, noise, epsilon=self.epsilon, bits=4)


@dataclass(frozen=True, slots=True)
class GridWithoutCeiling:
    """Utilities rounded to a grid, the table steps by their sensitivity as if nothing had been."""

    epsilon: float
    sensitivity: float
    steps: int

    def choose(self, *, utilities: Floats, noise: NoiseSource, base: Base = None) -> Released[int]:
        points = np.rint(utilities * self.steps) - self.steps
        exponents = points * self.epsilon / (2 * self.sensitivity * self.steps)
        return _weighted(exponents, base, noise, epsilon=self.epsilon)


@dataclass(frozen=True, slots=True)
class MaximumFirst:
    """The largest utility subtracted before rounding: all arms then round by one arm's data."""

    epsilon: float
    sensitivity: float
    steps: int

    def choose(self, *, utilities: Floats, noise: NoiseSource, base: Base = None) -> Released[int]:
        points = np.floor((utilities - utilities.max()) * self.steps)
        exponents = points * self.epsilon / (2 * self.sensitivity * self.steps)
        return _weighted(exponents, base, noise, epsilon=self.epsilon)


@dataclass(frozen=True, slots=True)
class MispricedPermuteAndFlip:
    """Permute-and-flip, correct and epsilon-DP, announced as an event of bounded range."""

    epsilon: float

    def choose(self, *, utilities: Floats, noise: NoiseSource, base: Base = None) -> Released[int]:
        weights = _flipped(self.epsilon, tuple(utilities.tolist()))
        return Released(draw_index(weights, noise), ExponentialChoice(self.epsilon))


@cache
def _flipped(epsilon: float, utilities: tuple[float, ...]) -> tuple[int, ...]:
    """Return integer weights of permute-and-flip: every order of the arms, every first head."""
    best = max(utilities)
    heads = [
        Fraction(math.floor(2**40 * math.exp(epsilon * (u - best) / 2)), 2**40) for u in utilities
    ]
    shares = [Fraction(0)] * len(heads)
    orders = list(permutations(range(len(heads))))
    for order in orders:
        reached = Fraction(1, len(orders))
        for arm in order:
            shares[arm] += reached * heads[arm]
            reached *= 1 - heads[arm]
    common = math.lcm(*(share.denominator for share in shares))
    return tuple(int(share * common) for share in shares)


@dataclass(frozen=True, slots=True)
class CheapShortlist:
    """Randomised response, priced as if its loss spanned epsilon and not twice that."""

    honest: ShortlistResponse

    def choose(self, *, best: int, size: int, noise: NoiseSource) -> Released[int]:
        released = self.honest.choose(best=best, size=size, noise=noise)
        return Released(released.value, ExponentialChoice(self.honest.epsilon))


@dataclass(frozen=True, slots=True)
class PrivateShortlist:
    """A shortlist cut to the arms that one's own cell likes: who is on it tells the cell."""

    honest: ShortlistResponse

    def choose(self, *, best: int, size: int, noise: NoiseSource) -> Released[int]:
        return self.honest.choose(best=best, size=best + 1, noise=noise)


@dataclass(frozen=True, slots=True)
class DiscountWhenUnsure:
    """A charge that depends on the data: whoever sees the ledger learns something."""

    honest: ShortlistResponse

    def choose(self, *, best: int, size: int, noise: NoiseSource) -> Released[int]:
        value = self.honest.choose(best=best, size=size, noise=noise).value
        return Released(value, RandomisedResponse(self.honest.epsilon * (2 if best else 1)))


@dataclass(frozen=True, slots=True)
class ListPricedOnce:
    """A list of several items, charged like one."""

    honest: ShortlistResponse

    def choose_several(
        self, *, ranking: Sequence[int], count: int, noise: NoiseSource
    ) -> Released[tuple[int, ...]]:
        released = self.honest.choose_several(ranking=ranking, count=count, noise=noise)
        return Released(released.value, RandomisedResponse(self.honest.epsilon))


@dataclass(frozen=True, slots=True)
class BinaryEpsilon:
    """Randomised response at the double's own value, a hair above the decimal that is charged."""

    epsilon: float

    def choose(self, *, best: int, size: int, noise: NoiseSource) -> Released[int]:
        weights = [2**64] * size
        weights[best] = int(exp_interval(Fraction(self.epsilon)).low * 2**64)
        return Released(draw_index(weights, noise), RandomisedResponse(self.epsilon))


@dataclass(frozen=True, slots=True)
class FewerVoters:
    """Votes of a handful, charged as if a hundred voters had been promised."""

    few: TruncatedExponential
    many: TruncatedExponential

    def choose(self, *, votes: npt.NDArray[np.integer], noise: NoiseSource) -> Released[int]:
        return Released(self.few.choose(votes=votes, noise=noise).value, self.many.event)


def draw_from_ten_bits(weights: Sequence[int], noise: NoiseSource) -> int:
    """Draw an index by integer weights from so few bits that some cannot come out."""
    point = noise.bits(10) * sum(weights) >> 10
    index = 0
    while point >= weights[index]:
        point -= weights[index]
        index += 1
    return index


def _epsilon(mechanism: ChoosesByUtility, vectors: tuple[tuple[float, ...], ...]) -> Finding:
    """Examine as `choices.claims` does, with an arm that the base all but rules out."""
    sensitivity = 1.0 if vectors is FULL_RANGE else 0.25
    worlds = utility_worlds(mechanism, vectors, base=LOPSIDED[: len(vectors[0])])
    return examine_epsilon(enumerate_pairs(worlds, within(sensitivity)))


def _off_balance() -> World:
    """Answer the best of five at epsilon 1 when bits are scripted, at 1.3 when they are drawn."""
    stated, real = ShortlistResponse(epsilon=1.0), ShortlistResponse(epsilon=1.3)

    def release(noise: NoiseSource) -> Released[int]:
        return (real if noise.production else stated).choose(best=0, size=5, noise=noise)

    return release


def _doubled(best: int) -> World:
    """Answer the best of five at epsilon 2 and say 1."""
    doubled, event = ShortlistResponse(epsilon=2.0), RandomisedResponse(1.0)

    def release(noise: NoiseSource) -> Released[int]:
        return Released(doubled.choose(best=best, size=5, noise=noise).value, event)

    return release


def _few_voters() -> FewerVoters:
    few, many = (
        TruncatedExponential(objects=2, sharpness=6.0, uniform_share=0.1, survivors=survivors)
        for survivors in (4, 100)
    )
    return FewerVoters(few, many)


def faults() -> Iterator[PlantedFault]:
    """Yield every broken choice with the examination that must notice it."""
    one = ShortlistResponse(epsilon=1.0)
    yield PlantedFault(
        "forgotten factor 2 in the exponential mechanism",
        lambda _: _epsilon(ForgottenHalf(1.0), FULL_RANGE),
    )
    yield PlantedFault(
        "table of exponentials rounded to a few bits",
        lambda _: _epsilon(CoarseTable(4.0), FULL_RANGE),
    )
    yield PlantedFault(
        "utilities rounded to a grid, sensitivity not",
        lambda _: _epsilon(GridWithoutCeiling(1.0, 0.25, 10), STRADDLING),
    )
    yield PlantedFault(
        "data-dependent maximum subtracted before rounding",
        lambda _: _epsilon(MaximumFirst(1.0, 0.25, 4), HALF_STEPS),
    )
    yield PlantedFault(
        "permute-and-flip priced as bounded range",
        lambda _: examine_rho(
            enumerate_pairs(
                utility_worlds(MispricedPermuteAndFlip(1.0), product((0.0, 1.0), repeat=3)),
                within(1.0),
            )
        ),
    )
    yield PlantedFault(
        "randomised response priced as bounded range",
        lambda _: examine_rho(enumerate_pairs(shortlist_worlds(CheapShortlist(one), size=2))),
    )
    yield PlantedFault(
        "shortlist picked from the private cell",
        lambda _: examine_epsilon(enumerate_pairs(shortlist_worlds(PrivateShortlist(one), size=3))),
    )
    yield PlantedFault(
        "charge that depends on the data",
        lambda _: examine_epsilon(
            enumerate_pairs(shortlist_worlds(DiscountWhenUnsure(one), size=3))
        ),
    )
    yield PlantedFault(
        "list of two charged as one draw",
        lambda _: examine_epsilon(
            enumerate_pairs(ranked_worlds(ListPricedOnce(one), size=3, count=2))
        ),
    )
    yield PlantedFault(
        "epsilon read as a double, charged as a decimal",
        lambda _: examine_epsilon(enumerate_pairs(shortlist_worlds(BinaryEpsilon(0.1), size=2))),
    )
    yield PlantedFault(
        "fewer surviving voters than promised",
        lambda _: examine_epsilon(
            enumerate_pairs(vote_worlds(_few_voters(), objects=2, survivors=4), one_vote_apart)
        ),
    )
    yield PlantedFault("draw from too few random bits", lambda _: examine_draw(draw_from_ten_bits))
    yield PlantedFault(
        "probabilities 30% of epsilon away from those stated",
        lambda run: examine_frequencies(run, _off_balance(), size=10_000),
    )
    yield PlantedFault(
        "forgotten factor 2, found by sampling alone",
        lambda run: examine_choice_by_sampling(run, _doubled(0), _doubled(1), size=10_000),
    )
