"""Baselines are worth what they are worth."""

from pathlib import Path

import numpy as np
import pytest

from discreet.research.evaluate.policies import accepted, logged, most_popular, uniform
from discreet.research.evaluate.reward_model import RewardModel
from tests.research.evaluate.recorded import MEANS, log_of

SKEWED = np.tile([0.5, 0.3, 0.1, 0.1], (2, 1))


@pytest.mark.parametrize("law", [None, SKEWED], ids=["uniform", "skewed"])
def test_baselines_are_estimated_within_their_intervals(
    tmp_path: Path, law: np.ndarray | None
) -> None:
    """Eight intervals at twice their width: one fails by chance with probability below 1e-3."""
    log = log_of(tmp_path, 6_000, law=law)
    model = RewardModel.fitted(log)
    anything = float(MEANS.mean())
    found = uniform(log, model)
    for estimate in (found.ips, found.snips, found.dr):
        assert abs(estimate.mean - anything) < 2 * estimate.half_width < 0.1
    popular = most_popular(log, model)
    third = float(MEANS.mean(axis=0).max())
    for one in (popular.snips, popular.dr, popular.replay):
        assert one is not None
        # The first block of rows is shown anything.
        assert third - 0.06 - 2 * one.half_width < one.mean < third + 2 * one.half_width
    itself = logged(log)
    assert (
        itself.dr.mean == itself.snips.mean == itself.ips.mean == pytest.approx(log.rewards.mean())
    )
    assert itself.effective == len(log) > popular.effective
    assert itself.replay is not None
    assert itself.replay.half_width == pytest.approx(itself.ips.half_width)


def test_a_replay_makes_a_skewed_log_uniform(tmp_path: Path) -> None:
    log = log_of(tmp_path, 6_000, law=SKEWED)
    counts = np.bincount(log.actions[accepted(log, 0)], minlength=4)
    assert np.ptp(counts) < 0.2 * counts.mean()  # 600 each, give or take 24
    assert accepted(log_of(tmp_path, 100), 0).all()
