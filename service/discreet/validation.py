"""What a failed validation says, in our words: where it went wrong, and never the input itself."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from discreet.families.registration import FAMILIES

MOST_FIELD_ERRORS = 20
UNKNOWN_FIELD = "unknown field"
_LONGEST_FIELD = 120

_SOURCES = frozenset({"body", "query", "path", "header"})
_TAG_ERRORS = frozenset({"union_tag_invalid", "union_tag_not_found"})
_NAMED = re.compile(r"([A-Za-z_0-9.\[\]]+): (.+)")
"""How a validator of a whole object says which of its fields is wrong."""

_MESSAGES = {
    "extra_forbidden": UNKNOWN_FIELD,
    "missing": "is required",
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "finite_number": "must be a finite number",
    "string_type": "must be a string",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "bool_type": "must be true or false",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dict_type": "must be an object",
}


def problems_with(error: ValidationError) -> Sequence[Mapping[str, Any]]:
    """Return what pydantic found, without the input and what was derived from it."""
    return error.errors(include_url=False, include_context=False, include_input=False)


def explained(details: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the first few errors as fields and messages; only places and our words are kept."""
    return [_explained(detail) for detail in details[:MOST_FIELD_ERRORS]]


def _explained(detail: Mapping[str, Any]) -> dict[str, str]:
    field, message = _field(detail["loc"]), _message(detail)
    if detail["type"] in _TAG_ERRORS:
        # A document without a known algorithm.
        field = f"{field}.algorithm" if field else "algorithm"
    named = _NAMED.fullmatch(message) if detail["type"] == "value_error" else None
    if named is not None:
        field = f"{field}.{named[1]}" if field else named[1]
        message = named[2]
    return {"field": field or "body", "message": message}


def _field(location: Sequence[str | int]) -> str:
    """Return a place as people write it: `items[0].title`."""
    parts = list(location)
    if parts and parts[0] in _SOURCES:
        parts = parts[1:]
    # Which of several shapes was tried is pydantic's business: an algorithm's name stands first,
    # other shapes, and that it was a name, stand in brackets.
    if parts and parts[0] in FAMILIES:
        parts = parts[1:]
    name = ""
    for part in parts:
        if isinstance(part, int):
            name += f"[{part}]"
        elif not part.startswith(("(", "[")):
            name += f".{part}" if name else part
    # An unknown field is the one thing of the caller's that is repeated, so it is kept in bounds.
    return "".join(c if c.isprintable() else "?" for c in name[:_LONGEST_FIELD])


def _message(detail: Mapping[str, Any]) -> str:
    if detail["type"] in _TAG_ERRORS:
        return "must be one of " + ", ".join(FAMILIES)
    message = _MESSAGES.get(detail["type"])
    if message is not None:
        return message
    message = str(detail["msg"]).removeprefix("Value error, ").partition(" after validation")[0]
    for subject in ("Input", "String", "List", "Tuple", "Dictionary"):
        if message.startswith(f"{subject} should "):
            return "must " + message[len(subject) + 8 :]
    return message
