"""The catalogue that its owner accepted, as this device keeps it, with what is pinned to it."""

import json
import sqlite3
from dataclasses import dataclass

from cachetools import LRUCache

from discreet.hub import pins
from discreet.hub.catalogue import PublicCatalogue, PublicItem
from discreet.hub.database import get_value, set_value
from discreet.hub.errors import HubRefusal


def keep(work: sqlite3.Connection, catalogue: PublicCatalogue, *, source: str, now: str) -> None:
    """Replace the catalogue on this device."""
    pins.pin(work, catalogue.items)
    work.execute("DELETE FROM catalogue")
    work.executemany(
        "INSERT INTO catalogue VALUES (?, ?, ?, ?)",
        (
            (place, item.id, item.title, json.dumps(item.categories))
            for place, item in enumerate(catalogue.items)
        ),
    )
    about = {"source": source, "fetched": now, "digest": catalogue.digest}
    set_value(work, "catalogue", {**about, "categories": catalogue.categories})


@dataclass(frozen=True, slots=True)
class CatalogueSource:
    """Where the catalogue came from, and when."""

    source: str
    fetched: str


def source_of(work: sqlite3.Connection) -> CatalogueSource | None:
    """Return where the catalogue came from, if there is one."""
    kept = get_value(work, "catalogue")
    return CatalogueSource(kept["source"], kept["fetched"]) if kept else None


_recent: LRUCache[tuple[str, str, int], PublicCatalogue] = LRUCache(maxsize=8)
"""Catalogues read last, by file, digest and newest pin: parsing thousands of rows at every
click would be felt."""


def load(work: sqlite3.Connection) -> PublicCatalogue | None:
    """Return the catalogue on this device, if there is one."""
    kept = get_value(work, "catalogue")
    if kept is None:
        return None
    file = work.execute("PRAGMA main.database_list").fetchone()[2]
    key = (file, kept["digest"], pins.last(work))
    found = _recent.get(key)
    if found is None:
        rows = work.execute("SELECT id, title, categories FROM catalogue ORDER BY position")
        items = tuple(
            PublicItem(id_, title, tuple(json.loads(names))) for id_, title, names in rows
        )
        plain = PublicCatalogue(items, tuple(kept["categories"]), kept["digest"])
        found = _recent[key] = pins.with_pins(work, plain)
    return found


def require(work: sqlite3.Connection) -> PublicCatalogue:
    """Return the catalogue, or say that there is none yet."""
    found = load(work)
    if found is None:
        raise HubRefusal("There is no catalogue yet. Fetch it from the server first.")
    return found
