"""What a reward adds and costs, and that the noise is what was paid for."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.collaborative.learning import REWARDS, RewardLearning
from discreet.families.contract import REWARD_STEPS
from discreet.families.documents import FeedbackPrivacyDocument, WindowedBudgetDocument
from discreet.privacy.charges import NANO
from discreet.privacy.conversions import zcdp_epsilon
from discreet.research.noise import SeededNoise
from discreet.state.stores import EXACT

PRIVATE = FeedbackPrivacyDocument(epsilon=1.0, delta=1e-6)


def test_a_reward_goes_to_its_item() -> None:
    lesson = RewardLearning("exact").lesson(5, 0.25)
    assert lesson.increments == {REWARDS: [(5, REWARD_STEPS // 4)]}
    assert lesson.charge == EXACT
    assert RewardLearning("exact").budget is None


@pytest.mark.parametrize("reward", [-0.1, 1.1, float("nan")])
def test_a_reward_beyond_the_sensitivity_is_refused(reward: float) -> None:
    with pytest.raises(InvalidArgument, match="reward"):
        RewardLearning(PRIVATE).lesson(0, reward)


def test_the_price_is_within_the_promise_and_nearly_all_of_it() -> None:
    learning = RewardLearning(PRIVATE)
    epsilon = zcdp_epsilon(rho=learning.charge.nano_rho / NANO, delta=1e-6)
    assert 0.9999 < epsilon <= 1.0
    # The same, whatever the record says.
    assert learning.lesson(0, 0.0).charge == learning.lesson(9, 1.0).charge == learning.charge


def test_the_noise_covers_replacing_a_record() -> None:
    """Neighbours differ by sqrt(2); rho is that squared over twice the variance."""
    learning = RewardLearning(PRIVATE)
    _, variances = learning.release({}, 3, SeededNoise(1))
    rho = learning.charge.nano_rho / NANO
    assert 2.0 / (2.0 * variances[0]) == pytest.approx(rho, rel=1e-6)
    assert 2.0 / (2.0 * variances[0]) <= rho


def test_every_slot_has_noise_of_the_stated_variance_and_no_bias() -> None:
    """Of 20,000 draws; one that is wrong by 30 % in scale or shifted by 0.5 fails."""
    learning = RewardLearning(PRIVATE)
    size = 20_000
    sums = {REWARDS: np.full(size, 3 * REWARD_STEPS, dtype=np.int64)}
    rewards, variances = learning.release(sums, size, SeededNoise(7))
    deviation = float(np.sqrt(variances[0]))
    # Five standard errors: of the mean, and of the deviation (relative 1 / sqrt(2 n)).
    assert abs(rewards.mean() - 3.0) < 5 * deviation / np.sqrt(size) < 0.5
    assert rewards.std() == pytest.approx(deviation, rel=5 / np.sqrt(2 * size))


def test_the_noise_does_not_depend_on_what_gathered() -> None:
    learning = RewardLearning(PRIVATE)
    nothing, _ = learning.release({}, 4, SeededNoise(1))
    something, _ = learning.release(
        {REWARDS: np.array([0, REWARD_STEPS, 0], dtype=np.int64)}, 4, SeededNoise(1)
    )
    np.testing.assert_allclose(something - nothing, [0, 1, 0, 0])


def test_exact_sums_stay_exact() -> None:
    sums = {REWARDS: np.array([0, 3, REWARD_STEPS], dtype=np.int64)}
    rewards, variances = RewardLearning("exact").release(sums, 4, SeededNoise(1))
    assert (rewards * REWARD_STEPS).tolist() == [0, 3, REWARD_STEPS, 0]
    assert not variances.any()
    assert [len(each) for each in RewardLearning(PRIVATE).release({}, 0, SeededNoise(1))] == [0, 0]


def test_a_budget_that_pays_for_nothing_is_refused() -> None:
    budget = WindowedBudgetDocument(epsilon=1.0, delta=1e-9)
    poor = FeedbackPrivacyDocument(epsilon=1.0, delta=1e-3, budget=budget)
    with pytest.raises(InvalidArgument, match="at least one record"):
        RewardLearning(poor)
