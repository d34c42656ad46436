"""What a failed validation says, in our words: where it went wrong, and never the input itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from discreet.decisions.every_document import ALGORITHMS

MOST_FIELD_ERRORS = 20
_LONGEST_FIELD = 120


def problems_with(error: ValidationError) -> Sequence[Mapping[str, Any]]:
    """Return what pydantic found, without the input and what was derived from it."""
    return error.errors(include_url=False, include_context=False, include_input=False)


def explained(details: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the first few errors as fields and messages; only places and our words are kept."""
    return [
        {"field": _field(_place(detail)), "message": _message(detail)}
        for detail in details[:MOST_FIELD_ERRORS]
    ]


_SOURCES = frozenset({"body", "query", "path", "header"})
_TAG_ERRORS = frozenset({"union_tag_invalid", "union_tag_not_found"})


def _place(detail: Mapping[str, Any]) -> Sequence[str | int]:
    """Return where it went wrong; a document without a known algorithm went wrong there."""
    location: Sequence[str | int] = detail["loc"]
    return (*location, "algorithm") if detail["type"] in _TAG_ERRORS else location


def _field(location: Sequence[str | int]) -> str:
    parts = list(location)
    if parts and parts[0] in _SOURCES:
        parts = parts[1:]
    # Which of several shapes was tried is pydantic's business: an algorithm's name stands first,
    # other shapes are named in brackets.
    if parts and parts[0] in ALGORITHMS:
        parts = parts[1:]
    parts = [part for part in parts if not (isinstance(part, str) and part.startswith("("))]
    name = ".".join(str(part) for part in parts) or "body"
    # An unknown field is the one thing of the caller's that is repeated, so it is kept in bounds.
    return "".join(c if c.isprintable() else "?" for c in name[:_LONGEST_FIELD])


_WORDS = {
    "extra_forbidden": "is not a field that is known here",
    "missing": "is required",
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "finite_number": "must be a finite number",
    "string_type": "must be a string",
    "list_type": "must be a list",
    "bool_type": "must be true or false",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dict_type": "must be an object",
}


def _message(detail: Mapping[str, Any]) -> str:
    if detail["type"] in _TAG_ERRORS:
        return "must be one of " + ", ".join(ALGORITHMS)
    words = _WORDS.get(detail["type"])
    if words is not None:
        return words
    message = str(detail["msg"]).removeprefix("Value error, ").partition(" after validation")[0]
    for subject in ("Input", "String", "List", "Tuple", "Dictionary"):
        if message.startswith(f"{subject} should "):
            return "must " + message[len(subject) + 8 :]
    return message
