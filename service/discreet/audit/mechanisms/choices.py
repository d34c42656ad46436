"""The claims of the mechanisms that choose: exponential, shortlist, lists, and the draw below them.

Utilities are taken on and off the mechanism's grid, so that rounding is part of what is examined,
and every way in which a neighbour can push one arm up and another down is among the vectors. A
base measure that all but rules an arm out brings the loss up to its bound: normalisation then
hides nothing.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import permutations, product
from typing import Protocol

import numpy as np
import numpy.typing as npt

from discreet.audit.claims import Claim, Finding, Method
from discreet.audit.enclosures import float_above
from discreet.audit.examine_worlds import (
    Neighbours,
    World,
    Worlds,
    exact_claims,
    examine_choice_by_sampling,
    examine_frequencies,
)
from discreet.audit.scripted_noise import distribution
from discreet.privacy.choice import ExponentialMechanism, ShortlistResponse
from discreet.privacy.draw import draw_index
from discreet.privacy.events import Released
from discreet.privacy.noise import NoiseSource

Floats = npt.NDArray[np.float64]
Vector = tuple[float, ...]

FULL_RANGE: tuple[Vector, ...] = tuple(product((0.0, 0.37, 1.0), repeat=3))
"""Three arms when a neighbour may change everything; one of the utilities is on no grid."""

STRADDLING: tuple[Vector, ...] = tuple(
    product((102 / 1024, 103 / 1024, 358 / 1024, 359 / 1024, 0.625), repeat=2)
)
"""Two arms at sensitivity 1/4: pairs exactly a quarter apart about the edges of ten steps."""

HALF_STEPS: tuple[Vector, ...] = tuple(product((0.0, 0.25), (0.125, 0.375), (0.875, 1.0)))
"""Three arms at sensitivity 1/4 on four steps; the best arm moves by half a step."""

LOPSIDED = (1, 2**20, 1)
"""A base measure under which one arm is a million times likelier than the others."""


class ChoosesByUtility(Protocol):
    """A mechanism that chooses an arm by its utilities, as `ExponentialMechanism` does."""

    def choose(
        self, *, utilities: Floats, noise: NoiseSource, base: Sequence[int] | None = None
    ) -> Released[int]: ...


class ChoosesBest(Protocol):
    """A mechanism that answers the best of a shortlist or another, as `ShortlistResponse` does."""

    def choose(self, *, best: int, size: int, noise: NoiseSource) -> Released[int]: ...


class ChoosesByRank(Protocol):
    """A mechanism that draws a list by a ranking, as `ShortlistResponse` does."""

    def choose_several(
        self, *, ranking: Sequence[int], count: int, noise: NoiseSource
    ) -> Released[tuple[int, ...]]: ...


def utility_worlds(
    mechanism: ChoosesByUtility, vectors: Iterable[Vector], *, base: Sequence[int] | None = None
) -> Worlds:
    """Return a world for every vector of utilities."""

    def world(vector: Vector) -> World:
        utilities = np.array(vector)
        return lambda noise: mechanism.choose(utilities=utilities, noise=noise, base=base)

    return {vector: world(vector) for vector in vectors}


def within(sensitivity: float) -> Neighbours:
    """Return the relation "no arm's utility differs by more than this"."""
    exact = Fraction(sensitivity)

    def neighbours(first: Hashable, second: Hashable) -> bool:
        assert isinstance(first, tuple)
        assert isinstance(second, tuple)
        return all(
            abs(Fraction(a) - Fraction(b)) <= exact for a, b in zip(first, second, strict=True)
        )

    return neighbours


def shortlist_worlds(mechanism: ChoosesBest, *, size: int) -> Worlds:
    """Return a world for every position that the best arm can have."""

    def world(best: int) -> World:
        return lambda noise: mechanism.choose(best=best, size=size, noise=noise)

    return {best: world(best) for best in range(size)}


def ranked_worlds(mechanism: ChoosesByRank, *, size: int, count: int) -> Worlds:
    """Return a world for every ranking of a shortlist from which a list is drawn."""

    def world(ranking: tuple[int, ...]) -> World:
        return lambda noise: mechanism.choose_several(ranking=ranking, count=count, noise=noise)

    return {ranking: world(ranking) for ranking in permutations(range(size))}


def utility_list_worlds(
    mechanism: ExponentialMechanism, vectors: Iterable[Vector], *, count: int
) -> Worlds:
    """Return a world for every vector of utilities by which a list is drawn."""

    def world(vector: Vector) -> World:
        utilities = np.array(vector)
        return lambda noise: mechanism.choose_several(utilities=utilities, count=count, noise=noise)

    return {vector: world(vector) for vector in vectors}


def examine_draw(draw: Callable[[Sequence[int], NoiseSource], int]) -> Finding:
    """Measure how far an index's probability is from its share of the weights, relatively."""
    tables: tuple[tuple[int, ...], ...] = (
        (1, 1, 1),
        (1, 2, 3, 4, 5, 6, 7),
        (1, 2**40, 3),
        (2**52 - 1, 1, 2**52 + 1),
        (0, 5, 0, 2**61),
        (1, 2**90 + 1, 2**70),
    )
    worst = Fraction(0)
    for weights in tables:

        def drawn(noise: NoiseSource, weights: tuple[int, ...] = weights) -> Hashable:
            return draw(weights, noise)

        found = distribution(drawn)
        for index, weight in enumerate(weights):
            share = Fraction(weight, sum(weights))
            probability = found.get(index, Fraction(0))
            off = abs(probability / share - 1) if weight else Fraction(probability > 0)
            worst = max(worst, off)
    claimed = Fraction(1, 2**65)
    return Finding(float(claimed), float_above(worst), holds=worst <= claimed)


