"""Open Bandit's logs as a world of the suite."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.suite.open_bandit import ClickChances, ClickLog, OpenBandit, shrunken_factors

HEADER = ",timestamp,item_id,position,click,propensity_score," + ",".join(
    f"user_feature_{number}" for number in range(4)
)


def write_log(data: Path, rows: list[str], campaign: str = "men", policy: str = "random") -> Path:
    folder = data / policy / campaign
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{campaign}.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    return data


def rows(count: int) -> list[str]:
    return [
        f"{row},2019,{row % 2},1,{int(row % 5 == 0)},0.5,{'ab'[row % 2]},x,y,{row % 3}"
        for row in range(count)
    ]


def test_features_are_one_hot(tmp_path: Path) -> None:
    world = OpenBandit.load(write_log(tmp_path, rows(60)), "men")
    assert (world.dimensions, world.items) == (2 + 1 + 1 + 3, 2)
    np.testing.assert_array_equal(world.contexts.sum(axis=1), 4.0)
    (stretch,) = world.stretches(rounds=1_000, seed=0)
    assert stretch.contexts.shape == (1_000, 7)
    assert stretch.means.mean() == pytest.approx(0.2, abs=0.03)


def test_the_other_policys_clicks_count_too(tmp_path: Path) -> None:
    data = write_log(tmp_path, rows(60))
    clicks = [row.replace(",0,0.5,", ",1,0.5,") for row in rows(600)]
    world = OpenBandit.load(write_log(data, clicks, policy="bts"), "men")
    assert len(world.contexts) == 60
    assert world.means.mean() > 0.8


def test_factors_are_as_large_as_the_clicks_support() -> None:
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 40, 400_000)
    expected = np.full(len(groups), 0.01)
    same = (rng.random(len(groups)) < 0.01).astype(float)
    assert np.ptp(shrunken_factors(groups, same, expected, 40)) < 0.2
    true = np.geomspace(0.25, 4.0, 40)
    differing = (rng.random(len(groups)) < 0.01 * true[groups]).astype(float)
    found = shrunken_factors(groups, differing, expected, 40)
    # A group has 25 to 400 clicks: the largest standard error of a logarithm is 0.2.
    assert np.abs(np.log(found / true)).max() < 0.6
    assert np.corrcoef(np.log(found), np.log(true))[0, 1] > 0.97


def test_who_likes_what_is_found_in_a_large_log() -> None:
    """Two kinds of visitors, two items, each of which pleases one kind with 0.1 and not 0.02."""
    rng = np.random.default_rng(4)
    kinds, shown = rng.integers(0, 2, 40_000), rng.integers(0, 2, 40_000)
    clicks = (rng.random(40_000) < np.where(kinds == shown, 0.1, 0.02)).astype(float)
    log = ClickLog(kinds[:, None], shown, clicks)
    means = ClickChances.fit(log, dimensions=2, items=2).at(np.array([[0], [1]]))
    np.testing.assert_allclose(means, [[0.1, 0.02], [0.02, 0.1]], atol=0.012)


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "random" / "all").mkdir(parents=True)
    with pytest.raises(InvalidArgument, match="cannot be read"):
        OpenBandit.load(tmp_path, "all")
    (tmp_path / "random" / "all" / "all.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidArgument, match="is not of Open Bandit"):
        OpenBandit.load(tmp_path, "all")
    with pytest.raises(InvalidArgument, match="has no rows"):
        OpenBandit.load(write_log(tmp_path, [], "women"), "women")


def test_open_bandit_itself(data_set: Callable[[str], Path]) -> None:
    world = OpenBandit.load(data_set("open-bandit-small"), "men")
    assert (world.items, len(world.contexts)) == (34, 10_000)
    assert 0.003 < world.means.mean() < 0.01
