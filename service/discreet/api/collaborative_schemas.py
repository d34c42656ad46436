"""What callers send to and get from a collaborative recommender, beside what all of them answer."""

from pydantic import BaseModel, Field

from discreet.api.schemas import Body, Identifiers
from discreet.families.documents import Identifier


class ProfileRequest(Body):
    """What a client has seen, or the list that its device made of it."""

    client: Identifier = Field(description="Whose profile it is. Kept only as a keyed digest.")
    items: Identifiers = Field(
        description="Ids of the catalogue, in any order; duplicates count once."
    )
    replace: bool = Field(
        default=True,
        strict=True,
        description="true: this is the whole profile, and an empty one erases it; false: these "
        "items are added to it.",
    )


class ProfileAnswer(BaseModel):
    """The profile as it stands now."""

    client: str
    items: int = Field(description="How many items it has.")


class CatalogueItem(BaseModel):
    """An item that may be recommended."""

    id: str
    title: str | None
    categories: list[str]


class CatalogueAnswer(BaseModel):
    """Everything that may be recommended. It is the same for everybody."""

    items: list[CatalogueItem]
    categories: list[str] = Field(description="Every category that an item names.")


class PopularRowAnswer(BaseModel):
    """The most popular items of a category, or of all where `category` is null."""

    category: str | None
    items: list[str]


class PopularAnswer(BaseModel):
    """What anybody gets who has no profile."""

    rows: list[PopularRowAnswer]
