"""Rows of a file, whatever its format: cells by column, and where they stand."""

import csv
import gzip
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from discreet.errors import InvalidArgument

PARQUET = "reading Parquet needs pyarrow: pip install 'discreet[research]'"


@dataclass(frozen=True, slots=True)
class LogRow:
    """One row; cells of a CSV file are text, those of other formats have types."""

    where: str
    cells: Mapping[str, Any]

    def wrong(self, column: str, reason: str) -> InvalidArgument:
        """Return the complaint about a cell."""
        return InvalidArgument("--log", f"{self.where}, column {column}: {reason}")

    def text(self, column: str) -> str | None:
        """Return a cell as text; None if it is empty."""
        value = self.cells.get(column)
        return None if value is None or value == "" else str(value)

    def number(self, column: str, low: float, high: float) -> float | None:
        """Return a cell as a number within a range; None if it is empty."""
        value = self.cells.get(column)
        if value is None or value == "":
            return None
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not low <= number <= high:
            raise self.wrong(column, f"must be a number from {low:g} to {high:g}")
        return number

    def parsed(self, column: str) -> Any:
        """Return a cell that holds JSON, or is a list or an object already; None if empty."""
        value = self.cells.get(column)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except ValueError:
            raise self.wrong(column, "must be JSON") from None

    def texts(self, column: str) -> list[str] | None:
        """Return a cell with several ids: a JSON list, or text with | between; None if empty."""
        value = self.cells.get(column)
        if value is None or value == "":
            return None
        if isinstance(value, str) and not value.startswith("["):
            return value.split("|")
        many = self.parsed(column)
        if not isinstance(many, list) or not all(isinstance(one, str | int) for one in many):
            raise self.wrong(column, "must be a list of ids")
        return [str(one) for one in many]


def open_rows(path: Path) -> Iterator[LogRow]:
    """Yield a file's rows in order, or raise `InvalidArgument` saying what is wrong with it."""
    name = path.name.removesuffix(".gz")
    try:
        if name.endswith((".parquet", ".pq")):
            yield from _parquet(path)
        elif name.endswith((".jsonl", ".ndjson", ".json", ".log")):
            yield from _joined(path)
        else:
            yield from _csv(path)
    except OSError as error:
        reason = error.strerror or "it is damaged"
        raise InvalidArgument("--log", f"{path} cannot be read: {reason}") from None
    except UnicodeDecodeError:
        raise InvalidArgument("--log", f"{path} is not UTF-8 text") from None


def _text(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _csv(path: Path) -> Iterator[LogRow]:
    with _text(path) as file:
        lines = csv.reader(file, strict=True)
        try:
            columns = [name.strip() for name in next(lines, [])]
            if len(columns) == 1 and {";", "\t"} & set(columns[0]):
                raise InvalidArgument("--log", f"{path.name}: columns are separated by commas")
            for name in columns:
                if columns.count(name) > 1:
                    raise InvalidArgument("--log", f"{path.name}: the column {name} is there twice")
            for cells in lines:
                if not cells:
                    continue
                where = f"{path.name} line {lines.line_num}"
                if len(cells) != len(columns):
                    reason = f"{where}: has {len(cells)} columns, not {len(columns)}"
                    raise InvalidArgument("--log", reason)
                yield LogRow(where, dict(zip(columns, cells, strict=True)))
        except csv.Error as error:
            raise InvalidArgument("--log", f"{path.name} line {lines.line_num}: {error}") from None


def _json_lines(path: Path) -> Iterator[LogRow]:
    with _text(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            where = f"{path.name} line {number}"
            try:
                cells = json.loads(line)
            except ValueError:
                cells = None
            if not isinstance(cells, dict):
                raise InvalidArgument("--log", f"{where}: is not a JSON object")
            yield LogRow(where, cells)


def _joined(path: Path) -> Iterator[LogRow]:
    """Yield decisions with their rewards: feedback is a line of its own, which names its decision.

    Of a list the first item counts. Decisions without any item are left out.
    """
    rewards: dict[Any, Any] = {}
    for row in _json_lines(path):
        if row.cells.get("kind") == "feedback" and not row.cells.get("position"):
            rewards[row.cells.get("id")] = row.cells.get("reward")
    for row in _json_lines(path):
        if row.cells.get("kind", "decision") != "decision" or row.cells.get("items") == []:
            continue
        if "id" in row.cells and "reward" not in row.cells:
            yield LogRow(row.where, {**row.cells, "reward": rewards.get(row.cells["id"])})
        else:
            yield row


def _parquet(path: Path) -> Iterator[LogRow]:
    if find_spec("pyarrow") is None:
        raise InvalidArgument("--log", PARQUET)
    # A heavy import, and optional.
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(batch_size=10_000):
                for cells in batch.to_pylist():
                    number += 1
                    yield LogRow(f"{path.name} row {number}", cells)
    except ArrowException:
        raise InvalidArgument("--log", f"{path} is not Parquet") from None
