"""Files of items: JSON lines, or CSV.

A line of JSON is an item, or its id alone. A CSV file has a header. `id`, `title`, `hidden`,
`categories` (with | between them) and `features` (as JSON) are an item's own columns; every other
column is an attribute of that name. An empty cell is left out.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from discreet.errors import InvalidArgument

_YES = frozenset({"1", "true", "yes"})
_NO = frozenset({"0", "false", "no"})
_OWN = ("id", "title", "hidden", "categories", "features")


class ItemLine(NamedTuple):
    """An item as the server takes it, and the line that it ends on in its file."""

    number: int
    content: bytes


def is_csv(path: Path) -> bool:
    """Tell whether a file is CSV, by its name."""
    return path.suffix.lower() == ".csv"


def read_items(path: Path) -> Iterator[ItemLine]:
    """Yield the items of a file; raise `InvalidArgument` for a cell that cannot be read.

    JSON is not looked at here: the server names the lines that it cannot use.
    """
    try:
        with path.open("r", encoding="utf-8-sig", newline="") as file:
            yield from _from_csv(path, file) if is_csv(path) else _from_lines(file)
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidArgument(str(path), "cannot be read: it is not UTF-8 text") from None


def _from_lines(file: IO[str]) -> Iterator[ItemLine]:
    for number, line in enumerate(file, start=1):
        if line.strip():
            yield ItemLine(number, line.strip().encode())


def _from_csv(path: Path, file: IO[str]) -> Iterator[ItemLine]:
    rows = csv.DictReader(file, restkey="", strict=True)
    try:
        if "id" not in (rows.fieldnames or ()):
            raise InvalidArgument(str(path), "the first line must name the columns, one of them id")
        for row in rows:
            where = f"{path}, line {rows.line_num}"
            if "" in row:
                raise InvalidArgument(where, "has more cells than there are columns")
            yield ItemLine(rows.line_num, json.dumps(_item(where, row)).encode())
    except csv.Error as error:
        raise InvalidArgument(f"{path}, line {rows.reader.line_num}", str(error)) from None


def _item(where: str, row: Mapping[str, str | None]) -> dict[str, Any]:
    cells = {name: cell for name, cell in row.items() if cell}
    item: dict[str, Any] = {name: cells[name] for name in ("id", "title") if name in cells}
    hidden = cells.get("hidden", "no").strip().lower()
    if hidden not in _YES | _NO:
        raise InvalidArgument(f"{where}, hidden", "must be yes or no")
    if hidden in _YES:
        item["hidden"] = True
    if "categories" in cells:
        item["categories"] = [name.strip() for name in cells["categories"].split("|")]
    if "features" in cells:
        try:
            item["features"] = json.loads(cells["features"])
        except ValueError:
            raise InvalidArgument(f"{where}, features", "must be JSON") from None
    attributes = {name: cell for name, cell in cells.items() if name not in _OWN}
    return {**item, "attributes": attributes} if attributes else item


def write_lines(items: Sequence[Mapping[str, Any]]) -> str:
    """Return items as JSON lines."""
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)


def write_csv(items: Sequence[Mapping[str, Any]]) -> str:
    """Return items as CSV, which `read_items` reads as the same items: attributes as text."""
    names = sorted({name for item in items for name in item.get("attributes", ())})
    clash = set(names) & set(_OWN)
    if clash:
        raise InvalidArgument(
            "FILE", f"an attribute called {min(clash)} cannot stand in a CSV file; export .jsonl"
        )
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*_OWN, *names])
    for item in items:
        attributes = item.get("attributes", {})
        features = item.get("features")
        writer.writerow(
            [
                item["id"],
                item.get("title", ""),
                "yes" if item.get("hidden") else "",
                "|".join(item.get("categories", ())),
                "" if features is None else json.dumps(features),
                *(_cell(attributes.get(name)) for name in names),
            ]
        )
    return out.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
