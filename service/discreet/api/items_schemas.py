"""What callers send and get about items, as the OpenAPI document shows it."""

from typing import Any

from pydantic import BaseModel, Field

from discreet.api.schemas import Body
from discreet.families.documents import FEW_ITEMS, Features, Identifier, ItemDocument
from discreet.families.items import MOST_CATEGORIES, Attributes


class ItemsRequest(Body):
    """Items to add, as plain ids or objects; those already there take the settings given."""

    items: list[ItemDocument | Identifier] = Field(min_length=1, max_length=FEW_ITEMS)


class ItemChange(Body):
    """What can change about an item; what is not named stays, and null removes it."""

    hidden: bool = Field(default=False, strict=True)
    title: Identifier | None = None
    attributes: Attributes | None = Field(
        default=None, description="Merged with those that are there; null removes one."
    )
    categories: list[Identifier] | None = Field(default=None, max_length=MOST_CATEGORIES)
    features: Features | None = None


class ItemAnswer(BaseModel):
    """An item of a recommender; optional fields are there if it has them."""

    id: str
    hidden: bool
    title: str | None = None
    attributes: dict[str, Any] | None = None
    categories: list[str] | None = None
    features: Features | None = None


class ItemsAnswer(BaseModel):
    """Items of a recommender, and how many there are in all."""

    items: list[ItemAnswer]
    total: int
    next: int | None = Field(default=None, description="There if there are more: `after` of those.")


class ItemsChanged(BaseModel):
    """What came of the items that were sent, and how many there are now."""

    added: int
    changed: int
    unchanged: int
    total: int


class LineError(BaseModel):
    """What is wrong with one line; the first is line 1."""

    line: int
    field: str
    message: str


class ItemsImported(ItemsChanged):
    """What came of the lines that were sent."""

    refused: int = Field(description="Lines that could not be used.")
    errors: list[LineError] = Field(description="The first hundred of them.")
