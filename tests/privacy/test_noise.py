import inspect
import subprocess
import sys
from typing import ClassVar

import numpy as np
import pytest

from discreet.errors import InvalidArgument, SeededNoiseRefused, StateOverflow
from discreet.privacy import noise as module
from discreet.privacy.noise import MAX_SCALE, NoiseSource, SystemNoise, require_production
from discreet.research.noise import SeededNoise
from tests.privacy.shapes import ALARM, Shape, evidence
from tests.waiting import PATIENCE

NOISE = SystemNoise()


def draw(shape: Shape, *, scale: float, size: int) -> np.ndarray:
    drawers = {"laplace": NOISE.discrete_laplace, "gaussian": NOISE.discrete_gaussian}
    return drawers[shape](scale=scale, size=size)


def test_production_noise_has_no_seed_and_no_state() -> None:
    assert not inspect.signature(SystemNoise).parameters
    assert vars(SystemNoise()) == {}
    for name in ("bits", "discrete_laplace", "discrete_gaussian"):
        assert "seed" not in inspect.signature(getattr(SystemNoise, name)).parameters


@pytest.mark.parametrize("count", [1, 7, 8, 13, 128])
def test_bits_fill_their_range_and_nothing_more(count: int) -> None:
    # A fair bit shows one face only in 200 draws with probability 2**-199.
    drawn = [NOISE.bits(count) for _ in range(200)]
    assert max(drawn) < 2**count
    for place in range(count):
        assert {(number >> place) & 1 for number in drawn} == {0, 1}


def test_no_bits_are_zero_and_fewer_are_refused() -> None:
    assert NOISE.bits(0) == 0
    with pytest.raises(InvalidArgument) as refusal:
        NOISE.bits(-1)
    assert refusal.value.argument == "count"


@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.6, 1.0, 7.5, 1000.0, 2.0**44])
def test_draws_have_their_shape_and_scale(shape: Shape, scale: float) -> None:
    # False alarm below 1e-9; the same sample must speak against a scale 30% off, either way.
    sample = draw(shape, scale=scale, size=8_000)
    assert sample.dtype == np.int64
    assert evidence(shape, sample, scale) < ALARM
    assert evidence(shape, sample, scale * 1.3) > ALARM
    assert evidence(shape, sample, scale / 1.3) > ALARM


def test_the_two_shapes_are_told_apart() -> None:
    # Of equal variance, so that only the shape differs.
    assert evidence("gaussian", draw("laplace", scale=10, size=8_000), 10 * 2**0.5) > ALARM
    assert evidence("laplace", draw("gaussian", scale=10, size=8_000), 10 / 2**0.5) > ALARM


@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
def test_entries_of_one_call_are_independent(shape: Shape) -> None:
    # The sum of two independent entries has twice the variance; a repeated one would have four
    # times. 4,000 pairs estimate the ratio with a deviation below 0.1: the limits are 8 away.
    pairs = draw(shape, scale=20, size=8_000).reshape(-1, 2)
    ratio = pairs.sum(axis=1).var() / pairs.var()
    assert 1.2 < ratio < 2.8


@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
def test_vanishing_and_empty_draws(shape: Shape) -> None:
    assert draw(shape, scale=1e-300, size=3).tolist() == [0, 0, 0]
    assert draw(shape, scale=1.0, size=0).shape == (0,)


@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
def test_the_widest_noise_does_not_reach_the_ends_of_its_integers(shape: Shape) -> None:
    # The median of |z| is 0.69 (0.67) scales. Fewer than half of 400 draws above 0.4 scales, where
    # two thirds belong, has probability below 1e-11.
    sample = np.abs(draw(shape, scale=MAX_SCALE, size=400))
    assert np.median(sample) > 0.4 * MAX_SCALE
    assert sample.max() < 2**62


def test_a_clamped_draw_is_never_returned() -> None:
    # At 2**63 steps most draws leave 64 bits and OpenDP clamps them; 200 good ones have
    # probability below 1e-80.
    with pytest.raises(StateOverflow):
        module._within_range(module._gaussian(2.0**63)([0] * 200))


@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), 2 * MAX_SCALE])
def test_unusable_scales_are_refused(shape: Shape, scale: float) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        draw(shape, scale=scale, size=1)
    assert refusal.value.argument == "scale"


@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
def test_a_negative_size_is_refused(shape: Shape) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        draw(shape, scale=1.0, size=-1)
    assert refusal.value.argument == "size"


FORKING = """
import os
from discreet.privacy.noise import SystemNoise

noise = SystemNoise()

def tell():
    numbers = [noise.bits(128)]
    numbers += noise.discrete_laplace(scale=2.0**40, size=4).tolist()
    numbers += noise.discrete_gaussian(scale=2.0**40, size=4).tolist()
    os.write(1, (" ".join(map(str, numbers)) + chr(10)).encode())

tell()
for generation in range(3):
    if os.fork() == 0:
        tell()
        if os.fork() == 0:
            tell()
            os._exit(0)
        os.wait()
        os._exit(0)
for _ in range(3):
    os.wait()
tell()
"""


def test_forked_workers_share_no_stream() -> None:
    # The samplers are built and used before the fork, so a shared state would show. Two honest
    # draws among a hundred are equal with probability below 2**-25 (wide noise) or 2**-115 (bits).
    run = subprocess.run(
        [sys.executable, "-c", FORKING], capture_output=True, check=True, timeout=PATIENCE
    )
    lines = run.stdout.decode().splitlines()
    assert len(lines) == 8
    numbers = [number for line in lines for number in line.split()]
    assert len(set(numbers)) == len(numbers) == 8 * 9


def test_the_operating_systems_noise_is_accepted() -> None:
    assert require_production(NOISE) is NOISE


class Subclass(SystemNoise):
    """Overrides nothing that one can see from outside; might have."""


class Pretender(SeededNoise):
    production: ClassVar[bool] = True


@pytest.mark.parametrize("noise", [Subclass(), SeededNoise(1), Pretender(1)])
def test_any_other_type_is_refused(noise: NoiseSource) -> None:
    with pytest.raises(SeededNoiseRefused):
        require_production(noise)
