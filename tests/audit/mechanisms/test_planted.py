"""Honest twins of the planted faults pass the examinations that catch the faults.

That the faults themselves are caught is a claim of the audit, and tested with the command.
"""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from discreet.audit.claims import SHARES, Allowance, AuditRun, Claim, PlantedFault
from discreet.audit.discovery import all_checks, all_faults
from discreet.audit.examine_samples import fineness
from discreet.audit.examine_worlds import enumerate_pairs, examine_epsilon, examine_rho
from discreet.audit.mechanisms.choices import (
    FULL_RANGE,
    HALF_STEPS,
    LOPSIDED,
    STRADDLING,
    utility_worlds,
    within,
)
from discreet.audit.mechanisms.choices_planted import PermuteAndFlip
from discreet.audit.mechanisms.numbers import examine_release_by_sampling
from discreet.audit.mechanisms.numbers_planted import ONE, ZERO, FloatLaplace
from discreet.privacy.choice import ExponentialMechanism
from discreet.privacy.events import PermuteAndFlip as HonestEvent
from discreet.privacy.events import Released
from discreet.privacy.numeric import LaplaceMechanism
from discreet.research.noise import SeededNoise


@pytest.mark.parametrize(
    ("vectors", "sensitivity", "steps"),
    [(FULL_RANGE, 1.0, 4096), (STRADDLING, 0.25, 10), (HALF_STEPS, 0.25, 4)],
)
def test_the_shipped_mechanism_passes_where_its_broken_twins_fail(
    vectors: Any, sensitivity: float, steps: int
) -> None:
    mechanism = ExponentialMechanism(epsilon=1.0, sensitivity=sensitivity, steps=steps)
    worlds = utility_worlds(mechanism, vectors, base=LOPSIDED[: len(vectors[0])])
    assert examine_epsilon(enumerate_pairs(worlds, within(sensitivity))).holds


def test_permute_and_flip_is_fine_at_its_own_price() -> None:
    planted = PermuteAndFlip(1.0)

    class Honest:
        def choose(self, **arguments: Any) -> Released[int]:
            return Released(planted.choose(**arguments).value, HonestEvent(1.0))

    pairs = enumerate_pairs(utility_worlds(Honest(), product((0.0, 1.0), repeat=3)), within(1.0))
    assert examine_epsilon(pairs).holds
    assert examine_rho(pairs).holds


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


def test_every_name_is_used_once() -> None:
    rows: list[Claim | PlantedFault] = [*all_checks(), *all_faults()]
    names = [row.name for row in rows]
    assert len(set(names)) == len(names)


def test_luck_cannot_be_overspent() -> None:
    allowance = Allowance()
    assert math.fsum(allowance.share() for _ in range(SHARES)) == pytest.approx(1e-6)
    with pytest.raises(RuntimeError, match="false-alarm"):
        allowance.share()
