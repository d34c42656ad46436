"""Sums and noisy updates: what is in them, and how far one observation moves them."""

import math

import numpy as np
import pytest

from discreet.audit.scripted_noise import ConstantNoise
from discreet.errors import InvalidArgument, StateOverflow
from discreet.families.fclub.sums import (
    BALANCE,
    COUNT,
    STEPS,
    Privatizer,
    SumsEncoding,
    checked_features,
    folded,
    unfolded,
)
from discreet.privacy.calibration import published_privatizer_scale
from discreet.privacy.conversions import gaussian_delta
from discreet.privacy.events import ExactRelease, GaussianRelease
from discreet.privacy.noise import SystemNoise
from discreet.research.noise import SeededNoise

RULE = Privatizer(dimensions=3)


def test_sums_read_what_observations_add_up_to() -> None:
    x = np.array([0.5, -0.25, 0.125])
    sums = RULE.sums(RULE.observation(x=x, reward=1.0) + RULE.observation(x=x, reward=0.25))
    assert np.allclose(sums.gram, 2 * np.outer(x, x), atol=2 / STEPS)
    assert np.allclose(sums.moment, (0.5 - 0.25) * x, atol=2 / STEPS)
    assert sums.count == 2
    many = RULE.sums(np.zeros((4, RULE.fields), dtype=np.int64))
    assert many.gram.shape == (4, 3, 3)
    with pytest.raises(InvalidArgument, match="steps"):
        RULE.sums(np.zeros(2, dtype=np.int64))


def test_no_two_observations_are_further_apart_than_the_sensitivity() -> None:
    rng = np.random.default_rng(4)
    rule = Privatizer(dimensions=2)
    vectors = np.array(
        [
            rule.observation(x=[math.cos(angle), math.sin(angle)], reward=float(rng.random() < 0.5))
            for angle in rng.uniform(0, 2 * np.pi, 400)
        ]
    )
    apart = np.linalg.norm((vectors[:, None] - vectors)[:, :, 1:] / STEPS, axis=2)
    assert apart.max() <= rule.sensitivity
    # A sensitivity 30% smaller would be found out.
    assert apart.max() > 0.7 * rule.sensitivity


def test_the_worst_pair_of_the_proof_is_reached() -> None:
    rule, a = Privatizer(dimensions=2), BALANCE**2
    apart = math.acos(-a / 2)
    best = 0.0
    for turn in np.linspace(0, np.pi, 200):
        x = [math.cos(turn), math.sin(turn)]
        other = [math.cos(turn + apart), math.sin(turn + apart)]
        gap = rule.observation(x=x, reward=1.0) - rule.observation(x=other, reward=1.0)
        best = max(best, float(np.linalg.norm(gap / STEPS)))
    assert best == pytest.approx((2 + a) / math.sqrt(2), rel=1e-3)


@pytest.mark.parametrize("baseline", [0.0, 0.3, 0.5, 1.0])
def test_the_sensitivity_holds_for_every_baseline(baseline: float) -> None:
    rule = Privatizer(dimensions=2, baseline=baseline)
    x = np.array([1.0, 0.0])
    for y, other in ((0.0, 1.0), (1.0, 1.0), (0.0, 0.0)):
        for sign in (1.0, -1.0):
            gap = rule.observation(x=x, reward=y) - rule.observation(x=sign * x, reward=other)
            assert np.linalg.norm(gap / STEPS) <= rule.sensitivity


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (1.0, 0.1), (0.1, 1e-9)])
def test_noise_keeps_the_promise_and_little_more(epsilon: float, delta: float) -> None:
    rule = Privatizer(dimensions=10, epsilon=epsilon, delta=delta)
    multiplier = rule.gram_scale / rule.sensitivity
    assert gaussian_delta(multiplier=multiplier, epsilon=epsilon) <= delta
    assert gaussian_delta(multiplier=0.99 * multiplier, epsilon=epsilon) > delta


def test_noise_is_far_below_the_published_recipe() -> None:
    rule = Privatizer(dimensions=10, epsilon=1.0, delta=0.1)
    assert published_privatizer_scale(levels=10, epsilon=1.0, delta=0.1) > 4.5 * rule.gram_scale


def test_an_update_has_noise_of_the_stated_scale_on_everything_but_the_count() -> None:
    rule = Privatizer(dimensions=10)
    pending = np.zeros(rule.fields, dtype=np.int64)
    pending[COUNT] = 9
    noise = SeededNoise(5)
    drawn = []
    for _ in range(100):
        update = rule.write(members=(4,), pending=pending, noise=noise).value
        assert (update.count, update.deviation) == (9, rule.gram_scale)
        drawn.append(update.steps[1:] / STEPS)
    # 6,500 draws: their deviation is within 5% except with probability below 1e-7.
    assert np.std(drawn) == pytest.approx(rule.gram_scale, rel=0.05)
    assert rule.moment_scale == pytest.approx(rule.gram_scale / 1.5)


