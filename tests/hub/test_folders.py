"""Where things are kept: the user's own directory, for its owner alone."""

import stat
from pathlib import Path

import pytest

from discreet.errors import InvalidArgument
from discreet.hub.folders import private_folder, users_folder, write_private


def test_it_is_a_folder_of_the_users_own() -> None:
    folder = users_folder()
    assert folder.is_absolute()
    assert folder.name == "discreet"


def test_for_its_owner_alone(tmp_path: Path) -> None:
    folder = private_folder(tmp_path / "a" / "b")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (folder / "file").write_text("older, and open to all")
    write_private(folder / "file", "secret")
    assert stat.S_IMODE((folder / "file").stat().st_mode) == 0o600
    assert (folder / "file").read_text() == "secret"


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(InvalidArgument, match="cannot make"):
        private_folder(tmp_path / "taken")
