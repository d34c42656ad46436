"""What rows say about who asked, as each family takes it: a context, features, or nothing.

Equal descriptions are kept once: most logs have fewer kinds of visitors than rows.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.families.contexts import (
    BooleanField,
    ContextDocument,
    NamedContextDocument,
    NumberField,
    VectorContextDocument,
)
from discreet.families.documents import RecommenderDocument
from discreet.families.questions import Sparse
from discreet.research.evaluate.rows import LogRow
from discreet.research.worlds.environments import Floats

MOST_FEATURES = 256
"""Longer contexts are judged by none of their numbers in the model of rewards."""
_NAMED = "context."
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}

_UNSUPPORTED: Mapping[str, str] = {
    "p-rec": "its answers are draws from votes of many people in a round, which a log of choices "
    "does not hold; `discreet voters` says what its epsilon is worth",
    "collaborative": "its answers are made from profiles that people's own devices release, which "
    "a log of choices does not hold",
}


class Described(ABC):
    """The distinct descriptions of a log, by number."""

    def __init__(self) -> None:
        self._number_of: dict[Any, int] = {}
        self._distinct: list[Any] = []

    @abstractmethod
    def columns(self, cells: Mapping[str, Any]) -> Sequence[str]:
        """Return the columns that a description is read from, given those that there are."""

    @abstractmethod
    def read(self, row: LogRow) -> Any:
        """Return the row's description as something hashable, or raise naming the column."""

    @abstractmethod
    def fields(self, number: int) -> dict[str, Any]:
        """Return the fields of a question that say it."""

    def features(self, numbers: Any) -> Floats:
        """Return descriptions as numbers in [0, 1]; by default none."""
        return np.zeros((len(numbers), 0))

    def check(self, said: Any) -> None:
        """Raise `InvalidArgument` for what a request could not say."""
        return

    def add(self, row: LogRow) -> int:
        """Return the number of the row's description."""
        said = self.read(row)
        try:
            known = self._number_of.get(said)
        except TypeError:  # a list or an object where a value should be: the check says where
            known = None
        if known is None:
            try:
                self.check(said)
            except InvalidArgument as error:
                raise row.wrong(error.argument, error.reason) from None
            known = self._number_of[said] = len(self._distinct)
            self._distinct.append(said)
        return known


class VectorContexts(Described):
    """Contexts that are vectors: columns context_0, context_1, …, or one of JSON lists."""

    def __init__(self, context: VectorContextDocument) -> None:
        super().__init__()
        self._columns = [f"context_{axis}" for axis in range(context.size)]
        self._reader = context.reader()

    def columns(self, cells: Mapping[str, Any]) -> Sequence[str]:
        """Return `context`, or a column for every number."""
        return ["context"] if "context" in cells else self._columns

    def read(self, row: LogRow) -> tuple[float, ...]:
        """Return the numbers."""
        if "context" not in row.cells:
            found = [row.number(name, 0.0, 1.0) for name in self._columns]
            for name, value in zip(self._columns, found, strict=True):
                if value is None:
                    raise row.wrong(name, "is missing")
            return tuple(value for value in found if value is not None)
        said = row.parsed("context")
        # Whole numbers may be larger than any float.
        if not isinstance(said, list) or not all(type(one) in (int, float) for one in said):
            raise row.wrong("context", "must be a list of numbers")
        return tuple(float(one) if abs(one) <= 1 else math.inf for one in said)

    def check(self, said: Any) -> None:
        """Check the context as a request's would be."""
        self._reader(said)

    def fields(self, number: int) -> dict[str, Any]:
        """Return the context."""
        return {"context": self._distinct[number]}

    def features(self, numbers: Any) -> Floats:
        """Return the contexts."""
        if len(self._columns) > MOST_FEATURES:
            return super().features(numbers)
        return np.array([self._distinct[number] for number in numbers]).reshape(
            len(numbers), len(self._columns)
        )


