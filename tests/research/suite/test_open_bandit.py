"""Open Bandit's uniformly random log as a world of the suite."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.suite.open_bandit import OpenBandit
from discreet.research.suite.stretches import LoggedStretch

HEADER = ",timestamp,item_id,position,click,propensity_score," + ",".join(
    f"user_feature_{number}" for number in range(4)
)


def write_log(data: Path, rows: list[str], campaign: str = "men") -> Path:
    folder = data / "random" / campaign
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{campaign}.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    return data


def rows(count: int, share: float = 0.5) -> list[str]:
    return [
        f"{row},2019,{row % 2},1,{int(row % 5 == 0)},{share},{'ab'[row % 2]},x,y,{row % 3}"
        for row in range(count)
    ]


def test_features_are_one_hot(tmp_path: Path) -> None:
    world = OpenBandit.load(write_log(tmp_path, rows(60)), "men")
    assert (world.dimensions, world.items) == (2 + 1 + 1 + 3, 2)
    np.testing.assert_array_equal(world.contexts.sum(axis=1), 4.0)
    assert world.clicks.sum() == 12


def test_the_log_is_gone_through_again_in_another_order(tmp_path: Path) -> None:
    world = OpenBandit.load(write_log(tmp_path, rows(700)), "men")
    found = list(world.stretches(rounds=2_000, seed=0))
    assert all(isinstance(one, LoggedStretch) for one in found)
    items = np.concatenate([one.items for one in found if isinstance(one, LoggedStretch)])
    assert np.bincount(items[:1_400]).tolist() == [700, 700]
    assert not np.array_equal(items[:700], items[700:1_400])


def test_a_log_that_was_not_random_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="uniformly random"):
        OpenBandit.load(write_log(tmp_path, rows(10, share=0.3)), "men")


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "random" / "all").mkdir(parents=True)
    (tmp_path / "random" / "all" / "all.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidArgument, match="is not of Open Bandit"):
        OpenBandit.load(tmp_path, "all")
    with pytest.raises(InvalidArgument, match="has no rows"):
        OpenBandit.load(write_log(tmp_path, [], "women"), "women")


def test_open_bandit_itself(data_set: Callable[[str], Path]) -> None:
    world = OpenBandit.load(data_set("open-bandit-small"), "men")
    assert (world.items, len(world.clicks), world.clicks.sum()) == (34, 10_000, 46)
