"""The raw history: items seen. It is written here, read here, and never leaves this device."""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from discreet.hub.catalogue import PublicCatalogue
from discreet.hub.errors import HubRefusal
from discreet.hub.titles import NoMatch

SHOWN_EXAMPLES = 20


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import found. Titles without a match are counted, and some of them shown."""

    read: int
    added: int
    already: int
    unknown: int
    ambiguous: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """An item of the history. `known` is false if today's catalogue does not have it."""

    id: str
    title: str
    source: str
    known: bool


def seen(work: sqlite3.Connection) -> list[str]:
    """Return the ids of everything seen, the newest last."""
    return [item for (item,) in work.execute("SELECT item FROM history ORDER BY rowid")]


def listed(work: sqlite3.Connection, catalogue: PublicCatalogue | None) -> list[HistoryItem]:
    """Return the history as it is shown, the newest first."""
    known = catalogue.by_id if catalogue else {}
    rows = work.execute("SELECT item, title, source FROM history ORDER BY rowid DESC")
    return [HistoryItem(item, title, source, item in known) for item, title, source in rows]


def unmatched(work: sqlite3.Connection) -> list[str]:
    """Return the titles that were imported from lists and that no item has."""
    return [title for (title,) in work.execute("SELECT title FROM unmatched ORDER BY rowid")]


def add(
    work: sqlite3.Connection, catalogue: PublicCatalogue, item: str, *, source: str, now: str
) -> bool:
    """Note that an item was seen; false if that was known."""
    if item not in catalogue.by_id:
        raise HubRefusal("The catalogue has no such item.")
    title = catalogue.by_id[item].title
    added = work.execute(
        "INSERT INTO history VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (item, title, source, now),
    )
    return added.rowcount > 0


def add_titles(
    work: sqlite3.Connection,
    catalogue: PublicCatalogue,
    titles: Iterable[str],
    *,
    source: str,
    now: str,
) -> int:
    """Note the items with these titles; return how many were not known. Other titles go."""
    found = (catalogue.title_index.find(title) for title in titles)
    return sum(
        add(work, catalogue, item, source=source, now=now)
        for item in found
        if isinstance(item, str)
    )


def remove(work: sqlite3.Connection, item: str) -> str | None:
    """Forget that an item was seen; return its title, if it was."""
    row = work.execute("SELECT title FROM history WHERE item = ?", (item,)).fetchone()
    work.execute("DELETE FROM history WHERE item = ?", (item,))
    return str(row[0]) if row else None


def erase(work: sqlite3.Connection) -> None:
    """Forget the whole history, and what past lists kept of it. The ledger stays."""
    work.execute("DELETE FROM history")
    work.execute("DELETE FROM unmatched")
    work.execute("UPDATE releases SET basis = '[]', openly = '[]'")


def import_list(
    work: sqlite3.Connection, catalogue: PublicCatalogue, titles: Iterable[str], *, now: str
) -> ImportResult:
    """Add the items of a person's own list; its other titles are kept for another catalogue."""
    index = catalogue.title_index
    found = {title: index.find(title) for title in titles}
    work.executemany(
        "INSERT INTO unmatched VALUES (?, ?) ON CONFLICT DO NOTHING",
        ((title, now) for title, item in found.items() if isinstance(item, NoMatch)),
    )
    return _import(work, catalogue, found.items(), source="list", now=now)


def import_pages(
    work: sqlite3.Connection, catalogue: PublicCatalogue, titles: Iterable[str], *, now: str
) -> ImportResult:
    """Add the items that a browser's page titles name; nothing else of them is kept."""
    index = catalogue.title_index
    found = ((title, index.find_page(title)) for title in titles)
    return _import(work, catalogue, found, source="browser", now=now)


def rematch(work: sqlite3.Connection, catalogue: PublicCatalogue, *, now: str) -> int:
    """Look kept titles up in a newer catalogue; return how many items that added."""
    index = catalogue.title_index
    added = 0
    for title in unmatched(work):
        found = index.find(title)
        if isinstance(found, str):
            added += add(work, catalogue, found, source="list", now=now)
            work.execute("DELETE FROM unmatched WHERE title = ?", (title,))
    return added


def _import(
    work: sqlite3.Connection,
    catalogue: PublicCatalogue,
    looked_up: Iterable[tuple[str, str | NoMatch]],
    *,
    source: str,
    now: str,
) -> ImportResult:
    read = added = unknown = ambiguous = 0
    items: set[str] = set()
    examples: list[str] = []
    for title, found in looked_up:
        read += 1
        if isinstance(found, str):
            if found not in items:
                items.add(found)
                added += add(work, catalogue, found, source=source, now=now)
            continue
        unknown += found is NoMatch.UNKNOWN
        ambiguous += found is NoMatch.AMBIGUOUS
        # Of a browser's pages only those are shown that nearly named an item.
        if len(examples) < SHOWN_EXAMPLES and (source == "list" or found is NoMatch.AMBIGUOUS):
            examples.append(title)
    return ImportResult(read, added, len(items) - added, unknown, ambiguous, tuple(examples))
