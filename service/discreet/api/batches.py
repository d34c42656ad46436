"""Batches: each entry succeeds or fails by itself, in order."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from discreet.api import schemas
from discreet.api.bodies import parse
from discreet.api.problems import problem_of
from discreet.errors import DiscreetError, InvalidArgument

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
R = TypeVar("R")


class Failed:
    """An entry that cannot be taken, as its result says it."""

    __slots__ = ("result",)

    def __init__(self, error: Exception) -> None:
        problem = problem_of(error)
        self.result = to_json({"status": problem.status, "problem": problem.content}).decode()


class BatchReader(Generic[M, T]):
    """Reads the entries of a batch, each as decisions take it, or as why it cannot be taken.

    A batch without a fault is read in one go by the validator's own parser, which lets the last of
    two equal names win. Without a backslash, a name that was given stands in the body in quotation
    marks: if there are exactly as many of those as fields that were read, nothing was dropped.
    Where entries hold objects, `strings` says how many strings, names included, there are in an
    entry that was read, and every string has two quotation marks. Any other body is read entry by
    entry.
    """

    def __init__(
        self,
        batch: type[BaseModel],
        name: str,
        model: type[M],
        *,
        strings: Callable[[M], int],
        convert: Callable[[M], T],
    ) -> None:
        self._batch = batch.__pydantic_validator__.validate_json
        self._name = name
        self._entry = model.__pydantic_validator__.validate_python
        self._quoted = [b'"%b"' % field.encode() for field in (name, *model.model_fields)]
        self._strings = strings
        self._convert = convert

    def __call__(self, body: bytes) -> list[T | Failed]:
        many = self._read_whole(body)
        if many is None:
            return [self._taken(self._entry, one) for one in self._listed(body)]
        convert = self._convert
        try:
            return [convert(one) for one in many]
        except InvalidArgument:
            return [self._taken(_unchanged, one) for one in many]

    def _read_whole(self, body: bytes) -> Sequence[M] | None:
        """Return all entries if there is no fault and no ambiguity anywhere."""
        if b"\\" in body:
            return None
        try:
            many: Sequence[M] = getattr(self._batch(body), self._name)
        except ValidationError:
            return None
        if body.count(b"{") == len(many) + 1:
            # No objects within entries: then only names of fields can come twice.
            named = 1 + sum([len(one.model_fields_set) for one in many])
            return many if sum(map(body.count, self._quoted)) == named else None
        strings = self._strings
        # One more for the name of the list itself.
        named = 1 + sum([strings(one) for one in many])
        return many if body.count(b'"') == 2 * named else None

    def _listed(self, body: bytes) -> list[Any]:
        content = parse(body)
        if not isinstance(content, dict):
            raise InvalidArgument("body", "must be an object")
        unknown = sorted(set(content) - {self._name})
        if unknown:
            raise InvalidArgument(unknown[0][:100], "is not a field that is known here")
        many = content.get(self._name)
        if not isinstance(many, list):
            raise InvalidArgument(self._name, "must be a list")
        if len(many) > schemas.MOST_BATCH:
            raise InvalidArgument(self._name, f"may have at most {schemas.MOST_BATCH} entries")
        return many

    def _taken(self, validate: Callable[[Any], M], one: Any) -> T | Failed:
        try:
            return self._convert(validate(one))
        except (ValidationError, InvalidArgument) as error:
            return Failed(error)


def _unchanged(one: M) -> M:
    return one


def good(entries: Iterable[T | Failed]) -> list[T]:
    """Return the entries that can be taken."""
    return [entry for entry in entries if not isinstance(entry, Failed)]


def results_json(
    entries: Sequence[T | Failed],
    outcomes: Iterable[R | DiscreetError],
    shown: Callable[[R], str],
) -> bytes:
    """Return one result for each entry: its own fault, or what became of it."""
    remaining = iter(outcomes)
    results = []
    for entry in entries:
        if isinstance(entry, Failed):
            results.append(entry.result)
            continue
        outcome = next(remaining)
        if isinstance(outcome, DiscreetError):
            results.append(Failed(outcome).result)
        else:
            results.append(shown(outcome))
    return b'{"results":[%b]}' % ",".join(results).encode()
