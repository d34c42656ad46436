"""Where things are kept, on each platform, for their owner alone."""

import stat
from pathlib import Path

import pytest

from discreet.errors import InvalidArgument
from discreet.hub.places import default_folder, private_folder, write_private

HOME = Path("/people/ada")


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, "/people/ada/.local/share/discreet"),
        ("linux", {"XDG_DATA_HOME": "/elsewhere"}, "/elsewhere/discreet"),
        ("linux", {"XDG_DATA_HOME": "relative"}, "/people/ada/.local/share/discreet"),
        ("darwin", {}, "/people/ada/Library/Application Support/discreet"),
        ("win32", {}, "/people/ada/AppData/Local/discreet"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/discreet"),
    ],
)
def test_the_platforms_own_place(platform: str, environment: dict[str, str], expected: str) -> None:
    found = default_folder(platform=platform, environment=environment, home=HOME)
    assert found == Path(expected)


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
