"""The configuration file: `server:` settings and `recommenders:`, in YAML.

    server:
      port: 8000
    recommenders:
      films:
        algorithm: p-dap
        items_file: films.txt        # or `items:`; one id a line, beside this file
        other_items: keep            # or `remove`: those in the store that the file does not name
        context: {dimensions: 2}

Nothing is guessed: an unknown name, a name given twice or a value that cannot be used is an error
that says which.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from discreet.errors import InvalidArgument
from discreet.families.documents import NAME_PATTERN, RecommenderDocument
from discreet.families.registration import read_document
from discreet.validation import UNKNOWN_FIELD, explained, problems_with


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a configuration file holds."""

    server: Mapping[str, Any] = field(default_factory=dict)
    recommenders: Mapping[str, RecommenderDocument] = field(default_factory=dict)
    complete: frozenset[str] = frozenset()
    """Recommenders whose items are those of the file and no others (`other_items: remove`)."""


_NAME = re.compile(NAME_PATTERN)


def read(path: Path) -> Configuration:
    """Return what a file holds, or raise `InvalidArgument` naming the file and the field."""
    content = _content(path)
    _only(path, "", content, {"server", "recommenders"})
    server = _object(path, "server", content.get("server"))
    entries = _object(path, "recommenders", content.get("recommenders"))
    return Configuration(
        server=server,
        recommenders={name: _recommender(path, name, entry) for name, entry in entries.items()},
        complete=frozenset(name for name, entry in entries.items() if _is_complete(entry)),
    )


def _is_complete(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("other_items") == "remove"


def _content(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidArgument(str(path), "cannot be read: it is not UTF-8 text") from None
    try:
        content = YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        # The library's message about a duplicate name repeats both values.
        twice = isinstance(error, DuplicateKeyError)
        problem = "a name is given twice" if twice else error.problem
        raise InvalidArgument(str(path), f"{line}{problem or 'is not YAML'}") from None
    except YAMLError:
        raise InvalidArgument(str(path), "is not YAML") from None
    return _object(path, "", content)


def _object(path: Path, where: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise _wrong(path, where or "the file", "must be a mapping of names to values")
    return value


def _only(path: Path, where: str, value: Mapping[str, Any], known: set[str]) -> None:
    for name in value:
        if name not in known:
            names = ", ".join(sorted(known))
            raise _wrong(path, f"{where}{name}", f"{UNKNOWN_FIELD}; known are {names}")


def _recommender(path: Path, name: str, entry: Any) -> RecommenderDocument:
    where = f"recommenders.{name}"
    if not _NAME.match(name):
        raise _wrong(path, where, "a name has 1 to 64 letters, digits, or any of _ . -")
    fields = dict(_object(path, where, entry))
    if fields.pop("other_items", "keep") not in ("keep", "remove"):
        raise _wrong(path, f"{where}.other_items", "must be keep or remove")
    items_file = fields.pop("items_file", None)
    if items_file is not None:
        if "items" in fields:
            raise _wrong(path, f"{where}.items_file", "give either this or items, not both")
        fields["items"] = _items(path, f"{where}.items_file", items_file)
    try:
        return read_document(fields)
    except ValidationError as error:
        first = explained(problems_with(error))[0]
        field_name = "" if first["field"] == "body" else f".{first['field']}"
        raise _wrong(path, where + field_name, first["message"]) from None


def _items(path: Path, where: str, name: Any) -> list[str]:
    if not isinstance(name, str):
        raise _wrong(path, where, "must be the name of a file")
    try:
        lines = (path.parent / name).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise _wrong(path, where, f"cannot be read: {reason}") from None
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _wrong(path: Path, where: str, reason: str) -> InvalidArgument:
    return InvalidArgument(f"{path}: {where}", reason)
