"""The noise that covers all that a person did: no two people are further apart than it says."""

import math

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.fclub.person_noise import COUNT_WEIGHT, PersonNoise
from discreet.families.fclub.sums import BALANCE, STEPS, SumsEncoding
from discreet.privacy.charges import NANO
from discreet.privacy.conversions import zcdp_rho

NOISE = PersonNoise(dimensions=2, contribution=10, epsilon=1.0, delta=1e-6)
ENCODING = SumsEncoding(dimensions=2)


def put_in(records: np.ndarray) -> np.ndarray:
    """What a person with these records adds to a slot."""
    part = np.rint(records.sum(axis=0) * (NOISE.contribution / len(records))) / STEPS
    part[0] = NOISE.contribution * COUNT_WEIGHT
    return part


def people(seed: int) -> np.ndarray:
    """Contributions of people with one record, two, and twenty."""
    rng = np.random.default_rng(seed)
    found = []
    for size in [1] * 150 + [2] * 50 + [20] * 50:
        angles = rng.uniform(0, 2 * np.pi, size)
        records = [
            ENCODING.observation(
                x=[math.cos(angle), math.sin(angle)], reward=float(rng.random() < 0.5)
            )
            for angle in angles
        ]
        found.append(put_in(np.array(records)))
    return np.array(found)


def test_no_two_people_are_further_apart_than_the_sensitivity() -> None:
    some = people(3)
    same_slot = np.linalg.norm(some[:, None] - some, axis=2)
    sizes = np.linalg.norm(some, axis=1)
    other_slot = math.sqrt(2) * sizes.max()
    assert max(same_slot.max(), other_slot) <= NOISE.sensitivity
    # A sensitivity 30% smaller would be found out.
    assert same_slot.max() > 0.7 * NOISE.sensitivity
    # Whoever takes part in one world only costs at most half of a release.
    assert sizes.max() ** 2 <= NOISE.sensitivity**2 / 2


def test_the_worst_pair_of_the_proof_is_reached() -> None:
    apart = math.acos(-(BALANCE**2) / 2)
    pair = [
        put_in(ENCODING.observation(x=[math.cos(turn), math.sin(turn)], reward=1.0)[None])
        for turn in (0.4, 0.4 + apart)
    ]
    # The upper triangle of a matrix is shorter than the matrix unless the difference is diagonal.
    best = np.linalg.norm(pair[0] - pair[1])
    assert 0.8 * NOISE.sensitivity < best <= NOISE.sensitivity


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (8.0, 1e-6), (0.1, 1e-9)])
def test_a_release_costs_what_the_document_says_and_little_less(
    epsilon: float, delta: float
) -> None:
    noise = PersonNoise(dimensions=10, contribution=10, epsilon=epsilon, delta=delta)
    event = noise.event
    rho = (event.sensitivity / event.scale) ** 2 / 2
    promised = zcdp_rho(epsilon=epsilon, delta=delta)
    assert 0.999 * promised - 1 / NANO < rho <= promised


def test_who_counts_twice_as_much_needs_twice_the_noise() -> None:
    twice = PersonNoise(dimensions=2, contribution=20, epsilon=1.0, delta=1e-6)
    assert twice.deviation == pytest.approx(2 * NOISE.deviation, rel=1e-4)


def test_parameters_that_promise_nothing_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="contribution"):
        PersonNoise(dimensions=2, contribution=0, epsilon=1.0, delta=1e-6)
    tiny = PersonNoise(dimensions=2, contribution=1, epsilon=1e-6, delta=1e-12)
    with pytest.raises(InvalidArgument, match="epsilon"):
        _ = tiny.deviation
