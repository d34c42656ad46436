"""Rows of every format, and complaints that name the line."""

import gzip
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from discreet.errors import InvalidArgument
from discreet.research.evaluate.rows import LogRow, open_rows


def test_every_format_has_the_same_cells(tmp_path: Path) -> None:
    cells = [{"item": "a", "reward": 1.0}, {"item": "b, c", "reward": 0.5}]
    text = 'item,reward\na,1.0\n\n"b, c",0.5\n'
    (tmp_path / "log.csv").write_text(text)
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, cells)))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(cells), tmp_path / "log.parquet")
    for name in ("log.csv", "log.csv.gz", "log.jsonl", "log.parquet"):
        found = list(open_rows(tmp_path / name))
        assert [row.text("item") for row in found] == ["a", "b, c"], name
        assert [row.number("reward", 0, 1) for row in found] == [1.0, 0.5], name


def test_feedback_is_joined_to_its_decision(tmp_path: Path) -> None:
    lines = [
        {"kind": "decision", "id": "1", "item": "a", "propensity": 0.5},
        {"kind": "decision", "id": "2", "item": "a", "propensity": 0.5},
        {"kind": "decision", "id": "3", "item": None, "propensity": None, "items": []},
        {"kind": "feedback", "id": "1", "position": 0, "reward": 1.0},
        {"kind": "feedback", "id": "2", "position": 1, "reward": 1.0},
        {"kind": "lost", "decisions": 1},
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = list(open_rows(tmp_path / "log.jsonl"))
    assert [row.cells["reward"] for row in found] == [1.0, None]
    assert [row.where for row in found] == ["log.jsonl line 1", "log.jsonl line 2"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("log.csv", "item,item\na,b\n", "item is there twice"),
        ("log.csv", "item,reward\na,1\nb\n", "line 3: has 1 columns, not 2"),
        ("log.csv", 'item\n"a\n', "line"),
        ("log.csv", "item;reward\na;1\n", "separated by commas"),
        ("log.csv", b"item\n\xff\n", "not UTF-8"),
        ("log.jsonl", '{"item": "a"}\nno\n', "line 2: is not a JSON object"),
        ("log.jsonl", "[1]\n", "line 1: is not a JSON object"),
        ("log.parquet", "item\n", "is not Parquet"),
        ("log.csv.gz", "item\n", "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_named(
    tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InvalidArgument, match=message) as refused:
        list(open_rows(path))
    assert refused.value.argument == "--log"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="No such file"):
        list(open_rows(tmp_path / "log.csv"))


def test_cells_are_read_as_what_they_should_be() -> None:
    row = LogRow("log.csv line 2", {"n": "0.5", "many": "a|b", "json": '["a", 1]', "empty": ""})
    assert row.number("n", 0, 1) == 0.5
    assert row.texts("many") == ["a", "b"]
    assert row.texts("json") == ["a", "1"]
    assert row.texts("empty") is row.number("empty", 0, 1) is row.text("empty") is None
    assert row.parsed("json") == ["a", 1]
    with pytest.raises(InvalidArgument, match="line 2, column n: must be a number from 2 to 3"):
        row.number("n", 2, 3)
    with pytest.raises(InvalidArgument, match="column many: must be JSON"):
        row.parsed("many")
    assert LogRow("", {"x": "nan"}).cells
    with pytest.raises(InvalidArgument, match="column x"):
        LogRow("", {"x": "nan"}).number("x", 0, 1)
    with pytest.raises(InvalidArgument, match="from 0 to 1"):
        LogRow("", {"x": 10**400}).number("x", 0, 1)
    with pytest.raises(InvalidArgument, match="list of ids"):
        LogRow("", {"x": "[{}]"}).texts("x")
