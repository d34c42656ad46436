"""Files from elsewhere: lists in many shapes, browsers' databases, and what is wrong with them."""

import sqlite3
from pathlib import Path

import pytest

from discreet.hub import reading
from discreet.hub.errors import HubRefusal
from discreet.hub.reading import is_browser_history, list_titles, page_titles


def file(folder: Path, content: bytes) -> Path:
    path = folder / "history"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "titles"),
    [
        (b"Night Ferry\nSalt and Snow\n", ["Night Ferry", "Salt and Snow"]),
        (b"title,date\nNight Ferry,2024-01-02\n", ["Night Ferry"]),
        (b"Date,Title\n2024-01-02,Night Ferry\n", ["Night Ferry"]),
        (b'title,stars\n"Rain, and After",5\n', ["Rain, and After"]),
        (b"date;name\r\n1;Night Ferry\r\n", ["Night Ferry"]),
        (b"id\ttitle\n7\tNight Ferry\n", ["Night Ferry"]),
        ("title\nSoufflé\n".encode("utf-8-sig"), ["Soufflé"]),
        ("title\nSoufflé\n".encode("cp1252"), ["Soufflé"]),
        ("title\nSoufflé\n".encode("utf-16"), ["Soufflé"]),
        (b"\n\ntitle\n\nNight Ferry\nNight Ferry\n\n", ["Night Ferry"]),
        (b"date,title\n2024\n2025,Night Ferry\n", ["Night Ferry"]),
    ],
)
def test_lists(tmp_path: Path, content: bytes, titles: list[str]) -> None:
    assert list_titles(file(tmp_path, content)) == titles


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (b"title\n", "no title in the list"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00", "not text"),
        (b'title\n"never closed\n', "cannot be read as a list"),
        (b"title\n\x81\x8d\n", "UTF-8"),
        (b"title\n" + b"x" * 501 + b"\n", "no title in the list"),
    ],
)
def test_broken_lists_are_refused_in_words(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(HubRefusal, match=words):
        list_titles(file(tmp_path, content))


def test_a_list_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_ROWS", 3)
    with pytest.raises(HubRefusal, match="more than 3 lines"):
        list_titles(file(tmp_path, b"a\nb\nc\nd\n"))
    monkeypatch.setattr(reading, "MOST_LIST_BYTES", 3)
    with pytest.raises(HubRefusal, match="larger than"):
        list_titles(file(tmp_path, b"a\nb\nc\nd\n"))


def browser_file(path: Path, table: str, titles: list[str | None], *, wal: bool = False) -> Path:
    made = sqlite3.connect(path)
    if wal:
        made.execute("PRAGMA journal_mode = WAL")
    made.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, url TEXT, title TEXT)")
    made.executemany(f"INSERT INTO {table} (title) VALUES (?)", [(t,) for t in titles])
    made.commit()
    made.close()
    return path


@pytest.mark.parametrize("table", ["urls", "moz_places"])
@pytest.mark.parametrize("wal", [False, True])
def test_browsers_files(tmp_path: Path, table: str, wal: bool) -> None:
    path = browser_file(tmp_path / "h", table, ["A - B", "A - B", None, "", "C"], wal=wal)
    assert is_browser_history(path)
    assert sorted(page_titles(path)) == ["A - B", "C"]


def test_a_database_of_something_else(tmp_path: Path) -> None:
    path = browser_file(tmp_path / "h", "recipes", ["Soup"])
    with pytest.raises(HubRefusal, match="not a browser's history"):
        list(page_titles(path))


def test_a_torn_database(tmp_path: Path) -> None:
    path = browser_file(tmp_path / "h", "urls", [f"title {n}" for n in range(5_000)])
    path.write_bytes(path.read_bytes()[:6_000])
    with pytest.raises(HubRefusal, match="cannot be read"):
        list(page_titles(path))


def test_a_table_without_titles(tmp_path: Path) -> None:
    made = sqlite3.connect(tmp_path / "h")
    made.execute("CREATE TABLE urls (address TEXT)")
    made.close()
    with pytest.raises(HubRefusal, match="cannot be read"):
        list(page_titles(tmp_path / "h"))


def test_a_file_made_to_keep_us_busy_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_MOST_STEPS", 2_000)
    path = browser_file(tmp_path / "h", "urls", [f"title {n}" for n in range(5_000)])
    with pytest.raises(HubRefusal, match="too long"):
        list(page_titles(path))


def test_a_view_that_poses_as_the_table_is_not_run(tmp_path: Path) -> None:
    made = sqlite3.connect(tmp_path / "h")
    made.execute("CREATE VIEW urls AS SELECT 'x' AS title")
    made.close()
    with pytest.raises(HubRefusal, match="not a browser's history"):
        list(page_titles(tmp_path / "h"))
