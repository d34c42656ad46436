"""The Lua scripts, read from `lua/*.lua` once, and how a call of one is written."""

import hashlib
from collections.abc import Sequence
from importlib import resources

from discreet.state.client import Word


class LuaScript:
    """One script, called by its digest. `functions` names the file of functions that it uses.

    A `fenced` one runs only on a store that lost nothing (`lua/fenced_begin.lua`): its last key and
    argument are a shard's fence, and its reply ends with the fence's number of writes. A `known`
    one runs only on the store that the caller knows (`lua/known.lua`): its last argument is the
    store's identity, and its last key where that is.
    """

    def __init__(
        self,
        name: str,
        functions: str | None = None,
        *,
        fenced: bool = False,
        known: bool = False,
    ) -> None:
        self.name = name
        files = [name] if functions is None else [functions, name]
        if fenced:
            files = [*files[:-1], "fenced_begin", name, "fenced_end"]
        if known:
            files = ["known", *files]
        folder = resources.files("discreet.state") / "lua"
        self.source = b"\n".join([(folder / f"{file}.lua").read_bytes() for file in files])
        # SHA-1 is how EVALSHA names a script; nothing is secured by it.
        self.digest = hashlib.sha1(self.source, usedforsecurity=False).hexdigest().encode()

    def call(self, keys: Sequence[bytes], *arguments: Word) -> tuple[Word, ...]:
        """Return the words of the command that runs the script on these keys."""
        return (b"EVALSHA", self.digest, len(keys), *keys, *arguments)


SPEND = LuaScript("spend", "ledger", fenced=True)
FORGET_MARKERS = LuaScript("forget_markers")
FORGET_DAYS = LuaScript("forget_days")
LEARN = LuaScript("learn", "ledger", fenced=True)
DUE = LuaScript("due")
CLOSE_DECISIONS = LuaScript("close_decisions")
FORGET_OPEN = LuaScript("forget_open")
FREEZE = LuaScript("freeze", known=True)
FROZEN = LuaScript("frozen")
DISCARD = LuaScript("discard", "directory")
FOLD_OWN = LuaScript("fold_own")
FORGET_OWN = LuaScript("forget_own", known=True)
ERASE_SUMS = LuaScript("erase_sums", "directory")
CLAIM_EVENT = LuaScript("claim_event", known=True)
ANSWER_EVENT = LuaScript("answer_event")
FORGET_ANSWER = LuaScript("forget_answer")
BEGIN = LuaScript("begin")
BEAT = LuaScript("beat", fenced=True)
PUT_DOCUMENT = LuaScript("put_document", known=True)
REMOVE_DOCUMENT = LuaScript("remove_document")
REGISTRY = LuaScript("registry")
SECRET = LuaScript("secret", known=True)
SAVE_BLOB = LuaScript("save_blob", known=True)
STAMP_BLOB = LuaScript("stamp_blob", known=True)
WRITE_PAGE = LuaScript("write_page", known=True)
READ_PAGES = LuaScript("read_pages")
WRITE_PAGES = LuaScript("write_pages", known=True)
ENROL = LuaScript("enrol", known=True)
HOLD = LuaScript("hold", known=True)
LET_GO = LuaScript("let_go")
WRITE = LuaScript("write", known=True)
MARK_BROKEN = LuaScript("mark_broken")

ALL = tuple(each for each in list(globals().values()) if isinstance(each, LuaScript))
