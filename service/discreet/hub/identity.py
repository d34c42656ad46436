"""The id under which the server knows this device: random, made here, replaceable.

Nothing about the device or its owner goes into it. A server may still connect an old id with a new
one, by the network address or by what is sent, which is why the ledger goes on.
"""

import secrets
import sqlite3

from discreet.hub.database import get_value, set_value


def bind(work: sqlite3.Connection, client: str) -> None:
    """Use the id that this device's key is bound to."""
    if get_value(work, "client") != client:
        set_value(work, "client", client)


def client(work: sqlite3.Connection) -> str:
    """Return the id, made up on first use."""
    kept = get_value(work, "client")
    return str(kept) if kept else replace(work)


def was_used(work: sqlite3.Connection) -> bool:
    """Tell whether the server may have something under the id that is used now."""
    return bool(get_value(work, "used_client") == client(work))


def mark_used(work: sqlite3.Connection) -> None:
    """Remember, before anything is sent, that it will be: the answer may be lost."""
    set_value(work, "used_client", client(work))


def replace(work: sqlite3.Connection) -> str:
    """Make up another id."""
    made = f"hub-{secrets.token_hex(16)}"
    set_value(work, "client", made)
    return made
