"""The Lua scripts, read from `lua/*.lua` once, and how a call of one is written."""

import hashlib
from collections.abc import Sequence
from importlib import resources

from hiredis import pack_command


class Script:
    """One script, called by its digest; a server that does not know it is sent the source."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.source = resources.files("discreet.state").joinpath("lua", f"{name}.lua").read_bytes()
        # SHA-1 is how EVALSHA names a script; nothing is secured by it.
        self.digest = hashlib.sha1(self.source, usedforsecurity=False).hexdigest().encode()
        self.load = packed(b"SCRIPT", b"LOAD", self.source)

    def call(self, keys: Sequence[bytes], *arguments: bytes | int) -> bytes:
        """Return the command that runs the script on these keys."""
        return packed(b"EVALSHA", self.digest, len(keys), *keys, *arguments)

    def calls(self, keys: Sequence[bytes], *arguments: bytes | int) -> list[bytes]:
        """Return the commands that run it on each of these keys alone, with the same arguments."""
        # All but the key is the same in each, so it is written once: ten times quicker.
        before = b"*%d\r\n" % (4 + len(arguments))
        before += b"$7\r\nEVALSHA\r\n$%d\r\n%b\r\n$1\r\n1\r\n" % (len(self.digest), self.digest)
        after = b"\r\n" + packed(*arguments).partition(b"\r\n")[2]
        return [b"%b$%d\r\n%b%b" % (before, len(key), key, after) for key in keys]


def getting(keys: Sequence[bytes]) -> list[bytes]:
    """Return the commands that get each of these keys."""
    return [b"*2\r\n$3\r\nGET\r\n$%d\r\n%b\r\n" % (len(key), key) for key in keys]


def packed(*command: bytes | int) -> bytes:
    """Return one command in the store's protocol."""
    wire: bytes = pack_command(command)  # type: ignore[arg-type]  # its stub forgot the "..."
    return wire


SPEND = Script("spend")
FORGET_MARKERS = Script("forget_markers")
LEARN = Script("learn")
CLAIM_EVENT = Script("claim_event")
ANSWER_EVENT = Script("answer_event")
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

ALL = (
    SPEND,
    FORGET_MARKERS,
    LEARN,
    CLAIM_EVENT,
    ANSWER_EVENT,
    PUT_DOCUMENT,
    REMOVE_DOCUMENT,
    REGISTRY,
    SECRET,
    SAVE_BLOB,
    WRITE_PAGE,
    APPEND_PAGE,
    ENROL,
    HOLD,
    LET_GO,
)
