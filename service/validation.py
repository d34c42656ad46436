"""What a failed validation says, in our words: where it went wrong, and never the input itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

MOST_FIELD_ERRORS = 20
_LONGEST_FIELD = 120


def problems_with(error: ValidationError) -> Sequence[Mapping[str, Any]]:
    """Return what pydantic found, without the input and what was derived from it."""
    return error.errors(include_url=False, include_context=False, include_input=False)


def explained(details: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the first few errors as fields and messages; only places and our words are kept."""
    return [
        {"field": _field(detail["loc"]), "message": _message(detail)}
        for detail in details[:MOST_FIELD_ERRORS]
    ]


_SOURCES = frozenset({"body", "query", "path", "header"})


def _field(location: Sequence[str | int]) -> str:
    parts = list(location)
    if parts and parts[0] in _SOURCES:
        parts = parts[1:]
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
    words = _WORDS.get(detail["type"])
    if words is not None:
        return words
    message = str(detail["msg"]).removeprefix("Value error, ").partition(" after validation")[0]
    for subject in ("Input", "String", "List", "Tuple", "Dictionary"):
        if message.startswith(f"{subject} should "):
            return "must " + message[len(subject) + 8 :]
    return message
