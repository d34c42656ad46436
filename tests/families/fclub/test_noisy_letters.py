"""Letters: what is in them, how far one observation moves them, and what they cost."""

import math

import numpy as np
import pytest
from discreet.audit.mechanisms.scripted import Hum
from discreet.families.fclub.letters import (
    COUNT,
    STEPS,
    Letter,
    Privatizer,
    checked_features,
)

from discreet.errors import InvalidArgument, StateOverflow
from discreet.privacy.charges import UNLIMITED
from discreet.privacy.conversions import gaussian_delta
from discreet.privacy.events import ExactRelease, GaussianRelease
from discreet.privacy.noise import SystemNoise
from discreet.research.noise import SeededNoise

RULE = Privatizer(dimensions=3)


def test_observation_and_sums_are_one_another_s_inverse() -> None:
    x = np.array([0.5, -0.25, 0.125])
    sums = RULE.sums(RULE.observation(x=x, reward=1.0) + RULE.observation(x=x, reward=0.25))
    assert np.allclose(sums.gram, 2 * np.outer(x, x), atol=2 / STEPS)
    assert np.allclose(sums.moment, (0.5 - 0.25) * x, atol=2 / STEPS)
    assert sums.count == 2
    nothing = RULE.sums(np.zeros(0, dtype=np.int64))
    assert nothing.count == 0
    assert not nothing.gram.any()


def test_no_two_observations_are_further_apart_than_the_sensitivity() -> None:
    rng = np.random.default_rng(4)
    rule = Privatizer(dimensions=2)
    angles = rng.uniform(0, 2 * np.pi, 400)
    vectors = np.array(
        [
            rule.observation(x=[math.cos(angle), math.sin(angle)], reward=float(rng.random() < 0.5))
            for angle in angles
        ]
    )
    apart = np.linalg.norm((vectors[:, None] - vectors)[:, :, 1:] / STEPS, axis=2)
    assert apart.max() <= rule.sensitivity
    # A sensitivity 30% smaller would be found out.
    assert apart.max() > 0.7 * rule.sensitivity


def test_worst_pair_of_the_proof_is_reached() -> None:
    a = 0.75**2
    cosine = -a / 2
    best = 0.0
    for turn in np.linspace(0, np.pi, 200):
        x = np.array([math.cos(turn), math.sin(turn)])
        other = np.array([math.cos(turn + math.acos(cosine)), math.sin(turn + math.acos(cosine))])
        rule = Privatizer(dimensions=2)
        gap = rule.observation(x=x, reward=1.0) - rule.observation(x=other, reward=1.0)
        best = max(best, float(np.linalg.norm(gap / STEPS)))
    assert best == pytest.approx((2 + a) / math.sqrt(2), rel=1e-3)


@pytest.mark.parametrize("baseline", [0.0, 0.3, 0.5, 1.0])
def test_sensitivity_holds_for_every_baseline(baseline: float) -> None:
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
    from discreet.privacy.calibration import published_privatizer_scale

    rule = Privatizer(dimensions=10, epsilon=1.0, delta=0.1)
    assert published_privatizer_scale(levels=10, epsilon=1.0, delta=0.1) > 4.5 * rule.gram_scale


def test_letter_has_noise_of_the_stated_scale_on_everything_but_the_count() -> None:
    rule = Privatizer(dimensions=10)
    pending = np.zeros(rule.fields, dtype=np.int64)
    pending[COUNT] = 9
    noise = SeededNoise(5)
    drawn = []
    for _ in range(100):
        letter = rule.write(members=(4,), pending=pending, noise=noise).value
        assert letter.count == 9
        drawn.append(letter.steps[1:] / STEPS)
    # 6,500 draws: their deviation is within 5% except with probability below 1e-7.
    assert np.std(drawn) == pytest.approx(rule.gram_scale, rel=0.05)
    assert rule.moment_scale == pytest.approx(rule.gram_scale / 1.5)


