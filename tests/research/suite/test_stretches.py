"""Stretches answer with their truth, or with what was logged."""

import numpy as np
import pytest

from discreet.research.suite.stretches import BLOCK, STRETCH, LoggedStretch
from tests.research.suite.known import two_kinds


def test_every_quarter_of_whole_stretches_is_whole_blocks() -> None:
    assert STRETCH % (4 * BLOCK) == 0


def test_rewards_follow_the_luck_and_the_mean() -> None:
    stretch = two_kinds(4_000, first=7)
    rows = np.arange(4_000)
    items = np.full(4_000, 8)
    rewards = stretch.rewards(rows, items)
    np.testing.assert_array_equal(rewards, stretch.luck < stretch.means[:, 1])
    np.testing.assert_array_equal(stretch.rewards(rows[5:9], items[5:9]), rewards[5:9])
    worth, counted = stretch.worth(items)
    np.testing.assert_array_equal(worth, stretch.means[:, 1])
    assert counted.sum() == 4_000
    # The standard error is 0.008.
    assert rewards.mean() == pytest.approx(worth.mean(), abs=0.04)


def test_a_log_knows_only_what_was_shown() -> None:
    log = LoggedStretch(
        contexts=np.zeros((4, 1)),
        offered=np.arange(2),
        items=np.array([0, 1, 0, 1]),
        earned=np.array([1.0, 0.0, 1.0, 1.0]),
    )
    answers = np.array([0, 0, 0, 1])
    np.testing.assert_array_equal(log.rewards(np.arange(4), answers), [1.0, np.nan, 1.0, 1.0])
    worth, counted = log.worth(answers)
    assert (worth.sum(), counted.sum()) == (3.0, 3.0)
    assert log.means is None


def test_a_log_estimates_every_fixed_item_without_bias() -> None:
    rng = np.random.default_rng(1)
    items = rng.integers(0, 3, 60_000)
    earned = (rng.random(60_000) < np.array([0.1, 0.2, 0.4])[items]).astype(float)
    log = LoggedStretch(np.zeros((60_000, 1)), np.arange(3), items, earned)
    # The largest standard error is 0.005.
    np.testing.assert_allclose(log.fixed().mean(axis=0), [0.1, 0.2, 0.4], atol=0.025)
