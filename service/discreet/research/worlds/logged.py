"""A stream that was logged: contexts, what was recommended, and how it was received.

A CSV file with the columns context_0 … context_{d-1}, item, reward and, if items were not drawn
uniformly, propensity: the probability with which the logged item had been chosen.
"""

import csv
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.research.worlds.environments import Floats

MOST_ROWS = 10_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """Rows in the order of the file; `items` are positions in the recommender's catalogue."""

    contexts: Floats
    items: npt.NDArray[np.intp]
    rewards: Floats
    propensities: Floats

    def __len__(self) -> int:
        return len(self.rewards)


def read_log(
    path: Path, *, dimensions: int, items: tuple[str, ...], most: int | None = None
) -> Log:
    """Return the log, or raise `InvalidArgument` naming the row and the column at fault."""
    position = {item: at for at, item in enumerate(items)}
    contexts: list[list[float]] = []
    chosen: list[int] = []
    rewards: list[float] = []
    propensities: list[float] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            columns = _columns(path, next(rows, []), dimensions)
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
                contexts.append(
                    [
                        _number(here, name, cells[name])
                        for name in (f"context_{axis}" for axis in range(dimensions))
                    ]
                )
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
        contexts=np.array(contexts),
        items=np.array(chosen, dtype=np.intp),
        rewards=np.array(rewards),
        propensities=np.array(propensities),
    )


def _columns(path: Path, header: list[str], dimensions: int) -> list[str]:
    columns = [name.strip() for name in header]
    needed = [*(f"context_{axis}" for axis in range(dimensions)), "item", "reward"]
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
