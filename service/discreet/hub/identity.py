"""The id under which the server knows this device: random, made here, replaceable.

Nothing about the device or its owner goes into it. A server may still connect an old id with a new
one, by the network address or by what is sent, which is why the ledger does not start anew.
"""

import secrets
import sqlite3

from discreet.hub.database import fact, keep_fact


def client(work: sqlite3.Connection) -> str:
    """Return the id, made up on first use."""
    kept = fact(work, "client")
    return str(kept) if kept else replace(work)


def may_be_known(work: sqlite3.Connection) -> bool:
    """Tell whether the server may have something under the id that is used now."""
    return bool(fact(work, "told") == client(work))


def note_told(work: sqlite3.Connection) -> None:
    """Remember, before anything is sent, that it will be: an answer that is lost hides nothing."""
    keep_fact(work, "told", client(work))


def replace(work: sqlite3.Connection) -> str:
    """Make up another id."""
    made = f"hub-{secrets.token_hex(16)}"
    keep_fact(work, "client", made)
    return made
