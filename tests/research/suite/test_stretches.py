"""Stretches answer with their truth."""

import numpy as np
import pytest

from discreet.research.suite.stretches import BLOCK, STRETCH
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
    worth = stretch.worth(items)
    np.testing.assert_array_equal(worth, stretch.means[:, 1])
    # The standard error is 0.008.
    assert rewards.mean() == pytest.approx(worth.mean(), abs=0.04)
