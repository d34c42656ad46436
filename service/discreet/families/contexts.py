"""What callers say about a client, and how it becomes the numbers in [0, 1] that models take.

A document declares either a plain vector (`context: {dimensions: 2}`) or named fields, each of a
type:

    context:
      fields:
        age: {type: number, range: [0, 120]}
        country: {type: category, values: [CH, DE, FR]}
        shop: {type: category}
        member: {type: boolean}

| field | numbers | value | missing |
|---|---|---|---|
| number | 2; 1 if required | its place in the range, clipped to [0, 1]; then 0 | 0.5, then 1 |
| category with `values` | one per value, one for all others | 1 at its place | all 0 |
| category without | `buckets` | 1 at the place of its hash | all 0 |
| boolean | 1 | 1 or 0 | 0.5 |

Fields stand in the order of their names, values in theirs, so that the order in a document means
nothing. A value outside the range is clipped and not refused: whether a request is refused depends
on its form alone, never on how large what is private happens to be. A category that nobody listed
is one of the others, or lands in a bucket with some of the rest; nothing is kept about it, and
nothing has to be declared before it may come. The hash is a fixed one: it hides nothing, and is
the same in every worker, on every day. Words are compared in Unicode's composed form (NFC), so that
an accent which some keyboards send as a character of its own makes no other word.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from discreet.errors import InvalidArgument
from discreet.families.documents import MOST_DIMENSIONS, Document, Identifier, Number

MOST_FIELDS = 1_000
MOST_VALUES = 1_000
DEFAULT_BUCKETS = 16
LONGEST_CATEGORY = 200
_MOST_NAMES_SHOWN = 20
_LONGEST_NAME_SHOWN = 64

_FIELD_NAME = r"^[A-Za-z_][A-Za-z0-9_.-]{0,63}$"


def _named(name: str) -> str:
    if not re.fullmatch(_FIELD_NAME, name):
        raise ValueError(
            "a field's name has 1 to 64 of the letters a to z, digits, and _ . -, and begins with "
            "a letter or _"
        )
    return name


FieldName = Annotated[
    str,
    Field(strict=True),
    AfterValidator(_named),
    WithJsonSchema({"type": "string", "pattern": _FIELD_NAME}),
]

Context = Sequence[float] | Mapping[str, Any]
"""What a request says: a vector, or values by name, whose types have not been looked at yet."""

ContextFeatures = tuple[float, ...]
"""What a model takes: numbers in [0, 1], always as many."""

ContextReader = Callable[[Context], ContextFeatures]
"""Returns the features of a context, or raises `InvalidArgument` naming the field."""

_Write = Callable[[list[float], Any], None]


class NumberField(Document):
    """A number. Values outside of the range count as its nearest end."""

    type: Literal["number"]
    range: tuple[Number, Number] = Field(
        description="Where most values lie, [lowest, highest]: mapped to [0, 1]."
    )
    required: bool = Field(
        default=False, strict=True, description="Refuse requests without it; saves a number."
    )

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        low, high = self.range
        if not (low < high and math.isfinite(high - low)):
            raise ValueError("range: must be [lowest, highest], the lowest first")
        return self

    def missing(self) -> ContextFeatures:
        """Return the middle, and that it is a guess."""
        return (0.5,) if self.required else (0.5, 1.0)

    def writer(self, name: str, at: int) -> _Write:
        """Return what writes a value to its place."""
        low, high = self.range
        argument, optional = f"context.{name}", not self.required

        def write(features: list[float], value: Any) -> None:
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise InvalidArgument(argument, "must be a number")
            if value != value or value in (math.inf, -math.inf):
                raise InvalidArgument(argument, "must be a finite number")
            # Compared before anything is computed: whole numbers may be larger than any float.
            features[at] = (
                0.0 if value <= low else 1.0 if value >= high else (value - low) / (high - low)
            )
            if optional:
                features[at + 1] = 0.0

        return write


class CategoryField(Document):
    """A word from a list, or any word. Words that are not in the list count as one."""

    type: Literal["category"]
    values: list[Identifier] | None = Field(
        default=None,
        min_length=1,
        max_length=MOST_VALUES,
        description="The words that matter, a number each; any other word counts as 'other'. "
        "Without a list every word is taken, hashed into one of the buckets.",
    )
    buckets: int | None = Field(
        default=None,
        ge=2,
        le=4_096,
        strict=True,
        description=f"How many, where there is no list; {DEFAULT_BUCKETS} if it is not said.",
    )
    required: bool = Field(default=False, strict=True, description="Refuse requests without it.")

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if self.values is not None:
            if len(set(map(_composed, self.values))) != len(self.values):
                raise ValueError("values: must be distinct")
            if self.buckets is not None:
                raise ValueError("buckets: has no meaning beside values; leave one of them out")
        return self

    def missing(self) -> ContextFeatures:
        """Return a place for every word, none of them taken."""
        return (0.0,) * (self._buckets if self.values is None else len(self.values) + 1)

    @property
    def _buckets(self) -> int:
        return self.buckets or DEFAULT_BUCKETS

    def writer(self, name: str, at: int) -> _Write:
        """Return what writes a value to its place."""
        argument = f"context.{name}"
        if self.values is None:
            place = partial(_bucket, name, self._buckets)
        else:
            place = partial(
                _listed, {_composed(word): row for row, word in enumerate(sorted(self.values))}
            )

        def write(features: list[float], value: Any) -> None:
            if not isinstance(value, str):
                raise InvalidArgument(argument, "must be a string")
            if len(value) > LONGEST_CATEGORY:
                raise InvalidArgument(argument, f"must have at most {LONGEST_CATEGORY} characters")
            features[at + place(_composed(value))] = 1.0

        return write


def _composed(word: str) -> str:
    return word if word.isascii() else unicodedata.normalize("NFC", word)


def _listed(place_of: Mapping[str, int], word: str) -> int:
    return place_of.get(word, len(place_of))


def _bucket(name: str, buckets: int, word: str) -> int:
    text = f"{name}\0{word}".encode(errors="surrogatepass")
    digest = blake2b(text, digest_size=8, person=b"context field").digest()
    return int.from_bytes(digest, "little") % buckets


class BooleanField(Document):
    """True or false."""

    type: Literal["boolean"]
    required: bool = Field(default=False, strict=True, description="Refuse requests without it.")

    def missing(self) -> ContextFeatures:
        """Return what is between the two."""
        return (0.5,)

    def writer(self, name: str, at: int) -> _Write:
        """Return what writes a value to its place."""
        argument = f"context.{name}"

        def write(features: list[float], value: Any) -> None:
            if not isinstance(value, bool):
                raise InvalidArgument(argument, "must be true or false")
            features[at] = 1.0 if value else 0.0

        return write


def _type(value: Any) -> str | None:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return f"({kind})" if isinstance(kind, str) else None


ContextField = Annotated[
    Annotated[NumberField, Tag("(number)")]
    | Annotated[CategoryField, Tag("(category)")]
    | Annotated[BooleanField, Tag("(boolean)")],
    Discriminator(
        _type,
        custom_error_type="context_field_type",
        custom_error_message="must have a type: number, category or boolean",
    ),
]


class VectorContextDocument(Document):
    """So many numbers in [0, 1] with every request."""

    dimensions: int = Field(
        ge=1, le=MOST_DIMENSIONS, strict=True, description="Numbers in [0, 1] per request."
    )

    @property
    def size(self) -> int:
        """How many numbers a model takes."""
        return self.dimensions

    def fixed(self) -> Mapping[str, object]:
        """Return what cannot change without losing what was learned, by field."""
        return {"context.dimensions": self.dimensions}

    def reader(self) -> ContextReader:
        """Return what checks a request's context and makes features of it."""
        size = self.dimensions

        def read(context: Context) -> ContextFeatures:
            if type(context) is not list and isinstance(context, Mapping):
                raise InvalidArgument("context", f"must be a list of {size} numbers from 0 to 1")
            if len(context) != size:
                raise InvalidArgument(
                    "context",
                    f"must be a list of {size} numbers from 0 to 1, not of {len(context)}",
                )
            for value in context:
                if not 0.0 <= value <= 1.0:  # NaN is refused as well
                    raise InvalidArgument("context", "every value must be a number from 0 to 1")
            return tuple(context)

        return read


