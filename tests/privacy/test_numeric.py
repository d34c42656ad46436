import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.privacy.events import GaussianRelease, LaplaceRelease
from discreet.privacy.noise import Integers, SystemNoise
from discreet.privacy.numeric import GRANULARITY, GaussianMechanism, LaplaceMechanism
from tests.privacy.shapes import ALARM, evidence

NOISE = SystemNoise()


class Steady:
    """Always the same number of steps, 0 unless told, and a note of the scales asked for."""

    production: ClassVar[bool] = False

    def __init__(self, steps: int = 0) -> None:
        self._steps = steps
        self.laplace: list[float] = []
        self.gaussian: list[float] = []

    def bits(self, count: int) -> int:
        raise AssertionError("a number is hidden by noise, not by a choice")

    def discrete_laplace(self, *, scale: float, size: int) -> Integers:
        self.laplace += [scale] * size
        return np.full(size, self._steps, dtype=np.int64)

    def discrete_gaussian(self, *, scale: float, size: int) -> Integers:
        self.gaussian += [scale] * size
        return np.full(size, self._steps, dtype=np.int64)


KINDS = [LaplaceMechanism, GaussianMechanism]
Kind = type[LaplaceMechanism] | type[GaussianMechanism]


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_gives_a_number_and_a_vector_a_vector(kind: Kind) -> None:
    mechanism = kind(scale=1.0, sensitivity=1.0)
    assert type(mechanism.release(0.3, NOISE).value) is float
    assert type(mechanism.release(3, NOISE).value) is float
    assert type(mechanism.release(np.float64(0.3), NOISE).value) is float
    vector = mechanism.release(np.array([0.3, 0.4, 0.5]), NOISE).value
    assert vector.shape == (3,)
    assert vector.dtype == np.float64


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("granularity", [2.0**-30, GRANULARITY, 1.0, 8.0])
def test_values_come_back_as_whole_steps(kind: Kind, granularity: float) -> None:
    mechanism = kind(scale=5.0, sensitivity=1.0, granularity=granularity)
    values = np.array([-1.7, 0.1, 12.3456])
    noisy = mechanism.release(values, NOISE).value
    assert np.all(noisy / granularity == np.rint(noisy / granularity))
    rounded = mechanism.release(values, Steady()).value
    assert np.all(np.abs(rounded - values) <= granularity / 2)
    assert values.tolist() == [-1.7, 0.1, 12.3456]


def test_noise_is_asked_for_in_steps() -> None:
    steady = Steady()
    LaplaceMechanism(scale=3.0, sensitivity=1.0, granularity=0.25).release(0.5, steady)
    GaussianMechanism(scale=5.0, sensitivity=1.0, granularity=0.5).release(
        np.array([0.5, 1.0]), steady
    )
    assert steady.laplace == [12.0]
    assert steady.gaussian == [10.0, 10.0]


def test_rounding_is_part_of_the_sensitivity() -> None:
    laplace = LaplaceMechanism(scale=2.0, sensitivity=1.0, granularity=0.25)
    assert laplace.release(0.5, NOISE).event == LaplaceRelease(2.0, 1.25)
    assert laplace.release(np.zeros(4), NOISE).event == LaplaceRelease(2.0, 2.0)
    gaussian = GaussianMechanism(scale=2.0, sensitivity=1.0, granularity=0.25)
    assert gaussian.release(0.5, NOISE).event == GaussianRelease(2.0, 1.25)
    assert gaussian.release(np.zeros(4), NOISE).event == GaussianRelease(2.0, 1.5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_event_can_be_known_beforehand(kind: Kind) -> None:
    mechanism = kind(scale=2.0, sensitivity=0.3)
    assert mechanism.event(size=7) == mechanism.release(np.zeros(7), NOISE).event
    counts = np.zeros(7, dtype=np.int64)
    assert mechanism.event(size=7, integers=True) == mechanism.release(counts, NOISE).event


@pytest.mark.parametrize("kind", KINDS)
def test_integers_are_on_the_grid_already(kind: Kind) -> None:
    fine = kind(scale=2.0, sensitivity=1.0, granularity=0.25)
    assert fine.release(np.arange(4), NOISE).event.sensitivity == 1.0
    assert fine.release(3, NOISE).event.sensitivity == 1.0
    assert fine.release(np.arange(4), Steady()).value.tolist() == [0.0, 1.0, 2.0, 3.0]
    coarse = kind(scale=16.0, sensitivity=1.0, granularity=8.0)
    assert coarse.release(np.arange(4), NOISE).event.sensitivity > 8.0
    assert coarse.release(np.array([3, 4, -4, -5]), Steady()).value.tolist() == [0, 8, 0, -8]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(data=st.data())
def test_rounded_neighbours_are_as_near_as_the_event_says(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 5))
    granularity = data.draw(st.sampled_from([2.0**-20, 0.25, 1.0]))
    number = st.floats(-8, 8, allow_nan=False)
    first = np.array(data.draw(st.lists(number, min_size=size, max_size=size)))
    second = np.array(data.draw(st.lists(number, min_size=size, max_size=size)))
    gaps = [Fraction(a) - Fraction(b) for a, b in zip(first, second, strict=True)]
    for kind, power in ((LaplaceMechanism, 1), (GaussianMechanism, 2)):
        distance = float(sum(abs(gap) ** power for gap in gaps)) ** (1 / power)
        mechanism = kind(
            scale=1.0, sensitivity=max(distance, 1e-9) * (1 + 1e-12), granularity=granularity
        )
        one, two = mechanism.release(first, Steady()), mechanism.release(second, Steady())
        moved = np.sum(np.abs(one.value - two.value) ** power) ** (1 / power)
        assert moved <= one.event.sensitivity * (1 + 1e-12)


