"""Files of data sets, plain and compressed."""

import gzip
from pathlib import Path

import pytest

from discreet.errors import InvalidArgument
from discreet.research.worlds.files import read_text, subfolder


def test_compressed_files_are_unpacked(tmp_path: Path) -> None:
    (tmp_path / "plain.dat").write_bytes("Léon".encode("latin-1"))
    (tmp_path / "packed.dat.gz").write_bytes(gzip.compress("Léon".encode("latin-1")))
    assert read_text(tmp_path / "plain.dat") == read_text(tmp_path / "packed.dat.gz") == "Léon"


@pytest.mark.parametrize("name", ["missing.dat", "broken.dat.gz"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "broken.dat.gz").write_bytes(gzip.compress(b"x" * 99)[:20])
    with pytest.raises(InvalidArgument, match=name):
        read_text(tmp_path / name)


def test_the_first_subfolder_that_exists_is_taken(tmp_path: Path) -> None:
    assert subfolder(tmp_path, "a", "b") == tmp_path
    (tmp_path / "b").mkdir()
    assert subfolder(tmp_path, "a", "b") == tmp_path / "b"
