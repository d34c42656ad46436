"""Values in files: read by prometheus-client's own collector, and taken out again."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from discreet.metrics import shared
from discreet.metrics.shared import SharedFile, SharedValue


def contents(file: Path) -> list[tuple[str, float]]:
    read: Any = MmapedDict.read_all_values_from_file(str(file))
    return [(key, value) for key, value, _, _ in read]


def key(recommender: str) -> str:
    return mmap_key("items", "items_total", ["recommender"], [recommender], "help")


@pytest.fixture
def name(tmp_path: Path) -> Path:
    return tmp_path / "counter_1.db"


@pytest.fixture
def file(name: Path) -> Iterator[SharedFile]:
    with closing(SharedFile(str(name))) as made:
        yield made


def test_what_is_kept_keeps_its_value_and_can_be_written(
    tmp_path: Path, name: Path, file: SharedFile
) -> None:
    for number in range(2_000):
        file.write(key(f"r{number}"), number, 0.0)
    full = name.stat().st_size
    file.keep(lambda labels: labels["recommender"] in ("r7", "r9"))
    assert contents(name) == [(key("r7"), 7.0), (key("r9"), 9.0)]
    assert name.stat().st_size < full
    file.write(key("r9"), 10.0, 0.0)
    assert file.read(key("new")) == (0.0, 0.0)
    assert contents(name) == [(key("r7"), 7.0), (key("r9"), 10.0), (key("new"), 0.0)]
    assert list(tmp_path.iterdir()) == [name]


def test_a_reader_has_the_old_file_or_the_new_one(name: Path, file: SharedFile) -> None:
    for number in range(3):
        file.write(key(f"r{number}"), number, 0.0)
    with name.open("rb") as reader:
        before = reader.read(100)
        file.keep(lambda labels: labels["recommender"] == "r2")
        reader.seek(0)
        assert reader.read(100) == before
    assert contents(name) == [(key("r2"), 2.0)]


def test_what_an_ended_process_left_half_written_is_in_nobodys_way(
    name: Path, file: SharedFile
) -> None:
    name.with_suffix(".db.new").write_bytes(b"\xff" * 100)
    file.write(key("a"), 1.0, 0.0)
    file.keep(lambda labels: False)
    assert contents(name) == []


def test_values_are_forgotten_by_recommender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(shared.FOLDER, str(tmp_path))
    monkeypatch.setattr(shared, "_files", {})
    made = {
        name: SharedValue("counter", "items", "items_total", ["recommender"], [name], "help")
        for name in ("films", "songs")
    }
    other = SharedValue("gauge", "up", "up", [], [], "help", multiprocess_mode="livemin")
    for value in made.values():
        value.inc(2)
        value.inc(3)
    other.set(7, 5.0)
    shared.forget({"films"})
    (counters,) = tmp_path.glob("counter_*.db")
    assert contents(counters) == [(key("songs"), 5.0)]
    (gauges,) = tmp_path.glob("gauge_livemin_*.db")
    assert [value for _, value in contents(gauges)] == [7.0]
    # A worker of the same number, which begins anew, goes on where the file stands.
    again = SharedValue("counter", "items", "items_total", ["recommender"], ["songs"], "help")
    assert (again.get(), again.get_exemplar()) == (5.0, None)
    for each in shared._files.values():
        each.close()
