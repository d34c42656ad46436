"""A changed catalogue: kept aside until its owner has seen what is different and agreed.

The first catalogue of a server is taken as it is, since nothing was chosen yet. Any later one that
differs is only *offered*: lists are made from the accepted one until the owner agrees to the
difference that was shown. Its categories are pinned at once (`pins`), accepted or not.
"""

import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from discreet.hub import accepted, pins, popularity
from discreet.hub.catalogue import PublicCatalogue, PublicItem, compose
from discreet.hub.database import get_value, set_value
from discreet.hub.errors import HubRefusal
from discreet.hub.titles import normalise

MOST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class MovedItem:
    """An item whose categories the server wants to change."""

    title: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    seen: bool


@dataclass(frozen=True, slots=True)
class CatalogueDifference:
    """What an offered catalogue changes. `moved` names those that were seen first, up to a bound.

    `moves` counts all moved items, those that take another's title among them; `added` and
    `removed` count items, `renamed` those that keep their id under another title.
    """

    added: int
    removed: int
    renamed: int
    moves: int
    moved: tuple[MovedItem, ...]
    new_categories: tuple[str, ...]
    lost_categories: tuple[str, ...]


def difference(
    before: PublicCatalogue, after: PublicCatalogue, *, seen: Collection[str]
) -> CatalogueDifference:
    """Return what the second catalogue changes; `seen` are the items of the history."""
    known = frozenset(seen)
    kept = [(before.by_id[item.id], item) for item in after.items if item.id in before.by_id]
    # Besides the same ids: a title, year aside, that another id takes from one which had it.
    left = {
        normalise(item.title).text: item
        for item in before.items
        if item.id not in after.by_id or after.by_id[item.id].title != item.title
    }
    taken = [
        (old, item)
        for item in after.items
        if (old := left.get(normalise(item.title).text)) is not None and old.id != item.id
    ]
    moved = [
        MovedItem(new.title, old.categories, new.categories, not known.isdisjoint((old.id, new.id)))
        for old, new in (*kept, *taken)
        if set(old.categories) != set(new.categories)
    ]
    moved.sort(key=lambda each: not each.seen)
    return CatalogueDifference(
        added=len(after.items) - len(kept),
        removed=len(before.items) - len(kept),
        renamed=sum(old.title != new.title for old, new in kept),
        moves=len(moved),
        moved=tuple(moved[:MOST_SHOWN]),
        new_categories=tuple(n for n in after.categories if n not in before.categories),
        lost_categories=tuple(n for n in before.categories if n not in after.categories),
    )


def offer(
    work: sqlite3.Connection,
    catalogue: PublicCatalogue,
    *,
    places: Mapping[str, float],
    source: str,
    now: str,
) -> bool:
    """Take a fetched catalogue, or keep it aside; return whether it has to be agreed to.

    `places` is what is popular in it.
    """
    pins.pin(work, catalogue.items)
    used = accepted.load(work)
    if used is not None and used.digest != catalogue.digest:
        items = [[item.id, item.title, item.categories] for item in catalogue.items]
        set_value(
            work,
            "offered",
            {
                "digest": catalogue.digest,
                "source": source,
                "fetched": now,
                "items": items,
                "categories": catalogue.categories,
                "places": dict(places),
            },
        )
        return True
    accepted.keep(work, catalogue, source=source, now=now)
    popularity.keep(work, places, catalogue)
    refuse(work)
    return False


def waiting(work: sqlite3.Connection, *, seen: Collection[str]) -> dict[str, Any] | None:
    """Return what an offered catalogue changes, and its digest; None if nothing is offered."""
    offered = get_value(work, "offered")
    if not offered:
        return None
    found = difference(accepted.require(work), _catalogue(offered), seen=seen)
    return {
        "digest": offered["digest"],
        "source": offered["source"],
        "fetched": offered["fetched"],
        **asdict(found),
    }


def accept(work: sqlite3.Connection, digest: str) -> PublicCatalogue:
    """Use the offered catalogue, if it is the one that was shown. Raises `HubRefusal`."""
    offered = get_value(work, "offered")
    if not offered or offered["digest"] != digest:
        raise HubRefusal("Another catalogue was offered meanwhile. Look at the difference first.")
    catalogue = _catalogue(offered)
    accepted.keep(work, catalogue, source=offered["source"], now=offered["fetched"])
    popularity.keep(work, offered["places"], catalogue)
    refuse(work)
    return catalogue


def refuse(work: sqlite3.Connection) -> None:
    """Go on with the accepted catalogue. What was pinned stays pinned."""
    set_value(work, "offered", None)


def _catalogue(offered: Mapping[str, Any]) -> PublicCatalogue:
    items = (PublicItem(id_, title, tuple(names)) for id_, title, names in offered["items"])
    return compose(items, offered["categories"])
