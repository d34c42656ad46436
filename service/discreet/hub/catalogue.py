"""The public catalogue on this device: which items there are, and which categories they are in.

It comes from the server or from a file, whole and always whole: asking the server about single
items would tell it which ones matter here. A new version replaces the old one only after it was
checked from end to end.
"""

import csv
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from discreet.errors import InvalidArgument
from discreet.families.collaborative.on_device.catalogue import Catalogue
from discreet.hub.errors import HubRefusal
from discreet.hub.titles import TitleIndex, normalise

MOST_ITEMS = 200_000
MOST_CATEGORIES = 500
LONGEST_NAME = 200
OTHER = "Other"
"""The category of items that name none: an item without a category could not be protected."""

CategoryName = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]


@dataclass(frozen=True, slots=True)
class PublicItem:
    """An item that everybody may know of."""

    id: str
    title: str
    categories: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class PublicCatalogue:
    """All items and all categories, in their source's order. Equal digests, equal catalogues."""

    items: tuple[PublicItem, ...]
    categories: tuple[str, ...]
    digest: str
    pinned: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Categories by which items are judged beside their own: see `pins`."""

    @cached_property
    def by_id(self) -> dict[str, PublicItem]:
        """The items by id."""
        return {item.id: item for item in self.items}

    @cached_property
    def positions(self) -> dict[str, int]:
        """Where each item stands in the catalogue."""
        return {item.id: place for place, item in enumerate(self.items)}

    @cached_property
    def sizes(self) -> dict[str, int]:
        """How many items each category has; categories without any are listed too."""
        return self.profile(self.by_id)

    @cached_property
    def used_categories(self) -> tuple[str, ...]:
        """The categories that have items: what the server is asked for, in this order, always."""
        return tuple(name for name in self.categories if self.sizes[name])

    @cached_property
    def title_index(self) -> TitleIndex:
        """Finds an item by its title."""
        return TitleIndex((item.id, item.title) for item in self.items)

    @cached_property
    def search_titles(self) -> tuple[str, ...]:
        """The titles as they are searched."""
        return tuple(normalise(item.title).text for item in self.items)

    @cached_property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """The categories by which each item is judged: its own, and those that are pinned."""
        return {item.id: item.categories + self.pinned.get(item.id, ()) for item in self.items}

    @cached_property
    def compiled(self) -> Catalogue:
        """The catalogue as the mechanism wants it."""
        return Catalogue.of(self.labels)

    def profile(self, items: Iterable[str]) -> dict[str, int]:
        """Return how many of the items each category has; unknown ones are passed over."""
        counts = dict.fromkeys(self.categories, 0)
        for item in items:
            if item in self.by_id:
                for name in self.by_id[item].categories:
                    counts[name] += 1
        return counts

    def item(self, item: str) -> PublicItem:
        """Return an item; one that is not known is its id."""
        return self.by_id.get(item, PublicItem(item, item, ()))


class _Item(BaseModel):
    model_config = ConfigDict(extra="ignore")
    id: CategoryName
    title: Annotated[str, Field(max_length=500)] | None = None
    categories: list[CategoryName] = Field(default_factory=list, max_length=MOST_CATEGORIES)


class _Document(BaseModel):
    model_config = ConfigDict(extra="ignore")
    items: list[_Item] = Field(max_length=MOST_ITEMS)
    categories: list[CategoryName] = Field(default_factory=list, max_length=MOST_CATEGORIES)


def parse(document: Any) -> PublicCatalogue:
    """Check a catalogue as the server or a file gives it. Raises `HubRefusal`."""
    try:
        read = _Document.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise HubRefusal(
            f"The catalogue cannot be used: “{where}” {first['msg'].lower()}."
        ) from error
    return compose(
        (
            PublicItem(
                each.id, each.title or each.id, tuple(dict.fromkeys(each.categories or (OTHER,)))
            )
            for each in read.items
        ),
        read.categories,
    )


def compose(items: Iterable[PublicItem], categories: Iterable[str] = ()) -> PublicCatalogue:
    """Put a catalogue together; categories that only items name are added behind the others."""
    listed = tuple(items)
    if not listed:
        raise HubRefusal("The catalogue has no items.")
    if len({item.id for item in listed}) < len(listed):
        raise HubRefusal("The catalogue has two items with the same id.")
    names = dict.fromkeys(categories)
    for item in listed:
        names.update(dict.fromkeys(item.categories))
    if len(names) > MOST_CATEGORIES:
        raise HubRefusal(f"The catalogue has more than {MOST_CATEGORIES} categories.")
    text = json.dumps([[list(names)], [[i.id, i.title, i.categories] for i in listed]])
    return PublicCatalogue(listed, tuple(names), hashlib.sha256(text.encode()).hexdigest())


def from_file(path: Path) -> PublicCatalogue:
    """Read a catalogue file: JSON as the server gives it, or CSV with id, title, categories.

    In CSV the categories of an item are separated by `|`. Raises `InvalidArgument` or `HubRefusal`.
    """
    try:
        text = path.read_text("utf-8-sig")
        if text.lstrip().startswith("{"):
            return parse(json.loads(text))
        rows = list(csv.DictReader(text.splitlines()))
    except OSError as error:
        raise InvalidArgument("--catalogue", f"cannot read {path}: {error.strerror}") from error
    except (ValueError, csv.Error) as error:
        raise InvalidArgument("--catalogue", f"{path} is neither JSON nor CSV ({error})") from error
    if not rows or not {"id", "categories"} <= set(rows[0]):
        raise InvalidArgument("--catalogue", f"{path} needs the columns id, title and categories")
    items = [
        {
            "id": row["id"],
            "title": row.get("title") or None,
            "categories": [n.strip() for n in (row["categories"] or "").split("|") if n],
        }
        for row in rows
    ]
    return parse({"items": items})