def claims() -> Iterator[Claim]:
    """Yield the claims of the mechanisms that choose."""
    yield from _draw_claims()
    yield from _exponential_claims()
    yield from _shortlist_claims()


def _draw_claims() -> Iterator[Claim]:
    """The draw by integer weights."""
    yield Claim(
        "draw by integer weights: relative bias", Method.EXACT, lambda _: examine_draw(draw_index)
    )


def _exponential_claims() -> Iterator[Claim]:
    """The exponential mechanism, with and without a base measure, and lists drawn by it."""
    for epsilon in (0.1, 1.0, 4.0, 30.0):
        mechanism = ExponentialMechanism(epsilon=epsilon)
        yield from exact_claims(
            f"exponential choice of 3 arms, epsilon {epsilon:g}",
            partial(utility_worlds, mechanism, FULL_RANGE),
            within(1.0),
        )
    for epsilon in (0.1, 1.0, 30.0):
        mechanism = ExponentialMechanism(epsilon=epsilon)
        yield from exact_claims(
            f"exponential choice with a base measure, epsilon {epsilon:g}",
            partial(utility_worlds, mechanism, FULL_RANGE, base=LOPSIDED),
            within(1.0),
        )
    for name, steps, vectors in (
        ("edges of a coarse grid", 10, STRADDLING),
        ("half steps of a coarse grid", 4, HALF_STEPS),
    ):
        coarse = ExponentialMechanism(epsilon=1.0, sensitivity=0.25, steps=steps)
        yield from exact_claims(
            f"exponential choice at sensitivity 1/4, {name}, epsilon 1",
            partial(utility_worlds, coarse, vectors, base=LOPSIDED[: len(vectors[0])]),
            within(0.25),
        )
    one = ExponentialMechanism(epsilon=1.0)
    yield from exact_claims(
        "list of 2 of 3 by exponential choice, epsilon 1 each",
        partial(utility_list_worlds, one, tuple(product((0.0, 1.0), repeat=3)), count=2),
        within(1.0),
    )
    yield from _sampled_claims(
        "exponential choice of 3 arms, epsilon 1",
        *utility_worlds(one, ((1.0, 0.0, 0.0), (0.0, 1.0, 1.0))).values(),
    )


def _shortlist_claims() -> Iterator[Claim]:
    """Randomised response over a shortlist, and lists drawn by it."""
    for epsilon in (0.01, 0.1, 1.0, 4.0, 50.0):
        mechanism = ShortlistResponse(epsilon=epsilon)
        for size in (2, 5):
            yield from exact_claims(
                f"shortlist of {size}, epsilon {epsilon:g}",
                partial(shortlist_worlds, mechanism, size=size),
            )
    one = ShortlistResponse(epsilon=1.0)
    yield from exact_claims(
        "list of 2 of 3 from a shortlist, epsilon 1 each",
        partial(ranked_worlds, one, size=3, count=2),
    )
    worlds = shortlist_worlds(one, size=5)
    yield from _sampled_claims("shortlist of 5, epsilon 1", worlds[0], worlds[1])


def _sampled_claims(name: str, first: World, second: World) -> Iterator[Claim]:
    yield Claim(
        f"{name}: sampled frequencies",
        Method.FIT,
        lambda run: examine_frequencies(run, first, size=run.size(quick=10_000, full=200_000)),
    )
    yield Claim(
        f"{name}: sampled neighbours",
        Method.LOWER_BOUND,
        lambda run: examine_choice_by_sampling(
            run, first, second, size=run.size(quick=10_000, full=200_000)
        ),
    )
