"""What the hub keeps, all of it on this device, statement by statement.

Two kinds of files: one that is shared by all services (`SHARED`: the ledger and its limit), and one
for each service (`SERVICE`). They are opened together, and written in one transaction.
"""

VERSION = 3

_SINGLE_VALUES = """CREATE TABLE {schema}single_values (
        name  TEXT PRIMARY KEY,
        value TEXT NOT NULL
    )"""

SHARED = (
    # Single values: the limit of the total. Each is JSON.
    _SINGLE_VALUES.format(schema="shared."),
    # What every list cost. `openly` is a JSON list: the categories that went into it unchanged.
    """CREATE TABLE shared.ledger (
        number       INTEGER PRIMARY KEY,
        service      TEXT NOT NULL,
        made         TEXT NOT NULL,
        nano_epsilon INTEGER NOT NULL CHECK (typeof(nano_epsilon) = 'integer'),
        nano_rho     INTEGER NOT NULL CHECK (typeof(nano_rho) = 'integer'),
        pico_delta   INTEGER NOT NULL CHECK (typeof(pico_delta) = 'integer'),
        openly       TEXT NOT NULL
    )""",
    """CREATE TRIGGER shared.ledger_keeps_rows BEFORE DELETE ON ledger
        BEGIN SELECT RAISE(ABORT, 'the ledger only grows'); END""",
    """CREATE TRIGGER shared.ledger_keeps_amounts BEFORE UPDATE ON ledger
        BEGIN SELECT RAISE(ABORT, 'the ledger only grows'); END""",
)

SERVICE = (
    # Single values, each JSON: the client's id at this service, the choices, an offered catalogue.
    _SINGLE_VALUES.format(schema="main."),
    # The public list of items, in the order of its source. Categories are a JSON list of names.
    """CREATE TABLE catalogue (
        position   INTEGER PRIMARY KEY,
        id         TEXT NOT NULL UNIQUE,
        title      TEXT NOT NULL,
        categories TEXT NOT NULL
    )""",
    # Categories that an item was ever offered under. Numbers are never used again.
    """CREATE TABLE pinned (
        number   INTEGER PRIMARY KEY AUTOINCREMENT,
        item     TEXT NOT NULL,
        title    TEXT NOT NULL,
        category TEXT NOT NULL,
        UNIQUE (item, title, category)
    )""",
    # PRIVATE: items seen. The title is kept beside the id so that it outlives the catalogue.
    """CREATE TABLE history (
        item   TEXT PRIMARY KEY,
        title  TEXT NOT NULL,
        source TEXT NOT NULL,
        added  TEXT NOT NULL
    )""",
    # PRIVATE: titles of imported lists that no item has, or not yet.
    """CREATE TABLE unmatched (
        title TEXT PRIMARY KEY,
        added TEXT NOT NULL
    )""",
    # The lists, under their numbers in the ledger. Each is stored before it is shown, and `items`
    # is exactly what is sent.
    # PRIVATE: `openly` (those of the items that are there because they were seen) and `basis` (the
    # history that the list was made from), both JSON lists of ids.
    """CREATE TABLE releases (
        number    INTEGER PRIMARY KEY,
        choices   TEXT NOT NULL,
        catalogue TEXT NOT NULL,
        items     TEXT NOT NULL,
        openly    TEXT NOT NULL,
        basis     TEXT NOT NULL,
        sent      TEXT,
        sent_as   TEXT
    )""",
)