def test_production_noise_is_never_twice_the_same() -> None:
    pending = RULE.observation(x=[1, 0, 0], reward=1.0)
    one = RULE.write(members=(0,), pending=pending, noise=SystemNoise()).value
    two = RULE.write(members=(0,), pending=pending, noise=SystemNoise()).value
    assert not np.array_equal(one.steps, two.steps)


def test_an_update_asks_for_the_noise_that_its_event_says() -> None:
    noise = ConstantNoise()
    pending = RULE.observation(x=[1, 0, 0], reward=1.0)
    released = RULE.write(members=(0,), pending=pending, noise=noise)
    assert released.event == GaussianRelease(scale=RULE.gram_scale, sensitivity=RULE.sensitivity)
    assert noise.gaussian == [RULE.gram_scale * STEPS] * (RULE.fields - 1)
    assert np.array_equal(released.value.steps, pending)


def test_exact_updates_say_that_they_are() -> None:
    rule, noise = Privatizer(dimensions=3, epsilon=None), ConstantNoise(7)
    pending = rule.observation(x=[1, 0, 0], reward=0.0)
    released = rule.write(members=(0,), pending=pending, noise=noise)
    assert released.event == ExactRelease()
    assert np.array_equal(released.value.steps, pending)
    assert (released.value.deviation, noise.gaussian) == (0.0, [])


def test_updates_are_read_back_and_impossible_ones_refused() -> None:
    update = RULE.write(
        members=(2, 1), pending=RULE.observation(x=[0, 1, 0], reward=1.0), noise=SystemNoise()
    ).value
    back = RULE.read_update(members=[2, 1], steps=update.steps, deviation=update.deviation)
    assert back.members == (1, 2)
    assert np.array_equal(back.steps, update.steps)
    good, size = update.steps, RULE.fields
    for members, steps, deviation in (
        ([], good, 1.0),
        ([1, 1], good, 1.0),
        ([-1], good, 1.0),
        ([1], good[:-1], 1.0),
        ([1], good.astype(float), 1.0),
        ([1], good, -1.0),
        ([1], good, math.nan),
        ([1], np.zeros(size, dtype=np.int64), 1.0),
        ([1], np.array([1] + [10**9] * (size - 1)), 1.0),
    ):
        with pytest.raises(InvalidArgument):
            RULE.read_update(members=members, steps=steps, deviation=deviation)


def test_triangles_and_matrices_are_the_same() -> None:
    half = np.arange(12.0).reshape(2, 6)
    whole = unfolded(half, 3)
    assert np.array_equal(whole, np.swapaxes(whole, 1, 2))
    assert np.array_equal(folded(whole), half)


@pytest.mark.parametrize("x", [[1.0, 1.0, 0.0], [1.0, 0.0], [float("nan"), 0, 0], ["a", 0, 0]])
def test_items_that_break_the_sensitivity_are_refused(x: list[float]) -> None:
    with pytest.raises(InvalidArgument, match="x"):
        checked_features(x, 3)


@pytest.mark.parametrize("reward", [-0.1, 1.1, float("nan")])
def test_rewards_outside_the_range_are_refused(reward: float) -> None:
    with pytest.raises(InvalidArgument, match="reward"):
        RULE.observation(x=[1, 0, 0], reward=reward)


@pytest.mark.parametrize(
    "wrong", [{"dimensions": 0}, {"epsilon": 0.0}, {"delta": 0.0}, {"baseline": 2.0}]
)
def test_parameters_that_promise_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidArgument):
        Privatizer(**{"dimensions": 3, **wrong})  # type: ignore[arg-type]
    if "epsilon" not in wrong and "delta" not in wrong:
        with pytest.raises(InvalidArgument):
            SumsEncoding(**{"dimensions": 3, **wrong})  # type: ignore[arg-type]


def test_empty_and_overflowing_updates_are_refused() -> None:
    noise = ConstantNoise()
    with pytest.raises(InvalidArgument, match="pending"):
        RULE.write(members=(0,), pending=np.zeros(RULE.fields, dtype=np.int64), noise=noise)
    with pytest.raises(InvalidArgument, match="pending"):
        RULE.write(members=(0,), pending=np.ones(2, dtype=np.int64), noise=noise)
    with pytest.raises(StateOverflow):
        RULE.write(members=(0,), pending=np.full(RULE.fields, 2**62), noise=noise)
