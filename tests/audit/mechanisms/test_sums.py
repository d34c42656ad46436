"""The exact cost of a stream of releases, on streams whose cost is known."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from discreet.audit.claims import AuditRun
from discreet.audit.mechanisms.sums import (
    ImpulseNoise,
    examine_stream,
    examine_stream_by_sampling,
    examine_variance,
)
from discreet.privacy.events import GaussianRelease, LaplaceRelease, Released
from discreet.privacy.noise import NoiseSource
from discreet.research.continual import BinaryTree, LaplaceTree, SquareRoot
from discreet.research.noise import SeededNoise


@dataclass
class Naive:
    """Every prefix sum with noise of its own, in whole numbers."""

    event: Any
    scale: float
    laplace: bool = False
    dimension: int = 1

    def start(self) -> tuple[float, float]:
        return (0.0, 0.0)

    def observe(self, *, state: Any, value: Any, noise: NoiseSource) -> Any:
        draw = noise.discrete_laplace if self.laplace else noise.discrete_gaussian
        total = state[0] + float(np.rint(value)[0])
        return (total, total + float(draw(scale=self.scale, size=1)[0]))

    def release(self, *, state: Any) -> Released[Any]:
        return Released(np.array([state[1]]), self.event)


def test_independent_noise_on_every_prefix_costs_as_many_releases_as_see_the_step() -> None:
    """The first of four steps is in four prefix sums: 4 / (2 * 3**2)."""
    fair = Naive(GaussianRelease(scale=3.0, sensitivity=2.0), scale=3.0)
    found = examine_stream(fair, steps=4, values=(0.0, 1.0))
    assert found.measured == pytest.approx(4 / 18, rel=1e-15)
    assert found.holds
    cheap = Naive(GaussianRelease(scale=3.0, sensitivity=1.99), scale=3.0)
    assert not examine_stream(cheap, steps=4, values=(0.0, 1.0)).holds


def test_laplace_noise_adds_up_in_epsilon() -> None:
    fair = Naive(LaplaceRelease(scale=3.0, sensitivity=4.0), scale=3.0, laplace=True)
    found = examine_stream(fair, steps=4, values=(0.0, 1.0))
    assert found.measured == pytest.approx(4 / 3, rel=1e-15)
    assert found.holds
    cheap = Naive(LaplaceRelease(scale=3.0, sensitivity=3.99), scale=3.0, laplace=True)
    assert not examine_stream(cheap, steps=4, values=(0.0, 1.0)).holds


def test_releases_without_noise_cost_infinity() -> None:
    silent = Naive(GaussianRelease(scale=1.0, sensitivity=1.0), scale=1.0)
    silent.observe = lambda *, state, value, noise: (  # type: ignore[method-assign]
        noise.discrete_gaussian(scale=1.0, size=1),
        state[1] + float(value[0]),
    )
    found = examine_stream(silent, steps=3, values=(0.0, 1.0))
    assert found.measured == math.inf
    assert not found.holds


@pytest.mark.parametrize("kind", [BinaryTree, LaplaceTree, SquareRoot])
def test_shipped_sums_cost_what_they_charge_and_hardly_less(kind: Any) -> None:
    found = examine_stream(kind(horizon=7, multiplier=2.0), steps=7, values=(0.0, 1.0))
    assert found.holds
    assert found.measured > 0.99999 * found.claimed


def test_a_value_further_away_than_promised_is_noticed() -> None:
    tree = BinaryTree(horizon=7, multiplier=2.0)
    assert not examine_stream(tree, steps=7, values=(0.0, 1.01)).holds


def test_a_pulse_is_one_step_at_one_draw() -> None:
    pulse = ImpulseNoise(3)
    drawn = [pulse.discrete_gaussian(scale=1.0, size=2) for _ in range(3)]
    assert np.concatenate(drawn).tolist() == [0, 0, 0, 1, 0, 0]


def test_a_stated_variance_thirty_per_cent_off_is_noticed() -> None:
    """Seeded. The deviation is 14% to 16% off; evidence above 100 is expected, 20 are needed."""

    class Modest(BinaryTree):
        def variance(self, step: int) -> float:
            return BinaryTree.variance(self, step) * factor

    for factor in (0.7, 1.0, 1.3):
        run = AuditRun(quick=True, noise=SeededNoise(5))
        found = examine_variance(
            run,
            lambda d: Modest(horizon=7, multiplier=1.0, dimension=d),
            steps=5,
            size=60_000,
        )
        assert found.holds == (factor == 1.0)


def test_sampled_streams_stay_below_their_claim() -> None:
    run = AuditRun(quick=True, noise=SeededNoise(6))
    found = examine_stream_by_sampling(
        run,
        lambda d: SquareRoot(horizon=3, multiplier=1.0, dimension=d),
        steps=3,
        size=20_000,
    )
    assert found.holds
    assert 0.5 < found.measured < found.claimed
