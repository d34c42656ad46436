"""Something that can be recommended, as people write it, and the parts that documents are made of.

Every algorithm shows an item's title and attributes and looks at neither. Which of the other fields
it uses, the document of its family says.
"""

import json
import operator
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    WithJsonSchema,
    model_validator,
)

MOST_ITEMS = 100_000
"""Of a recommender whose answers and releases stay quick with so many;"""
FEW_ITEMS = 10_000
"""and of one whose do not."""
MOST_FEATURES = 1_000_000
MOST_NONZEROS = 1_000
MOST_CATEGORIES = 64
MOST_ATTRIBUTES = 64
MOST_ATTRIBUTE_BYTES = 4_096
LONGEST_IDENTIFIER = 200


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must not contain control characters")
    return text


Identifier = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST_IDENTIFIER, strict=True),
    AfterValidator(_printable),
]
"""The id of an item, a client or an event: any printable text of 1 to 200 characters."""

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Position = Annotated[
    int,
    Field(strict=True),
    # The limits are looked at once for a list that ascends, at its ends.
    WithJsonSchema({"type": "integer", "minimum": 0, "maximum": MOST_FEATURES - 1}),
]


class Document(BaseModel):
    """A part of a recommender's document."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SparseFeatures(Document):
    """A vector that is zero almost everywhere: ascending positions, and what stands there."""

    indices: list[Position] = Field(max_length=MOST_NONZEROS, fail_fast=True)
    values: list[Number] = Field(max_length=MOST_NONZEROS, fail_fast=True)

    @model_validator(mode="after")
    def _well_formed(self) -> Self:
        if len(self.indices) != len(self.values):
            raise ValueError("indices and values must be equally many")
        if not all(map(operator.lt, self.indices, self.indices[1:])):
            raise ValueError("indices must ascend, each standing once")
        if self.indices and not (self.indices[0] >= 0 and self.indices[-1] < MOST_FEATURES):
            raise ValueError(f"indices must be from 0 to {MOST_FEATURES - 1}")
        return self


DenseFeatures = Annotated[list[Number], Field(min_length=1, max_length=10_000, fail_fast=True)]


def list_or_object(value: Any) -> str:
    """Return which of the two it is, as a tag: errors are then about the one that was meant."""
    return "(object)" if isinstance(value, dict | BaseModel) else "(list)"


Features = Annotated[
    Annotated[SparseFeatures, Tag("(object)")] | Annotated[DenseFeatures, Tag("(list)")],
    Discriminator(list_or_object),
]
"""Features as a list of numbers, or as positions and values."""


def _small(attributes: dict[str, Any]) -> dict[str, Any]:
    try:
        size = len(json.dumps(attributes, allow_nan=False, ensure_ascii=False).encode())
    except ValueError:
        raise ValueError("must be JSON: numbers are finite, and text is Unicode") from None
    if size > MOST_ATTRIBUTE_BYTES:
        raise ValueError(f"must be at most {MOST_ATTRIBUTE_BYTES} bytes as JSON")
    return attributes


Attributes = Annotated[
    dict[Identifier, JsonValue], Field(max_length=MOST_ATTRIBUTES), AfterValidator(_small)
]


class ItemDocument(Document):
    """Something that can be recommended. Each algorithm says which fields it uses."""

    id: Identifier
    hidden: bool = Field(
        default=False, description="Hidden items keep what was learned but are not recommended."
    )
    title: Identifier | None = Field(default=None, description="What people call it.")
    attributes: Attributes | None = Field(
        default=None,
        description="Whatever a caller wants back with the item (a price, an address): nothing is "
        "learned from it. At most 64 names and 4,096 bytes.",
    )
    categories: list[Identifier] | None = Field(default=None, max_length=MOST_CATEGORIES)
    features: Features | None = Field(
        default=None, description="A vector, for the algorithms that judge items by their features."
    )

    def description(self) -> dict[str, Any]:
        """Return what people are shown of it beside its id."""
        shown = {"title", "attributes", "categories"}
        return self.model_dump(include=shown, exclude_none=True)


class UnusableItem(ValueError):
    """An item that an algorithm cannot use; `field` is what is wrong with it, if one thing is."""

    def __init__(self, reason: str, *, field: str | None = None) -> None:
        super().__init__(reason)
        self.field = field

    def field_at(self, position: int) -> str:
        """Return the field's name in a list of items."""
        return f"items[{position}]" + ("" if self.field is None else f".{self.field}")


def as_item(value: Any) -> Any:
    """Return an item's fields: its id alone may stand for it."""
    return {"id": value} if isinstance(value, str) else value
