"""Batches: each entry succeeds or fails by itself, in order."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from discreet.api.bodies import Reader, parse
from discreet.api.problems import problem_of
from discreet.api.schemas import MOST_BATCH
from discreet.errors import DiscreetError, InvalidArgument, NotAllowed
from discreet.validation import UNKNOWN_FIELD

_WRITTEN_TOGETHER = 100

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
R = TypeVar("R")


class FailedEntry:
    """An entry that cannot be used, as its result says it."""

    __slots__ = ("result",)

    def __init__(self, error: Exception) -> None:
        problem = problem_of(error)
        self.result = to_json({"status": problem.status, "problem": problem.content}).decode()


class BatchReader(Generic[M, T]):
    """Reads the entries of a batch, each as decisions take it, or as why it cannot be used.

    A batch without a fault is read in one go; one with a fault anywhere, entry by entry.
    """

    def __init__(
        self, batch: type[BaseModel], name: str, entry: type[M], convert: Callable[[M], T]
    ) -> None:
        self._read = Reader(batch)
        self._name = name
        self._validate = entry.__pydantic_validator__.validate_python
        self._convert = convert

    def __call__(self, body: bytes) -> Sequence[T | FailedEntry]:
        try:
            entries: Sequence[M] = getattr(self._read(body), self._name)
            return [self._convert(entry) for entry in entries]
        except (ValidationError, InvalidArgument):
            return [self._read_entry(entry) for entry in self._listed(body)]

    def _listed(self, body: bytes) -> list[Any]:
        content = parse(body)
        if not isinstance(content, dict):
            raise InvalidArgument("body", "must be an object")
        unknown = sorted(set(content) - {self._name})
        if unknown:
            raise InvalidArgument(unknown[0][:100], UNKNOWN_FIELD)
        entries = content.get(self._name)
        if not isinstance(entries, list):
            raise InvalidArgument(self._name, "must be a list")
        if len(entries) > MOST_BATCH:
            raise InvalidArgument(self._name, f"may have at most {MOST_BATCH} entries")
        return entries

    def _read_entry(self, entry: Any) -> T | FailedEntry:
        try:
            return self._convert(self._validate(entry))
        except (ValidationError, InvalidArgument) as error:
            return FailedEntry(error)


def permitted(entry: T | FailedEntry, within: Callable[[T], T]) -> T | FailedEntry:
    """Return the entry as far as the caller's key reaches, or as why it does not."""
    if isinstance(entry, FailedEntry):
        return entry
    try:
        return within(entry)
    except NotAllowed as error:
        return FailedEntry(error)


def usable(entries: Iterable[T | FailedEntry]) -> list[T]:
    """Return the entries that can be used."""
    return [entry for entry in entries if not isinstance(entry, FailedEntry)]


async def results_json(
    entries: Sequence[T | FailedEntry],
    outcomes: Iterable[R | DiscreetError],
    show: Callable[[R], str],
) -> bytes:
    """Return one result for each entry: its own fault, or what became of it.

    Other requests have their turn every now and then: long lists take long to write.
    """
    remaining = iter(outcomes)
    results: list[str] = []
    for start in range(0, len(entries), _WRITTEN_TOGETHER):
        if start:
            await asyncio.sleep(0)
        for entry in entries[start : start + _WRITTEN_TOGETHER]:
            if isinstance(entry, FailedEntry):
                results.append(entry.result)
                continue
            outcome = next(remaining)
            if isinstance(outcome, DiscreetError):
                results.append(FailedEntry(outcome).result)
            else:
                results.append(show(outcome))
    return b'{"results":[%b]}' % ",".join(results).encode()
