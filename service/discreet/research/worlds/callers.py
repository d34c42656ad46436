"""How a caller says where in a world somebody is: as a vector, or by the document's named fields.

A world knows points of a cube. A recommender that takes a vector is told the point. One with named
fields is told a value for each coordinate, the fields in the order of their names: a number at that
place of its range, a word by the part of [0, 1] that it owns, true above one half. So the same
truth can be learned through either, and what the learner sees of it is the document's encoding.
"""

from collections.abc import Callable, Mapping
from typing import Any

from discreet.families.contexts import (
    CategoryField,
    Context,
    ContextDocument,
    ContextField,
    NamedContextDocument,
    NumberField,
)
from discreet.research.worlds.environments import Floats

Describe = Callable[[Floats], Context | Floats]
"""Returns what a caller says about somebody at a point."""

_WORDS = 8
"""How many words synthetic callers use where the document lists none."""


def coordinates(context: ContextDocument) -> int:
    """Return how many coordinates a world has for callers who say this."""
    if isinstance(context, NamedContextDocument):
        return len(context.fields)
    return context.dimensions


def describing(context: ContextDocument) -> Describe:
    """Return what callers say, as this document wants it."""
    if not isinstance(context, NamedContextDocument):
        return plain
    value_at = {name: _value_at(name, field) for name, field in sorted(context.fields.items())}

    def describe(point: Floats) -> Mapping[str, Any]:
        return {
            name: value(float(place))
            for (name, value), place in zip(value_at.items(), point, strict=True)
        }

    return describe


def plain(point: Floats) -> Floats:
    """Return the point itself."""
    return point


def _value_at(name: str, field: ContextField) -> Callable[[float], Any]:
    if isinstance(field, NumberField):
        low, high = field.range
        return lambda place: low + place * (high - low)
    if isinstance(field, CategoryField):
        words = sorted(field.values or (f"{name} {number}" for number in range(_WORDS)))
        return lambda place: words[min(int(place * len(words)), len(words) - 1)]
    return lambda place: place > 0.5