class NamedContexts(Described):
    """Contexts with named fields: a column `context.NAME` for each, or one of JSON objects."""

    def __init__(self, context: NamedContextDocument) -> None:
        super().__init__()
        self._fields = context.fields
        self._names = list(context.fields)
        self._size = context.size
        self._reader = context.reader()

    def columns(self, cells: Mapping[str, Any]) -> Sequence[str]:
        """Return `context`, or a column for every field."""
        return ["context"] if "context" in cells else [_NAMED + name for name in self._names]

    def read(self, row: LogRow) -> tuple[Any, ...]:
        """Return the values in the document's order."""
        if "context" in row.cells:
            said = row.parsed("context") or {}
            if not isinstance(said, dict):
                raise row.wrong("context", "must be an object")
            unknown = sorted(set(said) - set(self._names))
            if unknown:
                there = ", ".join(self._names)
                raise row.wrong("context", f"has the unknown field {unknown[0]!r}; known: {there}")
            return tuple(said.get(name) for name in self._names)
        return tuple(self._value(name, row.cells.get(_NAMED + name)) for name in self._names)

    def _value(self, name: str, cell: Any) -> Any:
        """Return what a caller would have sent; what is not of the type is left for the check."""
        if cell is None or cell == "":
            return None
        if not isinstance(cell, str):
            return cell
        field = self._fields[name]
        if isinstance(field, BooleanField):
            return _BOOLEANS.get(cell.lower(), cell)
        if isinstance(field, NumberField):
            try:
                return float(cell)
            except ValueError:
                return cell
        return cell

    def _said(self, said: Sequence[Any]) -> dict[str, Any]:
        named = zip(self._names, said, strict=True)
        return {name: value for name, value in named if value is not None}

    def check(self, said: Any) -> None:
        """Check the context as a request's would be."""
        self._reader(self._said(said))

    def fields(self, number: int) -> dict[str, Any]:
        """Return the context."""
        return {"context": self._said(self._distinct[number])}

    def features(self, numbers: Any) -> Floats:
        """Return what the model takes."""
        if self._size > MOST_FEATURES:
            return super().features(numbers)
        made = [self._reader(self._said(self._distinct[number])) for number in numbers]
        return np.array(made).reshape(len(numbers), self._size)


class SparseClients(Described):
    """Sparse features of clients, in JSON; an empty cell says nothing about the client."""

    def __init__(self, given: bool) -> None:
        super().__init__()
        self._given = given

    def columns(self, cells: Mapping[str, Any]) -> Sequence[str]:
        """Return `features`, if clients have any."""
        return ["features"] if self._given else []

    def read(self, row: LogRow) -> tuple[tuple[int, ...], tuple[float, ...]] | None:
        """Return positions and values."""
        said = row.parsed("features") if self._given else None
        if said is None:
            return None
        if isinstance(said, list):
            said = {
                "indices": [place for place, value in enumerate(said) if value],
                "values": [value for value in said if value],
            }
        try:
            indices, values = tuple(map(int, said["indices"])), tuple(map(float, said["values"]))
        except (KeyError, TypeError, ValueError, OverflowError):
            raise row.wrong("features", "must be a list, or have indices and values") from None
        if len(indices) != len(values) or list(indices) != sorted(set(indices)):
            raise row.wrong("features", "indices must ascend, with as many values")
        return indices, values

    def fields(self, number: int) -> dict[str, Any]:
        """Return the features."""
        said = self._distinct[number]
        return {} if said is None else {"features": Sparse(*said)}


class OnlyClients(Described):
    """Nothing but who asked."""

    def columns(self, cells: Mapping[str, Any]) -> Sequence[str]:
        """Return the client, without whom nothing could be told apart."""
        return ["client"]

    def read(self, row: LogRow) -> None:
        """Return nothing."""
        if row.text("client") is None:
            raise row.wrong("client", "is missing")

    def fields(self, number: int) -> dict[str, Any]:
        """Return nothing."""
        return {}


def described_by(document: RecommenderDocument) -> Described:
    """Return what rows have to say for this recommender, or raise why a log cannot judge it."""
    reason = _UNSUPPORTED.get(document.algorithm)
    if reason is not None:
        raise InvalidArgument(
            "--recommender", f"{document.algorithm} cannot be evaluated: {reason}"
        )
    context: ContextDocument | None = getattr(document, "context", None)
    if isinstance(context, NamedContextDocument):
        return NamedContexts(context)
    if isinstance(context, VectorContextDocument):
        return VectorContexts(context)
    if document.algorithm == "mirror-descent":
        return SparseClients(getattr(document, "features").clients is not None)  # noqa: B009
    if getattr(document, "role", "local") != "local":
        raise InvalidArgument("--recommender", "merges noisy updates only; evaluate a local server")
    return OnlyClients()
