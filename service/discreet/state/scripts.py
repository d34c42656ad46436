"""The Lua scripts, read from `lua/*.lua` once, and how a call of one is written."""

import hashlib
from collections.abc import Sequence
from importlib import resources

from discreet.state.client import Word


class Script:
    """One script, called by its digest. `functions` names the file of functions that it uses."""

    def __init__(self, name: str, functions: str | None = None) -> None:
        self.name = name
        files = [name] if functions is None else [functions, name]
        folder = resources.files("discreet.state") / "lua"
        self.source = b"\n".join([(folder / f"{file}.lua").read_bytes() for file in files])
        # SHA-1 is how EVALSHA names a script; nothing is secured by it.
        self.digest = hashlib.sha1(self.source, usedforsecurity=False).hexdigest().encode()

    def call(self, keys: Sequence[bytes], *arguments: Word) -> tuple[Word, ...]:
        """Return the words of the command that runs the script on these keys."""
        return (b"EVALSHA", self.digest, len(keys), *keys, *arguments)


SPEND = Script("spend", "ledger")
FORGET_MARKERS = Script("forget_markers")
LEARN = Script("learn", "ledger")
FREEZE = Script("freeze")
FROZEN = Script("frozen")
DISCARD = Script("discard", "directory")
FORGET_OWN = Script("forget_own")
ERASE_SUMS = Script("erase_sums", "directory")
CLAIM_EVENT = Script("claim_event")
ANSWER_EVENT = Script("answer_event")
SCHEMA = Script("schema")
PUT_DOCUMENT = Script("put_document")
REMOVE_DOCUMENT = Script("remove_document")
REGISTRY = Script("registry")
SECRET = Script("secret")
SAVE_BLOB = Script("save_blob")
WRITE_PAGE = Script("write_page")
APPEND_PAGE = Script("append_page")
ENROL = Script("enrol")
HOLD = Script("hold")
LET_GO = Script("let_go")

ALL = tuple(each for each in list(globals().values()) if isinstance(each, Script))
