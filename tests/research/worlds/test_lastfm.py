"""Last.fm: read from files, plain or compressed, and mistakes named."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.worlds.lastfm import listened, popular

LINES = "userID\tartistID\tweight\n2\t51\t138\n2\t52\t11\n7\t51\t3\n9\t60\t1\n9\t51\t4\n"


def test_the_most_heard_artists_are_columns(tmp_path: Path) -> None:
    (tmp_path / "user_artists.dat").write_text(LINES)
    assert listened(tmp_path, artists=1).tolist() == [[1], [1], [1]]
    assert listened(tmp_path, artists=10).tolist() == [[1, 1, 0], [1, 0, 0], [1, 0, 1]]


def test_reads_compressed_files_in_their_folder(tmp_path: Path) -> None:
    folder = tmp_path / "hetrec2011-lastfm-2k"
    folder.mkdir()
    (folder / "user_artists.dat.gz").write_bytes(gzip.compress(LINES.encode()))
    assert listened(tmp_path).shape == (3, 3)


def test_names_what_is_missing_or_broken(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="has none of"):
        listened(tmp_path)
    (tmp_path / "user_artists.dat").write_text("userID\tartistID\nx\ty\n")
    with pytest.raises(InvalidArgument, match="cannot be read"):
        listened(tmp_path)
    with pytest.raises(InvalidArgument, match="empty"):
        popular(np.zeros((0, 2), dtype=np.int64), columns=3)