class NamedContextDocument(Document):
    """Values by name with every request; fields that are missing, or null, are unknown."""

    fields: dict[FieldName, ContextField] = Field(
        min_length=1, max_length=MOST_FIELDS, description="By name, each with its type."
    )

    @model_validator(mode="after")
    def _not_too_many(self) -> Self:
        if self.size > MOST_DIMENSIONS:
            raise ValueError(f"fields: together they are more than {MOST_DIMENSIONS:,} numbers")
        return self

    @property
    def size(self) -> int:
        """How many numbers a model takes."""
        return sum(len(field.missing()) for field in self.fields.values())

    def fixed(self) -> Mapping[str, object]:
        """Return what cannot change without losing what was learned, by field.

        Whether a category or a boolean is required makes no difference to what was learned.
        """
        layout = dict(self._layout())
        each = {f"context.fields.{name}": one for name, one in layout.items()}
        return {"context.fields": frozenset(layout), **each}

    def _layout(self) -> list[tuple[str, object]]:
        layout: list[tuple[str, object]] = []
        for name, field in self.fields.items():
            if isinstance(field, NumberField):
                layout.append((name, ("number", field.range, field.required)))
            elif isinstance(field, CategoryField):
                words = None if field.values is None else tuple(sorted(field.values))
                layout.append((name, ("category", words, len(field.missing()))))
            else:
                layout.append((name, ("boolean",)))
        return layout

    def reader(self) -> ContextReader:
        """Return what checks a request's context and makes features of it."""
        names = sorted(self.fields)
        unknown: list[float] = []
        write_of: dict[str, _Write] = {}
        for name in names:
            field = self.fields[name]
            write_of[name] = field.writer(name, len(unknown))
            unknown += field.missing()
        required = frozenset(name for name in names if self.fields[name].required)
        more = ", …" if len(names) > _MOST_NAMES_SHOWN else ""
        shown = ", ".join(names[:_MOST_NAMES_SHOWN]) + more

        def read(context: Context) -> ContextFeatures:
            if not isinstance(context, Mapping):
                if len(context):
                    raise InvalidArgument("context", f"must be an object with the fields {shown}")
                context = {}
            features = unknown.copy()
            for name, value in context.items():
                write = write_of.get(name)
                if write is None:
                    raise InvalidArgument(
                        f"context.{_printable(name)}", f"unknown field; there are: {shown}"
                    )
                if value is not None:
                    write(features, value)
            for name in required:
                if context.get(name) is None:
                    raise InvalidArgument(f"context.{name}", "is required")
            return tuple(features)

        return read


def _printable(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name[:_LONGEST_NAME_SHOWN])


def _shape(value: Any) -> str | None:
    named = "fields" in value if isinstance(value, dict) else hasattr(value, "fields")
    if named and isinstance(value, dict) and "dimensions" in value:
        return None
    return "(fields)" if named else "(vector)"


ContextDocument = Annotated[
    Annotated[VectorContextDocument, Tag("(vector)")]
    | Annotated[NamedContextDocument, Tag("(fields)")],
    Discriminator(
        _shape,
        custom_error_type="context_shape",
        custom_error_message="must have either dimensions or fields, not both",
    ),
]
"""The shape of what callers tell about a client: a vector, or named fields."""
