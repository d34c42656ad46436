"""Reading a history that somebody already has: a list (CSV), or a browser's own history file.

A file is somebody else's data in somebody else's format, so everything about it may be wrong:
what cannot be read is refused with a reason, and nothing that was kept before changes. From a
browser's file only page titles are read, and only those that name an item of the catalogue are
kept; the rest of where a person has been is none of the hub's business.
"""

import csv
import io
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from discreet.hub.errors import HubRefusal

MOST_BYTES = 1 << 30
MOST_LIST_BYTES = 32 << 20
MOST_ROWS = 200_000
LONGEST_TITLE = 500
TITLE_COLUMNS = ("title", "name", "item", "film", "movie", "book", "id")

_SQLITE = b"SQLite format 3\x00"
_BROWSERS = (("urls", "title", "Chrome or Chromium"), ("moz_places", "title", "Firefox"))
_MOST_STEPS = 200_000_000
"""Virtual-machine steps of SQLite: about ten seconds, far more than a plain scan of a table."""


def is_browser_history(path: Path) -> bool:
    """Tell a browser's SQLite file from a list, by its first bytes."""
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def list_titles(path: Path) -> list[str]:
    """Return the titles of a CSV list: of the column that says so, else of the first one."""
    if path.stat().st_size > MOST_LIST_BYTES:
        raise HubRefusal("The list is larger than 32 MB. Is it the right file?")
    text = _decode(path.read_bytes())
    if not text.strip():
        raise HubRefusal("The file is empty.")
    try:
        rows = [row for row in csv.reader(io.StringIO(text), _dialect(text)) if any(row)]
    except csv.Error as error:
        raise HubRefusal(f"The file cannot be read as a list of titles ({error}).") from error
    if len(rows) > MOST_ROWS:
        raise HubRefusal(f"The list has more than {MOST_ROWS:,} lines. Is it the right file?")
    column, first = _title_column(rows[0])
    titles = (row[column].strip() for row in rows[first:] if len(row) > column)
    found = list(dict.fromkeys(title for title in titles if 0 < len(title) <= LONGEST_TITLE))
    if not found:
        raise HubRefusal("There is no title in the list: nothing below its first line.")
    return found


def _decode(data: bytes) -> str:
    if b"\x00" in data[:4096] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise HubRefusal("This is not a list of titles: the file is not text.")
    codecs = ("utf-16",) if data.startswith((b"\xff\xfe", b"\xfe\xff")) else ("utf-8-sig", "cp1252")
    for codec in codecs:
        try:
            return data.decode(codec)
        except UnicodeDecodeError:
            continue
    raise HubRefusal("The letters of the file cannot be read. Save it as UTF-8 and try again.")


def _dialect(text: str) -> type[csv.Dialect]:
    """Find the separator by the first line alone: titles contain commas, headings do not."""

    class Found(csv.excel):
        strict = True
        delimiter = max(",;\t", key=text.lstrip().split("\n", 1)[0].count)

    return Found


def _title_column(heading: list[str]) -> tuple[int, int]:
    """Return the column that holds titles, and the first row that is one."""
    names = [cell.strip().casefold() for cell in heading]
    for wanted in TITLE_COLUMNS:
        if wanted in names:
            return names.index(wanted), 1
    return 0, 0


def page_titles(path: Path) -> Iterator[str]:
    """Yield the page titles of a Chrome `History` or a Firefox `places.sqlite`, each once."""
    try:
        yield from _page_titles(path)
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            raise HubRefusal("Reading the browser's file took too long and was stopped.") from error
        raise HubRefusal(_damaged(error)) from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise HubRefusal(_damaged(error)) from error


def _damaged(error: Exception) -> str:
    return (
        f"The browser's history file cannot be read ({error}). Close the browser, copy the file "
        "and choose the copy."
    )


def _page_titles(path: Path) -> Iterator[str]:
    # Immutable: the file is our private copy, and its write-ahead log stayed with the browser.
    source = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        # A file may have been made to do harm: nothing in its schema is run, and nothing for long.
        source.execute("PRAGMA trusted_schema = OFF")
        source.set_progress_handler(lambda: 1, _MOST_STEPS)
        tables = {
            name for (name,) in source.execute("SELECT name FROM sqlite_master WHERE type='table'")
        }
        for table, column, _ in _BROWSERS:
            if table in tables:
                # Both names are ours, from the tuple above.
                query = (
                    f"SELECT DISTINCT {column} FROM {table} "  # noqa: S608
                    f"WHERE length({column}) BETWEEN 1 AND {LONGEST_TITLE}"
                )
                for (title,) in source.execute(query):
                    if isinstance(title, str):
                        yield title
                return
        raise HubRefusal(
            "This is a database, but not a browser's history. Choose Chrome's file named "
            "“History” or Firefox's “places.sqlite”."
        )
    finally:
        source.close()
