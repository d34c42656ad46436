"""The database is private, durable in its rules, and says when it is something else."""

import json
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from discreet.errors import InvalidArgument
from discreet.hub import database as module
from discreet.hub.database import Database, get_shared, get_value, set_shared, set_value
from discreet.hub.errors import HubRefusal
from tests.waiting import join


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    made = Database(tmp_path, "films")
    for path in (made.path, made.shared):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_values_survive_and_a_failure_keeps_nothing(tmp_path: Path) -> None:
    with Database(tmp_path, "x").transaction() as work:
        set_value(work, "limit", 1.5)
    again = Database(tmp_path, "x")

    def fail() -> None:
        with again.transaction() as work:
            set_value(work, "limit", 9.0)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with again.transaction() as work:
        assert get_value(work, "limit") == 1.5
        assert get_value(work, "nothing", "default") == "default"


@pytest.mark.parametrize("statement", ["DELETE FROM ledger", "UPDATE ledger SET nano_epsilon = 0"])
def test_the_ledger_only_grows(database: Database, statement: str) -> None:
    with database.transaction() as work:
        work.execute("INSERT INTO ledger VALUES (1, 'films', 'now', 5, 5, 0, '[]')")
    with pytest.raises(sqlite3.IntegrityError, match="only grows"), database.transaction() as work:
        work.execute(statement)
    with database.transaction() as work:
        assert work.execute("SELECT nano_epsilon FROM ledger").fetchall() == [(5,)]


def test_the_ledger_takes_integers_only(database: Database) -> None:
    with pytest.raises(sqlite3.IntegrityError), database.transaction() as work:
        work.execute("INSERT INTO ledger VALUES (1, 'films', 'now', 0.5, 5, 0, '[]')")


def test_commits_reach_the_disk_and_deletions_overwrite(database: Database) -> None:
    with database.transaction() as work:
        assert work.execute("PRAGMA synchronous").fetchone() == (3,)
        assert work.execute("PRAGMA secure_delete").fetchone() == (1,)
        work.execute("INSERT INTO history VALUES ('i', 'Whispering Marmalade', 'list', 'now')")
    assert b"Whispering Marmalade" in database.path.read_bytes()
    with database.transaction() as work:
        work.execute("DELETE FROM history")
    assert b"Whispering Marmalade" not in database.path.read_bytes()


def test_two_hubs_take_turns(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.05)
    with database.transaction():
        refused: list[Exception] = []

        def intrude() -> None:
            try:
                with database.transaction():
                    pass
            except HubRefusal as error:
                refused.append(error)

        other = threading.Thread(target=intrude, daemon=True)
        other.start()
        join(other)
    assert "Another hub" in str(refused[0])


def test_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "service-x.sqlite").write_text(json.dumps({"not": "a database"}) * 100)
    with pytest.raises(InvalidArgument, match="damaged or not the hub's"):
        Database(tmp_path, "x")
    for name in ("service-y.sqlite", "hub.sqlite"):
        for version in (1, 99):
            other = sqlite3.connect(tmp_path / name)
            other.execute(f"PRAGMA user_version = {version}")
            other.close()
            with pytest.raises(InvalidArgument, match="another version"):
                Database(tmp_path, "y")


@pytest.mark.parametrize("name", ["", "a/b", "../x", "a b", ".hidden", "x" * 65])
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidArgument, match="a service's name"):
        Database(tmp_path, name)


def test_both_files_are_written_or_neither(tmp_path: Path) -> None:
    films, books = Database(tmp_path, "films"), Database(tmp_path, "books")

    def fail() -> None:
        with films.transaction() as work:
            set_shared(work, "limit", 1.0)
            set_value(work, "client", "me")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with films.transaction() as work:
        assert (get_shared(work, "limit"), get_value(work, "client")) == (None, None)
        set_shared(work, "limit", 2.0)
        set_value(work, "client", "me")
    # What is shared is seen by the other service, and what is not is not.
    with books.transaction() as work:
        assert (get_shared(work, "limit"), get_value(work, "client")) == (2.0, None)
