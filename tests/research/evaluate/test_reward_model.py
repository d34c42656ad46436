"""The guess of rewards: from rows before only, and better with more of them."""

from pathlib import Path

import numpy as np

from discreet.research.evaluate import reward_model
from discreet.research.evaluate.reward_model import RewardModel
from tests.research.evaluate.recorded import MEANS, log_of, read, rows, write


def test_guesses_come_close_to_the_means(tmp_path: Path) -> None:
    """3,000 rows are fitted at 500, 1,000 and 2,000; 500 a cell then leave an error of 0.02."""
    log = log_of(tmp_path, 3_000)
    model = RewardModel.fitted(log)
    assert model.starts == (0, 500, 1_000, 2_000)
    late = slice(2_900, 3_000)
    kinds = log.features(late)[:, 0].astype(int)
    assert np.abs(model.guess(log, late) - MEANS[kinds]).max() < 0.1


def test_a_row_has_no_part_in_its_own_guess(tmp_path: Path) -> None:
    made = rows(1_100)
    log = read(write(tmp_path / "log.csv", made))
    before = RewardModel.fitted(log).guess(log, slice(600, 1_000))
    for row in made[600:]:
        row["reward"] = 1
    log = read(write(tmp_path / "log.csv", made))
    assert (RewardModel.fitted(log).guess(log, slice(600, 1_000)) == before).all()
    assert not (RewardModel.fitted(log).guess(log, slice(1_000, 1_100)) == 1).all()


def test_too_many_items_have_means_only(tmp_path: Path, monkeypatch: object) -> None:
    log = log_of(tmp_path, 1_200)
    whole = reward_model.MOST_NUMBERS
    try:
        reward_model.MOST_NUMBERS = 10
        model = RewardModel.fitted(log)
    finally:
        reward_model.MOST_NUMBERS = whole
    guesses = model.guess(log, slice(1_000, 1_200))
    assert (guesses == guesses[0]).all()
    assert np.abs(guesses[0] - MEANS.mean(axis=0)).max() < 0.12
