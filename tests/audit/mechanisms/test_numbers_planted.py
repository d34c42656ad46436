"""Broken noise is caught; the shipped mechanisms and samplers pass the same examinations."""

import numpy as np
import pytest

from discreet.audit.claims import AuditRun
from discreet.audit.examine_samples import fineness
from discreet.audit.mechanisms.numbers import (
    examine_release_by_sampling,
    examine_shift,
    neighbouring_vectors,
)
from discreet.audit.mechanisms.numbers_planted import ONE, ZERO, FloatLaplace
from discreet.privacy.numeric import LaplaceMechanism
from discreet.research.noise import SeededNoise


@pytest.mark.parametrize("step", [2.0**-20, 0.25])
def test_the_shipped_noise_passes_where_the_broken_one_fails(step: float) -> None:
    mechanism = LaplaceMechanism(scale=1.0, sensitivity=1.0, granularity=step)
    pairs = list(neighbouring_vectors(size=3, sensitivity=1.0, step=step, power=1))
    assert examine_shift(mechanism, pairs, gaussian=False).holds


def test_the_float_laplace_is_a_good_laplace_but_for_its_low_bits() -> None:
    """Bits finer than 2**-53 come more than a quarter of the time at 0 and never at 1."""
    noise = SeededNoise(7)
    drawn = np.array([FloatLaplace(1.0).release(ZERO, noise).value[0] for _ in range(4_000)])
    assert 0.2 < np.mean(fineness(drawn) > 53) < 0.35
    assert not np.any(fineness(1.0 + drawn) > 53)


def test_the_exact_laplace_passes_where_the_float_one_fails() -> None:
    run = AuditRun(quick=True, noise=SeededNoise(8))
    for mechanism, holds in (
        (LaplaceMechanism(scale=1.0, sensitivity=1.0), True),
        (FloatLaplace(1.0), False),
    ):
        found = examine_release_by_sampling(run, mechanism, ZERO, ONE, size=4_000)
        assert found.holds == holds
