"""Recorded worlds are found by their files."""

from pathlib import Path

from discreet.research.suite.recorded import RECORDED, found_in
from tests.research.suite.test_film_ratings import write_large
from tests.research.suite.test_open_bandit import rows, write_log


def test_only_what_is_there_is_found(tmp_path: Path) -> None:
    assert found_in(tmp_path) == []
    write_large(tmp_path / "ml-1m")
    assert found_in(tmp_path) == ["ml-1m"]
    write_log(tmp_path / "open-bandit-small", rows(4))
    assert found_in(tmp_path) == ["ml-1m", "open-bandit-men"]
    for name in found_in(tmp_path):
        assert RECORDED[name](tmp_path).dimensions > 1


def test_a_folder_may_be_the_data_set_itself(tmp_path: Path) -> None:
    write_large(tmp_path / "films")
    assert found_in(tmp_path / "films") == ["ml-1m"]