def test_forgetting_the_rounding_would_be_noticed() -> None:
    # Half a step apart before, a whole step apart after.
    mechanism = LaplaceMechanism(scale=1.0, sensitivity=0.5, granularity=1.0)
    moved = mechanism.release(0.75, Steady()).value - mechanism.release(0.25, Steady()).value
    assert moved == 1.0 > mechanism.sensitivity
    assert moved <= mechanism.event().sensitivity


def test_the_square_root_is_rounded_up() -> None:
    for size in (1, 2, 3, 7, 121, 7381, 10**6):
        mechanism = GaussianMechanism(scale=1.0, sensitivity=1e-6, granularity=0.5)
        rounding = Fraction(mechanism.event(size=size).sensitivity) - Fraction(1e-6)
        assert rounding**2 >= Fraction(size, 4)
        assert float(rounding) == pytest.approx(math.sqrt(size) / 2, rel=1e-9)


@pytest.mark.parametrize("granularity", [1.0, 0.25])
def test_the_noise_has_its_shape_and_scale(granularity: float) -> None:
    # False alarm below 1e-9; rejects a scale 30% off.
    zeros = np.zeros(8_000)
    for kind, shape in ((LaplaceMechanism, "laplace"), (GaussianMechanism, "gaussian")):
        mechanism = kind(scale=6.0, sensitivity=1.0, granularity=granularity)
        steps = (mechanism.release(zeros, NOISE).value / granularity).astype(np.int64)
        assert evidence(shape, steps, 6.0 / granularity) < ALARM
        assert evidence(shape, steps, 7.8 / granularity) > ALARM


@pytest.mark.parametrize("kind", KINDS)
def test_large_integers_keep_their_low_bits(kind: Kind) -> None:
    mechanism = kind(scale=1.0, sensitivity=1.0, granularity=1.0)
    # Doubles do not hold 2**53 + 1, so it must not become one before the noise is added.
    shifted = mechanism.release(np.array([2**53 + 1, 2**53 + 3]), Steady(-(2**53)))
    assert shifted.value.tolist() == [1.0, 3.0]
    coarse = kind(scale=4.0, sensitivity=1.0, granularity=2.0)
    assert coarse.release(np.array([2**53 + 3]), Steady()).value.tolist() == [2**53 + 4]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "values",
    [
        math.nan,
        math.inf,
        -math.inf,
        1e300,
        2.0**43,
        2**43,
        np.array([0.5, np.nan]),
        np.array([], dtype=float),
        np.zeros((2, 2)),
        np.array(["1"]),
        np.array([1j]),
        np.array([True]),
        np.array([2**63], dtype=np.uint64),
    ],
)
def test_unusable_values_are_refused(kind: Kind, values: Any) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        kind(scale=1.0, sensitivity=1.0).release(values, NOISE)
    assert refusal.value.argument == "values"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("argument", "values"),
    [
        ("scale", [0.0, -1.0, math.nan, math.inf]),
        ("sensitivity", [0.0, -1.0, math.nan, math.inf]),
        ("granularity", [0.0, -1.0, 0.3, math.nan, math.inf, 2.0**-600, 2.0**-53]),
    ],
)
def test_unusable_parameters_are_refused(kind: Kind, argument: str, values: list[float]) -> None:
    for value in values:
        with pytest.raises(InvalidArgument) as refusal:
            kind(**{"scale": 1.0, "sensitivity": 1.0, argument: value})
        assert refusal.value.argument == argument
