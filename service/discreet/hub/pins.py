"""Every category that an item was ever offered under stays with it: the server cannot un-hide one.

Controls go by category, and the server says which categories an item is in. So a server that moves
an item from a hidden category to an open one, renames the hidden category, or offers the same title
under another id, or under a title that it makes an id, would decide what is private. Against that,
every category under which an item, or an item of the same title, was ever offered to this device is
pinned. Controls are applied to all
pinned categories together, and the most private one decides. More pins can only make a list more
private.

Pins are undone by their owner alone, all at once, on a page that says what that changes.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import replace

from discreet.hub.catalogue import PublicCatalogue, PublicItem
from discreet.hub.titles import normalise


def pin(work: sqlite3.Connection, items: Iterable[PublicItem]) -> None:
    """Remember the categories that these items were offered under."""
    work.executemany(
        "INSERT INTO pinned (item, title, category) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        ((item.id, _whole(item.title), name) for item in items for name in item.categories),
    )


def with_pins(work: sqlite3.Connection, catalogue: PublicCatalogue) -> PublicCatalogue:
    """Return the catalogue with every item's pinned categories beside its own.

    Those of its id always count. Those of its title, year aside, count if the catalogue no longer
    has the id that they were pinned to, or has it under another title: two items of one name that
    stand side by side are two items, one that takes another's name is not. An id counts as a title,
    for that is how lists are read.
    """
    held = {item.id: _whole(item.title) for item in catalogue.items}
    by_id: dict[str, list[str]] = {}
    by_title: dict[str, list[str]] = {}
    rows = work.execute("SELECT item, title, category FROM pinned ORDER BY number")
    for id_, title, name in rows:
        by_id.setdefault(id_, []).append(name)
        if held.get(id_) != title:
            by_title.setdefault(normalise(title).text, []).append(name)
    more: dict[str, tuple[str, ...]] = {}
    for item, title in zip(catalogue.items, catalogue.search_titles, strict=True):
        pinned = dict.fromkeys(by_id.get(item.id, ()))
        for each in (title, normalise(item.id).text):
            pinned.update(dict.fromkeys(by_title.get(each, ())))
        extra = tuple(name for name in pinned if name not in item.categories)
        if extra:
            more[item.id] = extra
    return replace(catalogue, pinned=more)


def _whole(title: str) -> str:
    """Return a title in its plain form, with its year."""
    plain = normalise(title)
    return f"{plain.text} ({plain.year})" if plain.year else plain.text


def last(work: sqlite3.Connection) -> int:
    """Return the number of the newest pin: another one means that pins have changed."""
    (found,) = work.execute("SELECT max(number) FROM pinned").fetchone()
    return int(found or 0)


def reset(work: sqlite3.Connection, catalogue: PublicCatalogue) -> None:
    """Judge items by the categories of this catalogue alone from now on."""
    work.execute("DELETE FROM pinned")
    pin(work, catalogue.items)
