"""Promises that every continual sum keeps, whatever its structure."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument, StateOverflow
from discreet.privacy.accountants import ZCDPAccountant
from discreet.privacy.events import LaplaceRelease
from discreet.privacy.noise import SystemNoise
from discreet.research.continual import (
    BinaryTree,
    ContinualSum,
    Doubling,
    LaplaceTree,
    SmoothBinary,
    SquareRoot,
)
from discreet.research.continual.epochs import Epochs
from discreet.research.noise import SeededNoise
from tests.research.continual.impulses import Impulse, losses, releases, responses

Make = Callable[..., ContinualSum[Any]]


def _doubling(family: Any, share: float, **parameters: Any) -> ContinualSum[Any]:
    parameters.pop("horizon")
    return Doubling(family=family, share=share, **parameters)


def _epochs(family: Any, length: int, **parameters: Any) -> ContinualSum[Any]:
    parameters.pop("horizon")
    return Epochs(family=family, length=length, **parameters)


MAKERS: dict[str, Make] = {
    "tree": BinaryTree,
    "laplace-tree": LaplaceTree,
    "smooth": SmoothBinary,
    "square-root": SquareRoot,
    "doubling-tree": partial(_doubling, BinaryTree, 0.0),
    "doubling-laplace": partial(_doubling, LaplaceTree, 0.3),
    "doubling-smooth": partial(_doubling, SmoothBinary, 0.5),
    "doubling-square-root": partial(_doubling, SquareRoot, 0.5),
    "doubling-square-root-last": partial(_doubling, SquareRoot, 0.0),
    "epochs-square-root": partial(_epochs, SquareRoot, 5),
}
KINDS = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


@KINDS
class TestEverySum:
    @pytest.mark.parametrize("horizon", [1, 2, 7, 8, 21])
    def test_without_noise_it_is_the_sum(self, make: Make, horizon: int) -> None:
        sums = make(horizon=horizon, multiplier=1.0, dimension=3)
        values = np.random.default_rng(horizon).integers(-5, 6, size=(horizon, 3)) / 4
        assert np.array_equal(sums.release(state=sums.start()).value, np.zeros(3))
        told = releases(sums, values, Impulse())
        assert np.allclose(told, np.cumsum(values, axis=0), rtol=0, atol=1e-9)

    @pytest.mark.parametrize("horizon", [1, 2, 5, 8, 20])
    def test_the_true_loss_of_all_releases_is_within_the_claim(
        self, make: Make, horizon: int
    ) -> None:
        """Found by poking the code, with step sensitivity 1 and multiplier 2: a loss of 1/2."""
        sums = make(horizon=horizon, multiplier=2.0)
        worst = max(losses(sums, horizon))
        assert worst <= 0.5
        # What is claimed is not much more than what is lost. Trees claim every node that a step
        # enters; the releases alone show a little less.
        assert worst >= 0.5 * 0.6

    def test_the_loss_is_within_the_claim_for_vectors_too(self, make: Make) -> None:
        sums = make(horizon=6, multiplier=2.0, dimension=2)
        assert 0.3 <= max(losses(sums, 6)) <= 0.5

    @pytest.mark.parametrize("horizon", [1, 6, 19])
    def test_the_variance_is_that_of_the_noise_that_is_used(self, make: Make, horizon: int) -> None:
        sums = make(horizon=horizon, multiplier=1.5, step_sensitivity=3.0)
        answers, scales = responses(sums, horizon)
        squares = scales**2
        if isinstance(sums.event, LaplaceRelease):
            squares = np.array([0.5 / math.sinh(0.5 / scale) ** 2 for scale in scales])
        expected = (answers**2) @ squares
        for step in range(1, horizon + 1):
            assert sums.variance(step) == pytest.approx(expected[step - 1], rel=1e-9)
        assert sums.variance(0) == 0

    def test_the_variance_is_that_of_a_simulation(self, make: Make) -> None:
        """30,000 independent coordinates at 13 steps, seeded.

        A sample variance is then within 7% but with probability below 1e-9 (Laplace, the worst);
        noise 30% too small or large is off by 50% or more.
        """
        sums = make(horizon=13, multiplier=1.0, dimension=30_000)
        told = releases(sums, np.zeros((13, 30_000)), SeededNoise(11))
        for step in range(1, 14):
            sample = float(np.mean(told[step - 1] ** 2))
            assert sample == pytest.approx(sums.variance(step), rel=0.07)

    def test_coordinates_have_noise_of_their_own(self, make: Make) -> None:
        answers, _ = responses(make(horizon=6, multiplier=1.0, dimension=3), 6)
        by_coordinate = np.abs(answers.reshape(6, 3, -1)).sum(axis=0) > 0
        assert (by_coordinate.sum(axis=0) <= 1).all(), "a draw reached two coordinates"

    def test_neighbours_differ_by_their_difference_from_there_on(self, make: Make) -> None:
        sums = make(horizon=11, multiplier=1.0, dimension=2)
        values = np.random.default_rng(2).integers(-3, 4, size=(11, 2)).astype(np.float64)
        other = values.copy()
        other[4] += [1.0, -0.5]
        one, two = (releases(sums, stream, SeededNoise(8)) for stream in (values, other))
        assert np.array_equal(one[:4], two[:4])
        assert np.allclose(two[4:] - one[4:], [1.0, -0.5], rtol=0, atol=1e-7)

    def test_releasing_again_tells_nothing_new(self, make: Make) -> None:
        sums, noise = make(horizon=9, multiplier=1.0), SeededNoise(4)
        state = sums.start()
        for value in range(9):
            before = sums.encode(state).copy()
            following = sums.observe(state=state, value=float(value), noise=noise)
            assert np.array_equal(sums.encode(state), before), "the old state was changed"
            state = following
            first = sums.release(state=state)
            again = sums.release(state=state)
            assert np.array_equal(first.value, again.value)
            assert first.event == again.event == sums.event

    def test_a_stored_state_goes_on_where_it_was(self, make: Make) -> None:
        sums = make(horizon=20, multiplier=1.0, dimension=2)
        values = np.random.default_rng(5).normal(size=(20, 2))
        whole = releases(sums, values, SeededNoise(6))
        noise, state, rows = SeededNoise(6), sums.start(), []
        for value in values:
            stored = sums.encode(state).astype(">i8").tobytes()
            state = sums.decode(np.frombuffer(stored, dtype=">i8").astype(np.int64))
            state = sums.observe(state=state, value=value, noise=noise)
            rows.append(sums.release(state=state).value)
        assert np.array_equal(np.array(rows), whole)

    def test_a_state_of_another_shape_is_refused(self, make: Make) -> None:
        sums = make(horizon=4, multiplier=1.0, dimension=2)
        good = sums.encode(sums.start())
        beyond = good.copy()
        beyond[0] = 2**40
        for bad in (good[:-1], good.astype(np.float64), beyond, np.zeros(0, dtype=np.int64)):
            with pytest.raises(InvalidArgument) as caught:
                sums.decode(bad)
            assert caught.value.argument == "vector"

    def test_the_event_is_priced_by_the_multiplier_alone(self, make: Make) -> None:
        for horizon, dimension in ((3, 1), (40, 5)):
            sums = make(horizon=horizon, multiplier=4.0, dimension=dimension, step_sensitivity=7.0)
            price = ZCDPAccountant().price(sums.event)
            if isinstance(sums.event, LaplaceRelease):
                assert price.epsilon == pytest.approx(0.25, rel=1e-12)
                assert price.epsilon <= 0.25
            else:
                assert price.rho == pytest.approx(1 / 32, rel=1e-12)
                assert price.rho <= 1 / 32

    @pytest.mark.parametrize(
        "value", [math.nan, math.inf, [1.0, math.nan], [1.0], [[1.0, 2.0]], "no", [1e300, 0.0]]
    )
    def test_what_is_no_step_is_refused(self, make: Make, value: Any) -> None:
        sums = make(horizon=4, multiplier=1.0, dimension=2)
        with pytest.raises(InvalidArgument) as caught:
            sums.observe(state=sums.start(), value=value, noise=SeededNoise(1))
        assert caught.value.argument == "value"

    @pytest.mark.parametrize(
        ("argument", "value"),
        [
            ("multiplier", 0.0),
            ("multiplier", math.nan),
            ("dimension", 0),
            ("step_sensitivity", -1.0),
            ("step_sensitivity", math.inf),
            ("granularity", 0.3),
            ("granularity", 0.0),
            ("granularity", 2.0**-60),
        ],
    )
    def test_bad_parameters_are_named(self, make: Make, argument: str, value: float) -> None:
        parameters: dict[str, Any] = {"horizon": 4, "multiplier": 1.0, argument: value}
        with pytest.raises(InvalidArgument) as caught:
            make(**parameters)
        assert caught.value.argument == argument

    def test_a_sum_that_leaves_its_field_is_refused(self, make: Make) -> None:
        sums = make(horizon=4, multiplier=1.0)
        huge = np.full((4, 1), 2.0**62 * 2.0**-20 * 0.9)
        with pytest.raises(StateOverflow):
            releases(sums, huge, Impulse())

    def test_it_runs_on_the_noise_of_production(self, make: Make) -> None:
        """Two runs of 40 coordinates agree in hardly any: one step of the grid in 2**20 or so.

        The chance that two honest runs agree in three is below 40**3 / 6 * 2**-60, or 1e-14.
        """
        sums = make(horizon=3, multiplier=1.0, dimension=40)
        one, two = (releases(sums, np.zeros((3, 40)), SystemNoise()) for _ in range(2))
        assert (one[-1] == two[-1]).sum() < 3
        assert np.abs(one).max() < 40 * math.sqrt(max(sums.variance(t) for t in (1, 2, 3)))

    def test_steps_out_of_reach_have_no_variance(self, make: Make) -> None:
        sums = make(horizon=4, multiplier=1.0)
        with pytest.raises(InvalidArgument) as caught:
            sums.variance(-1)
        assert caught.value.argument == "step"


@pytest.mark.parametrize("make", [BinaryTree, LaplaceTree, SmoothBinary, SquareRoot])
def test_a_horizon_is_the_end(make: Make) -> None:
    sums = make(horizon=3, multiplier=1.0)
    state = sums.start()
    for _ in range(3):
        state = sums.observe(state=state, value=1.0, noise=Impulse())
    with pytest.raises(InvalidArgument) as caught:
        sums.observe(state=state, value=1.0, noise=Impulse())
    assert caught.value.argument == "state"
    with pytest.raises(InvalidArgument) as caught:
        sums.variance(4)
    assert caught.value.argument == "step"
    for horizon in (0, 2**60):
        with pytest.raises(InvalidArgument) as caught:
            make(horizon=horizon, multiplier=1.0)
        assert caught.value.argument == "horizon"