def test_production_noise_is_never_twice_the_same() -> None:
    pending = RULE.observation(x=[1, 0, 0], reward=1.0)
    one = RULE.write(members=(0,), pending=pending, noise=SystemNoise()).value
    two = RULE.write(members=(0,), pending=pending, noise=SystemNoise()).value
    assert not np.array_equal(one.steps, two.steps)


def test_letter_asks_for_the_noise_that_its_event_says() -> None:
    hum = Hum()
    pending = RULE.observation(x=[1, 0, 0], reward=1.0)
    released = RULE.write(members=(0,), pending=pending, noise=hum)
    assert isinstance(released.event, GaussianRelease)
    assert hum.gaussian == [released.event.scale * STEPS] * (RULE.fields - 1)
    assert np.array_equal(released.value.steps, pending)


def test_charge_is_the_promise() -> None:
    charge = Privatizer(dimensions=10).charge
    assert charge.nano_epsilon == 10**9
    assert charge.pico_delta == 10**6
    assert 0.0243 < charge.nano_rho / 1e9 < 0.03


def test_exact_letters_cost_everything() -> None:
    rule = Privatizer(dimensions=3, epsilon=None)
    pending = rule.observation(x=[1, 0, 0], reward=0.0)
    released = rule.write(members=(0,), pending=pending, noise=Hum())
    assert released.event == ExactRelease()
    assert np.array_equal(released.value.steps, pending)
    assert rule.charge.nano_epsilon == UNLIMITED
    assert rule.gram_scale == 0


def test_reads_letters_back_and_refuses_impossible_ones() -> None:
    letter = RULE.write(
        members=(1, 2), pending=RULE.observation(x=[0, 1, 0], reward=1.0), noise=SystemNoise()
    ).value
    back = RULE.read(members=[1, 2], steps=letter.steps)
    assert isinstance(back, Letter)
    assert back.members == (1, 2)
    assert np.array_equal(back.steps, letter.steps)
    for members, steps in (
        ([], letter.steps),
        ([1, 1], letter.steps),
        ([-1], letter.steps),
        ([1], letter.steps[:-1]),
        ([1], letter.steps.astype(float)),
        ([1], np.zeros(RULE.fields, dtype=np.int64)),
        ([1], np.full(RULE.fields, 10**9) * np.array([0] + [1] * (RULE.fields - 1)) + 1),
    ):
        with pytest.raises(InvalidArgument):
            RULE.read(members=members, steps=steps)


@pytest.mark.parametrize("x", [[1.0, 1.0, 0.0], [1.0, 0.0], [float("nan"), 0, 0], ["a", 0, 0]])
def test_refuses_items_that_break_the_sensitivity(x: list[float]) -> None:
    with pytest.raises(InvalidArgument, match="x"):
        RULE.observation(x=x, reward=0.5)


def test_scales_long_items_when_asked_to() -> None:
    scaled = checked_features([3.0, 4.0, 0.0], 3, scale=True)
    assert np.allclose(scaled, [0.6, 0.8, 0.0])
    assert np.linalg.norm(scaled) <= 1


@pytest.mark.parametrize("reward", [-0.1, 1.1, float("nan")])
def test_refuses_rewards_outside_the_range(reward: float) -> None:
    with pytest.raises(InvalidArgument, match="reward"):
        RULE.observation(x=[1, 0, 0], reward=reward)


@pytest.mark.parametrize(
    "wrong", [{"dimensions": 0}, {"epsilon": 0.0}, {"delta": 0.0}, {"baseline": 2.0}]
)
def test_refuses_parameters_that_promise_nothing(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidArgument):
        Privatizer(**{"dimensions": 3, **wrong})  # type: ignore[arg-type]


def test_refuses_empty_and_overflowing_letters() -> None:
    with pytest.raises(InvalidArgument, match="pending"):
        RULE.write(members=(0,), pending=np.zeros(RULE.fields, dtype=np.int64), noise=Hum())
    with pytest.raises(StateOverflow):
        RULE.write(members=(0,), pending=np.full(RULE.fields, 2**62), noise=Hum())
