"""Epochs of fixed length: where they begin, what they cost, what they add."""

import math

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.continual import Doubling, SmoothBinary, SquareRoot
from discreet.research.continual.epochs import Epochs
from discreet.research.noise import SeededNoise
from tests.research.continual.impulses import Impulse, losses, releases


@pytest.mark.parametrize("family", [SquareRoot, SmoothBinary])
def test_without_noise_it_is_the_sum(family: type[SquareRoot] | type[SmoothBinary]) -> None:
    sums = Epochs(family=family, length=4, multiplier=1.0, dimension=2)
    values = np.random.default_rng(0).integers(-5, 6, size=(11, 2)) / 4
    assert np.allclose(releases(sums, values, Impulse()), np.cumsum(values, axis=0), atol=1e-9)
    assert sums.horizon is None


@pytest.mark.parametrize("family", [SquareRoot, SmoothBinary])
def test_a_step_costs_one_epoch_however_long_the_stream(
    family: type[SquareRoot] | type[SmoothBinary],
) -> None:
    found = losses(Epochs(family=family, length=4, multiplier=2.0), 11)
    assert max(found) <= 0.5
    assert max(found[4:8]) >= 0.3


def test_states_survive_being_written_down() -> None:
    sums = Epochs(family=SquareRoot, length=3, multiplier=1.0, dimension=2)
    state = sums.start()
    for step in range(8):
        state = sums.observe(state=state, value=[1.0, -0.5], noise=SeededNoise(step))
        again = sums.decode(sums.encode(state))
        assert again.epoch == state.epoch == step // 3
        assert (sums.release(state=again).value == sums.release(state=state).value).all()
    for wrong in (np.zeros(2, dtype=np.int64), np.full(20, -1), np.zeros((2, 20), dtype=np.int64)):
        with pytest.raises(InvalidArgument):
            sums.decode(wrong)


def test_the_variance_is_that_of_what_is_released() -> None:
    """3,000 streams, seeded: squares are within 15% but for chance 1e-7."""
    sums = Epochs(family=SquareRoot, length=5, multiplier=1.0, dimension=3_000)
    told = releases(sums, np.ones((12, 3_000)), SeededNoise(3))
    for step in (1, 5, 6, 12):
        error = told[step - 1] - step
        assert float(np.mean(error**2)) == pytest.approx(sums.variance(step), rel=0.15)
    assert sums.variance(0) == 0


def test_it_is_quieter_than_doubling_for_the_first_sixty_steps() -> None:
    fixed = Epochs(family=SquareRoot, length=16, multiplier=1.0)
    double = Doubling(family=SquareRoot, multiplier=1.0)
    assert all(fixed.variance(step) < double.variance(step) for step in range(2, 61))
    assert fixed.variance(400) > double.variance(400)
    assert math.sqrt(fixed.variance(16)) < 2.0


def test_an_epoch_has_a_length() -> None:
    with pytest.raises(InvalidArgument, match="length"):
        Epochs(family=SquareRoot, length=0, multiplier=1.0)
