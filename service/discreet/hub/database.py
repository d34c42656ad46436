"""The hub's own small database: one SQLite file in the user's directory, readable by them alone.

Commits reach the disk before they return (`synchronous=EXTRA`), because a list is paid for by
the commit that stores it. Deleted rows are overwritten (`secure_delete`), because what a person
erases should be gone. Every unit of work opens the file anew: it is cheap, and nothing is shared
between threads.
"""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discreet.errors import InvalidArgument
from discreet.hub.errors import HubRefusal
from discreet.hub.schema import STATEMENTS, VERSION

BUSY_SECONDS = 15.0


class Database:
    """The file, made on first use. Raises `InvalidArgument` if it is something else."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        try:
            with self.transaction() as work:
                self._prepare(work)
        except sqlite3.DatabaseError as error:
            raise InvalidArgument(
                "--data", f"{path} is not a database of the hub, or is damaged ({error})"
            ) from error

    def _prepare(self, work: sqlite3.Connection) -> None:
        (found,) = work.execute("PRAGMA user_version").fetchone()
        if found not in (0, VERSION):
            raise InvalidArgument(
                "--data",
                f"{self.path} was made by another version of Discreet; give another directory",
            )
        if found == 0:
            for statement in STATEMENTS:
                work.execute(statement)
            work.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Give a connection that alone may write; everything is kept on leaving, or nothing."""
        work = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            for setting in ("synchronous = EXTRA", "secure_delete = ON", "foreign_keys = ON"):
                work.execute(f"PRAGMA {setting}")
            try:
                work.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    raise
                raise HubRefusal(
                    "Another hub is using the same data directory just now. Try again."
                ) from error
            try:
                yield work
            except BaseException:
                work.execute("ROLLBACK")
                raise
            work.execute("COMMIT")
        finally:
            work.close()


def get_value(work: sqlite3.Connection, name: str, default: Any = None) -> Any:
    """Return a single value, or the default where none was kept."""
    row = work.execute("SELECT value FROM single_values WHERE name = ?", (name,)).fetchone()
    return json.loads(row[0]) if row else default


def set_value(work: sqlite3.Connection, name: str, value: Any) -> None:
    """Keep a single value."""
    work.execute(
        "INSERT INTO single_values VALUES (?, ?) "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, json.dumps(value)),
    )
