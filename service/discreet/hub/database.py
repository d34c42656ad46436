"""The hub's own small database: SQLite files in the user's directory, readable by them alone.

One file is shared by all services, with the ledger of everything that was ever released; each
service has another one, with what only it is about. Both are written in one transaction, which
SQLite commits to both or to neither (`journal_mode=DELETE`; with a write-ahead log it would not).

Commits reach the disk before they return (`synchronous=EXTRA`), because a list is paid for by
the commit that stores it. Deleted rows are overwritten (`secure_delete`), because what a person
erases should be gone. Every unit of work opens the files anew: it is cheap, and nothing is shared
between threads.
"""

import json
import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discreet.errors import InvalidArgument
from discreet.hub.errors import HubRefusal
from discreet.hub.schema import SERVICE, SHARED, VERSION

BUSY_SECONDS = 15.0
SHARED_FILE = "hub.sqlite"
SERVICE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Database:
    """The files of one service, made on first use. Raises `InvalidArgument` if not ours."""

    def __init__(self, folder: Path, service: str = "recommendations") -> None:
        if not SERVICE_NAME.fullmatch(service):
            raise InvalidArgument("name", "a service's name has 1 to 64 letters, digits or _ . -")
        self.service = service
        self.shared = folder / SHARED_FILE
        self.path = folder / f"service-{service}.sqlite"
        for path in (self.shared, self.path):
            if not path.exists():
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        try:
            with self.transaction() as work:
                self._prepare(work, "shared", self.shared, SHARED)
                self._prepare(work, "main", self.path, SERVICE)
                set_value(work, "service", service)
        except sqlite3.DatabaseError as error:
            raise InvalidArgument(
                "--data", f"{folder} holds files that are damaged or not the hub's ({error})"
            ) from error

    def _prepare(
        self, work: sqlite3.Connection, schema: str, path: Path, statements: Sequence[str]
    ) -> None:
        (found,) = work.execute(f"PRAGMA {schema}.user_version").fetchone()
        if found not in (0, VERSION):
            raise InvalidArgument(
                "--data", f"{path} was made by another version of Discreet; give another directory"
            )
        if found == 0:
            for statement in statements:
                work.execute(statement)
            work.execute(f"PRAGMA {schema}.user_version = {VERSION}")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Give a connection that alone may write; everything is kept on leaving, or nothing."""
        work = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            work.execute("ATTACH DATABASE ? AS shared", (str(self.shared),))
            for schema in ("main", "shared"):
                for setting in ("synchronous = EXTRA", "secure_delete = ON"):
                    work.execute(f"PRAGMA {schema}.{setting}")
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
    """Return a single value of the service, or the default where none was kept."""
    return _get(work, "SELECT value FROM main.single_values WHERE name = ?", name, default)


def set_value(work: sqlite3.Connection, name: str, value: Any) -> None:
    """Keep a single value of the service."""
    _set(work, "INSERT OR REPLACE INTO main.single_values VALUES (?, ?)", name, value)


def get_shared(work: sqlite3.Connection, name: str, default: Any = None) -> Any:
    """Return a single value that all services share, or the default where none was kept."""
    return _get(work, "SELECT value FROM shared.single_values WHERE name = ?", name, default)


def set_shared(work: sqlite3.Connection, name: str, value: Any) -> None:
    """Keep a single value that all services share."""
    _set(work, "INSERT OR REPLACE INTO shared.single_values VALUES (?, ?)", name, value)


def _get(work: sqlite3.Connection, query: str, name: str, default: Any) -> Any:
    row = work.execute(query, (name,)).fetchone()
    return json.loads(row[0]) if row else default


def _set(work: sqlite3.Connection, statement: str, name: str, value: Any) -> None:
    work.execute(statement, (name, json.dumps(value)))
