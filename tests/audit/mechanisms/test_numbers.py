"""Examinations of noise on numbers, and the distribution functions that they compare with."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.audit.claims import AuditRun
from discreet.audit.mechanisms.numbers import (
    examine_digits,
    examine_release_by_sampling,
    examine_sampler,
    examine_shift,
    gaussian_cdf,
    laplace_cdf,
    neighbouring_vectors,
)
from discreet.privacy.laplace import LaplaceSampler
from discreet.privacy.numeric import GaussianMechanism, LaplaceMechanism
from discreet.research.noise import SeededNoise


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
def test_the_laplace_distribution_function_is_scipys(scale: float) -> None:
    points = np.arange(-40.0, 41.0)
    assert np.allclose(laplace_cdf(scale)(points), stats.dlaplace(1 / scale).cdf(points))
    assert np.array_equal(laplace_cdf(scale)(points + 0.5), laplace_cdf(scale)(points))


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
def test_the_gaussian_distribution_function_sums_its_terms(scale: float) -> None:
    reach = 400
    mass = {z: math.exp(-(z**2) / (2 * scale**2)) for z in range(-reach, reach + 1)}
    total = math.fsum(mass.values())
    for point in (-9, -1, 0, 3):
        expected = math.fsum(mass[z] for z in mass if z <= point) / total
        assert gaussian_cdf(scale)(np.array([float(point)]))[0] == pytest.approx(expected)


def test_the_wide_gaussian_agrees_with_the_summed_one() -> None:
    points = np.floor(np.linspace(-2000, 2000, 41))
    narrow, wide = gaussian_cdf(511.9)(points), gaussian_cdf(512.1)(points)
    assert np.max(np.abs(narrow - wide)) < 2e-4


def test_neighbours_are_never_too_far_apart_and_often_exactly_far_enough() -> None:
    for power in (1, 2):
        distances = [
            sum(abs(Fraction(a) - Fraction(b)) ** power for a, b in zip(x, y, strict=True))
            for x, y in neighbouring_vectors(size=2, sensitivity=1.0, step=0.25, power=power)
        ]
        assert max(distances) == 1
        assert len(distances) > 50


def test_the_exact_loss_of_honest_noise_is_what_is_charged() -> None:
    pairs = list(neighbouring_vectors(size=2, sensitivity=1.0, step=2.0**-20, power=1))
    found = examine_shift(LaplaceMechanism(scale=2.0, sensitivity=1.0), pairs, gaussian=False)
    assert found.holds
    assert 0.5 <= found.measured <= found.claimed < 0.50001


def test_a_neighbour_one_per_cent_further_than_promised_is_noticed() -> None:
    pairs = [(np.array([0.0]), np.array([1.01]))]
    for mechanism, gaussian in (
        (LaplaceMechanism(scale=2.0, sensitivity=1.0), False),
        (GaussianMechanism(scale=2.0, sensitivity=1.0), True),
    ):
        assert not examine_shift(mechanism, pairs, gaussian=gaussian).holds


def test_noise_of_the_other_kind_is_no_noise() -> None:
    pairs = [(np.array([0.0]), np.array([1.0]))]
    found = examine_shift(LaplaceMechanism(scale=2.0, sensitivity=1.0), pairs, gaussian=True)
    assert found.measured == math.inf
    assert not found.holds


@pytest.mark.parametrize("scale", [0.5, 20.0, 5000.0])
def test_a_sampler_thirty_per_cent_off_is_noticed(scale: float) -> None:
    """Seeded. The least evidence seen against a wrong one is above 100; 21 are needed."""
    noise = SeededNoise(3)

    def laplace(wanted: float, size: int) -> np.ndarray:
        return noise.discrete_laplace(scale=factor * wanted, size=size)

    def gaussian(wanted: float, size: int) -> np.ndarray:
        return noise.discrete_gaussian(scale=factor * wanted, size=size)

    for sampler, law in ((laplace, laplace_cdf), (gaussian, gaussian_cdf)):
        for factor in (0.7, 1.0, 1.3):
            found = examine_sampler(
                AuditRun(quick=True), sampler, law(scale), scale=scale, size=10_000
            )
            assert found.holds == (factor == 1.0)
            assert factor == 1.0 or found.measured > 100


def test_sampled_releases_of_honest_noise_stay_below_their_claim() -> None:
    run = AuditRun(quick=True, noise=SeededNoise(4))
    first, second = np.array([0.0]), np.array([1.0])
    for mechanism, least in (
        (LaplaceMechanism(scale=1.0, sensitivity=1.0), 0.6),
        (GaussianMechanism(scale=1.0, sensitivity=1.0), 0.9),
    ):
        found = examine_release_by_sampling(run, mechanism, first, second, size=10_000)
        assert found.holds
        assert least < found.measured <= found.claimed


@pytest.mark.parametrize("scale", [0.01, 3.0, 2.0**52])
def test_digits_lose_what_a_step_costs_and_no_bit_of_them_may_be_wrong(scale: float) -> None:
    found = examine_digits(LaplaceSampler(scale), scale=scale)
    assert found.holds
    assert 1 / scale <= found.measured <= found.claimed == pytest.approx(1 / scale, rel=1e-6)
    assert not examine_digits(LaplaceSampler(scale), scale=scale * (1 + 2.0**-18)).holds
    for place in (0, 2, -2, -1):
        for step in (1, -1):
            wrong = LaplaceSampler(scale)
            wrong._first[place] = (int(wrong._first[place]) + step) % 2**64
            assert not examine_digits(wrong, scale=scale).holds, place
