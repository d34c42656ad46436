"""The inputs that mechanisms which choose are examined on, and how sharp their claims are."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from discreet.audit.claims import AuditRun, Claim, Method
from discreet.audit.examine_worlds import enumerate_pairs, examine_epsilon
from discreet.audit.mechanisms.choices import (
    FULL_RANGE,
    HALF_STEPS,
    LOPSIDED,
    STRADDLING,
    claims,
    examine_draw,
    ranked_worlds,
    shortlist_worlds,
    utility_list_worlds,
    utility_worlds,
    within,
)
from discreet.privacy.choice import ExponentialMechanism, ShortlistResponse
from discreet.privacy.draw import draw_index
from discreet.privacy.noise import NoiseSource

CLAIMS = list(claims())


@pytest.mark.parametrize(
    "claim",
    [
        claim
        for claim in CLAIMS
        if claim.name.startswith(("shortlist of", "exponential choice with a base measure"))
        and claim.name.endswith(": epsilon")
    ],
    ids=lambda claim: claim.name,
)
def test_an_exact_loss_is_close_to_its_charge(claim: Claim) -> None:
    """A claim far above what is found could not be broken by this examination."""
    assert claim.method is Method.EXACT
    found = claim.examine(AuditRun(quick=True))
    assert found.measured > 0.95 * found.claimed


@pytest.mark.parametrize("sensitivity", [0.25, 1.0])
def test_neighbours_may_move_every_arm_by_the_sensitivity_and_by_no_more(
    sensitivity: float,
) -> None:
    neighbours = within(sensitivity)
    assert neighbours((0.0, sensitivity), (sensitivity, 0.0))
    assert not neighbours((0.0, 0.0), (0.0, float(np.nextafter(sensitivity, 2.0))))


def test_the_vectors_hold_neighbours_exactly_as_far_apart_as_allowed() -> None:
    for vectors, sensitivity in ((FULL_RANGE, 1.0), (STRADDLING, 0.25), (HALF_STEPS, 0.25)):
        exact = Fraction(sensitivity)
        apart = {
            max(abs(Fraction(a) - Fraction(b)) for a, b in zip(one, other, strict=True))
            for one, other in product(vectors, repeat=2)
            if within(sensitivity)(one, other)
        }
        assert max(apart) == exact


def test_a_base_measure_brings_the_loss_up_to_its_bound() -> None:
    mechanism = ExponentialMechanism(epsilon=1.0)
    plain, lopsided = (
        examine_epsilon(
            enumerate_pairs(utility_worlds(mechanism, FULL_RANGE, base=base), within(1.0))
        )
        for base in (None, LOPSIDED)
    )
    assert plain.measured < 0.9 < 0.99 < lopsided.measured <= lopsided.claimed


def test_there_is_a_world_for_every_input() -> None:
    shortlist, exponential = ShortlistResponse(epsilon=1.0), ExponentialMechanism(epsilon=1.0)
    assert set(shortlist_worlds(shortlist, size=3)) == {0, 1, 2}
    assert len(ranked_worlds(shortlist, size=3, count=2)) == 6
    vectors = ((0.0, 1.0), (1.0, 0.0))
    assert set(utility_list_worlds(exponential, vectors, count=2)) == set(vectors)


def test_a_draw_with_a_bias_of_a_trillionth_is_noticed() -> None:
    def biased(weights: Sequence[int], noise: NoiseSource) -> int:
        scaled = [weight * 10**12 for weight in weights]
        last = max(index for index, weight in enumerate(weights) if weight)
        scaled[last] += weights[last]
        return draw_index(scaled, noise)

    assert examine_draw(draw_index).holds
    assert not examine_draw(biased).holds
