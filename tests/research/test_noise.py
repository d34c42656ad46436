import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.privacy.noise import MAX_SCALE, NoiseSource
from discreet.research.noise import SeededNoise
from tests.privacy.shapes import ALARM, Shape, evidence


def draw(noise: NoiseSource, shape: Shape, *, scale: float, size: int) -> np.ndarray:
    drawers = {"laplace": noise.discrete_laplace, "gaussian": noise.discrete_gaussian}
    return drawers[shape](scale=scale, size=size)


def everything(noise: NoiseSource) -> list[int]:
    numbers = [noise.bits(count) for count in (1, 13, 128)]
    for scale in (0.5, 30.0, 3e4, 2.0**45):
        numbers += noise.discrete_laplace(scale=scale, size=5).tolist()
        numbers += noise.discrete_gaussian(scale=scale, size=5).tolist()
    return numbers


def test_the_same_seed_gives_the_same_draws() -> None:
    assert everything(SeededNoise(7)) == everything(SeededNoise(7))
    assert everything(SeededNoise(7)) != everything(SeededNoise(8))


def test_a_sequence_of_seeds_is_accepted() -> None:
    first, second = np.random.SeedSequence(7).spawn(2)
    assert everything(SeededNoise(first)) != everything(SeededNoise(second))


def test_it_says_that_it_is_not_for_production() -> None:
    assert SeededNoise(1).production is False


@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5, 255.0, 256.0, 1e6, 2.0**41, MAX_SCALE])
def test_draws_have_their_shape_and_scale(shape: Shape, scale: float) -> None:
    # Seeded, so it cannot alarm by chance; a scale 30% off must be noticed, either way.
    sample = draw(SeededNoise(11), shape, scale=scale, size=50_000)
    assert sample.dtype == np.int64
    assert evidence(shape, sample, scale) < ALARM
    assert evidence(shape, sample, scale * 1.3) > ALARM
    assert evidence(shape, sample, scale / 1.3) > ALARM


@pytest.mark.parametrize("count", [1, 8, 13])
def test_bits_are_uniform(count: int) -> None:
    # Seeded. The mean of 4,000 uniform numbers is within 5 deviations of the middle.
    noise = SeededNoise(3)
    drawn = np.array([noise.bits(count) for _ in range(4_000)])
    assert drawn.min() >= 0
    assert drawn.max() < 2**count
    middle, deviation = (2**count - 1) / 2, 2**count / 12**0.5
    assert abs(drawn.mean() - middle) < 5 * max(deviation, 0.5) / 4_000**0.5


@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
def test_bad_arguments_are_named(shape: Shape) -> None:
    noise = SeededNoise(1)
    for scale in (0.0, float("nan"), 2 * MAX_SCALE):
        with pytest.raises(InvalidArgument) as refusal:
            draw(noise, shape, scale=scale, size=1)
        assert refusal.value.argument == "scale"
    with pytest.raises(InvalidArgument) as refusal:
        draw(noise, shape, scale=1.0, size=-1)
    assert refusal.value.argument == "size"


def test_bad_bits_and_seeds_are_named() -> None:
    with pytest.raises(InvalidArgument) as refusal:
        SeededNoise(1).bits(-1)
    assert refusal.value.argument == "count"
    with pytest.raises(InvalidArgument) as refusal:
        SeededNoise(-1)
    assert refusal.value.argument == "seed"
