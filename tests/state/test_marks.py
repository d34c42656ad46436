"""The high-water mark outlives workers, is seen by all of them, and never falls."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.errors import StoreUnsuitable
from discreet.state.marks import HighWaterMarks, marks_file
from discreet.state.stores import SHARDS

OURS = b"identity"
ZEROS = [0] * SHARDS


def test_marks_rise_and_never_fall() -> None:
    marks = HighWaterMarks()
    marks.adopt(OURS, ZEROS)
    marks.note(3, 7)
    marks.note(3, 5)
    assert [marks.seen(3), marks.seen(4)] == [7, 0]
    marks.adopt(OURS, ZEROS)
    assert marks.seen(3) == 7


def test_another_identity_begins_anew() -> None:
    marks = HighWaterMarks()
    marks.adopt(OURS, ZEROS)
    marks.note(3, 7)
    marks.adopt(b"another!", [1] * SHARDS)
    assert marks.seen(3) == 1


def test_workers_see_each_others_marks_at_once(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "marks"
    one = HighWaterMarks(file)
    assert one.identity is None
    one.adopt(OURS, ZEROS)
    other = HighWaterMarks(file)
    assert other.identity == OURS
    one.note(0, 2**40)
    other.note(63, 9)
    assert (other.seen(0), one.seen(63)) == (2**40, 9)
    assert file.stat().st_mode & 0o777 == 0o600
    for each in (one, other):
        each.close()


def test_what_one_overwrote_the_other_writes_again(tmp_path: Path) -> None:
    file = tmp_path / "marks"
    one = HighWaterMarks(file)
    one.adopt(OURS, ZEROS)
    other = HighWaterMarks(file)
    one.note(5, 102)
    assert other._shared is not None
    other._shared[5] = 101  # what a race of two writers may leave
    assert HighWaterMarks(file).seen(5) == 101
    one.assert_own()
    assert HighWaterMarks(file).seen(5) == 102


WORKER = """
import pathlib, signal, sys
from discreet.state.marks import HighWaterMarks
marks = HighWaterMarks(pathlib.Path(sys.argv[1]))
marks.note(8, 1_234)
print("noted", flush=True)
signal.pause()
"""


def test_a_mark_outlives_kill_9(tmp_path: Path) -> None:
    file = tmp_path / "marks"
    HighWaterMarks(file).adopt(OURS, ZEROS)
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, str(file)], stdout=subprocess.PIPE
    ) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"noted\n"
        worker.kill()
    assert HighWaterMarks(file).seen(8) == 1_234


@pytest.mark.parametrize("content", [b"", b"dscrtHW1", b"x" * 528, b"dscrtHW1" + b"x" * 600])
def test_a_damaged_file_is_refused_and_not_taken_for_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "marks"
    file.write_bytes(content)
    with pytest.raises(StoreUnsuitable, match="high-water mark"):
        HighWaterMarks(file)


def test_without_a_folder_to_write_to_it_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    marks = HighWaterMarks(tmp_path / "file" / "marks")
    with caplog.at_level(logging.WARNING):
        marks.adopt(OURS, ZEROS)
    assert "high-water mark of the store cannot be kept" in caplog.text
    marks.note(1, 2)
    assert marks.seen(1) == 2


def test_the_embedded_store_and_one_by_url_have_marks_of_their_own(tmp_path: Path) -> None:
    files = {
        marks_file(tmp_path, namespace, embedded=embedded)
        for namespace in ("a", "b")
        for embedded in (True, False)
    }
    assert len(files) == 4
