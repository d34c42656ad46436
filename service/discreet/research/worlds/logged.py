"""A stream that was logged: contexts, what was recommended, and how it was received.

A CSV file with the columns context_0 … context_{d-1}, item, reward and, if items were not drawn
uniformly, propensity: the probability with which the logged item had been chosen. A recommender
with named fields has a column for each of them instead, `context.` before its name; an empty cell
is a missing value.
"""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.families.contexts import (
    BooleanField,
    ContextDocument,
    ContextField,
    NamedContextDocument,
    NumberField,
    VectorContextDocument,
)
from discreet.research.worlds.environments import Floats

MOST_ROWS = 10_000_000
_NAMED = "context."
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """Rows in the order of the file; `items` are positions in the recommender's catalogue."""

    contexts: Floats | Sequence[Mapping[str, Any]]
    items: npt.NDArray[np.intp]
    rewards: Floats
    propensities: Floats

    def __len__(self) -> int:
        return len(self.rewards)


def read_log(
    path: Path, *, context: ContextDocument, items: tuple[str, ...], most: int | None = None
) -> Log:
    """Return the log, or raise `InvalidArgument` naming the row and the column at fault."""
    said = _NamedCells(context) if isinstance(context, NamedContextDocument) else _Numbers(context)
    position = {item: at for at, item in enumerate(items)}
    contexts: list[Any] = []
    chosen: list[int] = []
    rewards: list[float] = []
    propensities: list[float] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            columns = _columns(path, next(rows, []), said.columns)
            for row in rows:
                if not row:
                    continue
                if len(chosen) >= (most or MOST_ROWS):
                    break
                here = f"{path.name} row {rows.line_num}"
                if len(row) != len(columns):
                    raise InvalidArgument(
                        "--data", f"{here}: has {len(row)} columns, not {len(columns)}"
                    )
                cells = dict(zip(columns, row, strict=True))
                contexts.append(said.read(here, cells))
                if cells["item"] not in position:
                    raise InvalidArgument(
                        "--data", f"{here}, column item: {cells['item']!r} is not in the catalogue"
                    )
                chosen.append(position[cells["item"]])
                rewards.append(_number(here, "reward", cells["reward"]))
                given = cells.get("propensity")
                propensity = (
                    1.0 / len(items) if given is None else _number(here, "propensity", given)
                )
                if propensity == 0:
                    raise InvalidArgument(
                        "--data", f"{here}, column propensity: must be greater than 0"
                    )
                propensities.append(propensity)
    except OSError as error:
        raise InvalidArgument("--data", f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidArgument("--data", f"{path} is not UTF-8 text") from None
    except csv.Error as error:
        raise InvalidArgument("--data", f"{path.name} row {rows.line_num}: {error}") from None
    if not chosen:
        raise InvalidArgument("--data", f"{path.name} has no rows")
    return Log(
        contexts=np.array(contexts) if isinstance(said, _Numbers) else contexts,
        items=np.array(chosen, dtype=np.intp),
        rewards=np.array(rewards),
        propensities=np.array(propensities),
    )


class _Numbers:
    """A context in columns of numbers."""

    def __init__(self, context: VectorContextDocument) -> None:
        self.columns = [f"context_{axis}" for axis in range(context.dimensions)]

    def read(self, here: str, cells: Mapping[str, str]) -> list[float]:
        return [_number(here, name, cells[name]) for name in self.columns]


class _NamedCells:
    """A context in a column for each field, checked as a request's would be."""

    def __init__(self, context: NamedContextDocument) -> None:
        self._fields = context.fields
        self._check = context.reader()
        self.columns = [_NAMED + name for name in context.fields]

    def read(self, here: str, cells: Mapping[str, str]) -> dict[str, Any]:
        said = {name: _value(field, cells[_NAMED + name]) for name, field in self._fields.items()}
        try:
            self._check(said)
        except InvalidArgument as error:
            raise InvalidArgument(
                "--data", f"{here}, column {error.argument}: {error.reason}"
            ) from None
        return said


def _value(field: ContextField, text: str) -> Any:
    """Return what a caller would have sent; text that is not of the type is left for the check."""
    if not text:
        return None
    if isinstance(field, BooleanField):
        return _BOOLEANS.get(text.lower(), text)
    if isinstance(field, NumberField):
        try:
            return float(text)
        except ValueError:
            return text
    return text


def _columns(path: Path, header: list[str], said: Sequence[str]) -> list[str]:
    columns = [name.strip() for name in header]
    if len(columns) == 1 and {";", "\t"} & set(columns[0]):
        raise InvalidArgument("--data", f"{path.name}: columns are separated by commas")
    needed = [*said, "item", "reward"]
    for name in needed:
        if name not in columns:
            raise InvalidArgument("--data", f"{path.name}: the column {name} is missing")
    for name in columns:
        if name not in needed and name != "propensity":
            raise InvalidArgument("--data", f"{path.name}: the column {name!r} is not known")
        if columns.count(name) > 1:
            raise InvalidArgument("--data", f"{path.name}: the column {name} is there twice")
    return columns


def _number(here: str, column: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= 1.0:
        raise InvalidArgument("--data", f"{here}, column {column}: must be a number from 0 to 1")
    return value
