"""From feedback to sums, and what a record costs."""

import numpy as np
import pytest

from discreet.families.contract import REWARD_STEPS
from discreet.families.p_dap import learning
from discreet.families.p_dap.learning import GUESTS, OWN_USERS, FeedbackNoise, Growth
from discreet.families.p_dap.statistics import CellStatistics
from discreet.privacy.accountants import Budget, EitherAccountant
from discreet.research.noise import SeededNoise


@pytest.mark.parametrize("reward", [0.0, 1.0, 0.5, 1 / 3, 1e-9])
def test_a_record_is_two_entries_that_add_up_to_one(reward: float) -> None:
    (liked, disliked) = learning.increments(5, reward)
    assert (liked[0], disliked[0]) == (10, 11)
    assert liked[1] + disliked[1] == REWARD_STEPS
    assert min(liked[1], disliked[1]) >= 0


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-6), (4.0, 1e-9), (8.0, 0.01)])
def test_a_record_costs_what_the_document_says(epsilon: float, delta: float) -> None:
    noise = FeedbackNoise.calibrated(epsilon=epsilon, delta=delta)
    assert noise.event is not None
    rule, budget = EitherAccountant(), Budget(epsilon, delta)
    charge = rule.charge(noise.event)
    spent = rule.spent(charge, budget)
    assert spent.epsilon == pytest.approx(epsilon, rel=1e-4)
    # The budget of one record pays for one record, and not for two in one release.
    assert rule.limit(budget).admits(charge)
    assert not rule.limit(budget).admits(charge + charge)


def test_exact_is_no_noise() -> None:
    assert FeedbackNoise.exact().deviation == 0.0


def test_populations_do_not_mix() -> None:
    growth = Growth(1, 100.0, 1.0, FeedbackNoise.exact())
    blank = CellStatistics.blank(segments=2, slots=2)
    vector = np.array([REWARD_STEPS, 0, 0, 0])
    gathered = {learning.block(OWN_USERS, 0): vector, learning.block(GUESTS, 0): 3 * vector}
    live = np.arange(2, dtype=np.intp)
    found = [
        growth.next_statistics(
            blank, gathered, population=people, live=live, noise=SeededNoise(0)
        ).liked[0, 0]
        for people in (OWN_USERS, GUESTS)
    ]
    assert found == [1.0, 3.0]


def test_a_model_comes_back_as_it_was_written() -> None:
    own = CellStatistics.blank(segments=3, slots=4)
    guests = own.grown({}, live=np.arange(4), deviation=2.0, noise=SeededNoise(5))
    again = learning.decode(learning.encode(own, guests), segments=3)
    assert np.array_equal(again[0].liked, own.liked)
    assert np.array_equal(again[1].liked, guests.liked)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04"])
def test_what_is_no_model_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"model|read|pickled|file"):
        learning.decode(content, segments=2)
