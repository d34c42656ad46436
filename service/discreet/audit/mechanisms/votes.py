"""The claim of the p-REC rule: one vote more or less, every way in which the others may stand."""

from collections.abc import Hashable, Iterator
from functools import partial
from itertools import product
from typing import Protocol

import numpy as np
import numpy.typing as npt

from discreet.audit.claims import AuditRun, Claim, Finding, Method
from discreet.audit.examine_exact import from_weights
from discreet.audit.examine_worlds import (
    Enumerated,
    World,
    Worlds,
    exact_claims,
    examine_epsilon,
)
from discreet.privacy.events import Released
from discreet.privacy.noise import NoiseSource
from discreet.privacy.truncated import TruncatedExponential

Votes = tuple[int, ...]


class VoteChoice(Protocol):
    """A mechanism that chooses by votes, as `TruncatedExponential` does."""

    def choose(self, *, votes: npt.NDArray[np.integer], noise: NoiseSource) -> Released[int]: ...


def spreads(*, objects: int, survivors: int) -> Iterator[Votes]:
    """Yield every way to spread `survivors` votes, or one more, over the objects."""
    for votes in product(range(survivors + 2), repeat=objects):
        if survivors <= sum(votes) <= survivors + 1:
            yield votes


def vote_worlds(mechanism: VoteChoice, *, objects: int, survivors: int) -> Worlds:
    """Return a world for every way in which the votes may stand."""

    def world(votes: Votes) -> World:
        counts = np.array(votes)
        return lambda noise: mechanism.choose(votes=counts, noise=noise)

    return {votes: world(votes) for votes in spreads(objects=objects, survivors=survivors)}


def one_vote_apart(first: Hashable, second: Hashable) -> bool:
    """Tell whether one input has one vote more than the other, all else equal."""
    assert isinstance(first, tuple)
    assert isinstance(second, tuple)
    return bool(sum(abs(a - b) for a, b in zip(first, second, strict=True)) == 1)


def weighed_pairs(mechanism: TruncatedExponential) -> Enumerated:
    """Enumerate by the integer weights instead of by scripted draws, which take long here.

    The draw's own bias is below 2**-62 of the loss, and the event's epsilon has 2**-40 to spare;
    that the draw follows the weights is among the claims that scripted noise examines.
    """
    found = {
        votes: from_weights(mechanism.weights(np.array(votes)))
        for votes in spreads(objects=mechanism.objects, survivors=mechanism.survivors)
    }
    pairs = [
        (found[votes], found[more]) for votes in found for more in _one_more(votes) if more in found
    ]
    return frozenset({mechanism.event}), pairs


def _one_more(votes: Votes) -> Iterator[Votes]:
    for place in range(len(votes)):
        yield (*votes[:place], votes[place] + 1, *votes[place + 1 :])


def claims() -> Iterator[Claim]:
    """The truncated-and-shifted exponential, for few voters, where one vote weighs most."""
    small = TruncatedExponential(objects=2, sharpness=6.0, uniform_share=0.1, survivors=8)
    yield from exact_claims(
        "truncated choice of 2 objects by 8 votes",
        partial(vote_worlds, small, objects=2, survivors=8),
        one_vote_apart,
    )
    for objects, survivors, sharpness, uniform_share in (
        (3, 18, 14.0, 0.05),
        (4, 12, 8.0, 0.25),
    ):
        mechanism = TruncatedExponential(
            objects=objects,
            sharpness=sharpness,
            uniform_share=uniform_share,
            survivors=survivors,
        )
        name = f"truncated choice of {objects} objects by {survivors} votes, by its weights"

        def epsilon(_: AuditRun, mechanism: TruncatedExponential = mechanism) -> Finding:
            return examine_epsilon(weighed_pairs(mechanism))

        yield Claim(f"{name}: epsilon", Method.EXACT, epsilon)
