"""Files of items: what is written is read again."""

import json
from pathlib import Path
from typing import Any

import pytest

from discreet.commands.item_files import read_items, write_csv, write_lines
from discreet.errors import InvalidArgument


def read(path: Path) -> list[tuple[int, Any]]:
    return [(line.number, json.loads(line.content)) for line in read_items(path)]


def test_lines_are_passed_on_with_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text('"a"\n\n{"id": "b", "hidden": true}\n', encoding="utf-8")
    assert read(path) == [(1, "a"), (3, {"id": "b", "hidden": True})]


def test_columns_of_a_table_are_an_items_own_or_attributes(tmp_path: Path) -> None:
    path = tmp_path / "items.CSV"
    path.write_text(
        "\ufeffid,title,hidden,categories,features,price,colour\n"
        'a,"Ä, ""b""",,x|y z,"[0.5, 1]",3.20,\n'
        'b,,YES,,"{""indices"": [1], ""values"": [2]}",,red\n'
        "c,,no,,,,\n",
        encoding="utf-8",
    )
    assert read(path) == [
        (
            2,
            {
                "id": "a",
                "title": 'Ä, "b"',
                "categories": ["x", "y z"],
                "features": [0.5, 1],
                "attributes": {"price": "3.20"},
            },
        ),
        (
            3,
            {
                "id": "b",
                "hidden": True,
                "features": {"indices": [1], "values": [2]},
                "attributes": {"colour": "red"},
            },
        ),
        (4, {"id": "c"}),
    ]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("name\nx\n", "items.csv"),
        ("", "items.csv"),
        ("id,hidden\nx,perhaps\n", "line 2, hidden"),
        ("id,features\nx,[\n", "line 2, features"),
        ("id\nx,y\n", "line 2"),
        ('id,title\nx,"y" z\n', "line 2"),
    ],
)
def test_a_cell_that_cannot_be_read_is_named(tmp_path: Path, text: str, where: str) -> None:
    path = tmp_path / "items.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidArgument) as caught:
        read(path)
    assert where in caught.value.argument


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="No such file"):
        read(tmp_path / "none.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(b'"\xe4"\n')
    with pytest.raises(InvalidArgument, match="UTF-8"):
        read(tmp_path / "latin.jsonl")


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    items: list[dict[str, Any]] = [
        {"id": "ä", "title": 'a "b",\tc', "attributes": {"price": "3", "shop": "x"}},
        {"id": "b", "hidden": True, "categories": ["x", "y"], "features": [0.5]},
    ]
    lines, table = tmp_path / "items.jsonl", tmp_path / "items.csv"
    lines.write_text(write_lines(items), encoding="utf-8")
    table.write_text(write_csv(items), encoding="utf-8")
    assert [item for _, item in read(lines)] == items
    assert [item for _, item in read(table)] == items
    numbers = write_csv([{"id": "a", "attributes": {"price": 3.5, "tags": ["x"], "none": None}}])
    assert numbers.splitlines()[1] == 'a,,,,,,3.5,"[""x""]"'
    with pytest.raises(InvalidArgument, match="title"):
        write_csv([{"id": "a", "attributes": {"title": "x"}}])
