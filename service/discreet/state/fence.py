"""Noticing a store that was emptied, went back in time, or is another one: nothing is released.

A store has an *identity*, made when its namespace was begun, and each shard counts its debits and
claims. Workers carry the identity and the largest numbers they were told (`marks`) and compare:

    on every connection    before it is used for anything (`examine`)
    in debits and claims   in the script itself, before it looks at a ledger (`fenced_begin.lua`)
    in what else begins    in the script itself, by the identity alone (`known.lua`); in a cluster
    something              only for what lies beside the identity
    every second           by a write to the store (`RedisStore.ping`)

Whoever finds a difference says so in the store (`broken`), so that workers which know less stop as
well, and refuses everything from then on. The way out is the operator's: to bring the right store
back, or to accept this one (`accept`), which gives it a new identity that names the old one as
accepted; then workers begin anew.
"""

import logging
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from discreet.errors import StoreFenced, StoreUnavailable
from discreet.state import scripts
from discreet.state.keys import StoreKeys
from discreet.state.marks import IDENTITY_BYTES, HighWaterMarks
from discreet.state.stores import SHARDS
from discreet.state.wire.connection import CommandRefused, PipelinedConnection

log = logging.getLogger(__name__)

_COUNT = struct.Struct(">q")
FENCE_BYTES = IDENTITY_BYTES + _COUNT.size
_ELSEWHERE = frozenset({"MOVED", "ASK", "CLUSTERDOWN", "TRYAGAIN"})
"""What a member of a cluster says about keys of another one."""
REMEDY = (
    "; nothing is answered. Bring back the store as it was, or, if that is lost, run `discreet "
    "store accept` after reading what that means for budgets (docs/operations.md)"
)
EMPTIED = "the store is empty, and we answered from one that was not: it was emptied or replaced"
OTHER = "the store is not the one that we answered from: its identity is another"
OLDER = "the store went back in time: it has forgotten debits or feedback that it acknowledged"
MEANINGS = {"emptied": EMPTIED, "other": OTHER, "older": OLDER}
ACCEPTED = "the operator accepted this store; workers begin anew"


class StoreIdentity(NamedTuple):
    """What a namespace says of itself; every part is empty where it says nothing."""

    identity: bytes = b""
    accepted: bytes = b""
    """Identities that the operator let this one follow, one after another."""
    broken: bytes = b""
    """Why somebody stopped using the store."""
    begun: bytes = b""
    """Whether every shard has its fence."""

    def follows(self, identity: bytes) -> bool:
        """Tell whether the operator accepted this store in place of that one."""
        size = IDENTITY_BYTES
        return any(
            self.accepted[start : start + size] == identity
            for start in range(0, len(self.accepted), size)
        )


FIELDS = tuple(name.encode() for name in StoreIdentity._fields)


def new_identity() -> bytes:
    """Return an identity that no other store has."""
    return os.urandom(IDENTITY_BYTES)


def pack_fence(identity: bytes, writes: int) -> bytes:
    """Return a fence as it is stored."""
    return identity + _COUNT.pack(writes)


def unpack_fence(stored: bytes | None) -> tuple[bytes, int] | None:
    """Return identity and number of writes, or None if there is no fence that can be read."""
    if stored is None or len(stored) != FENCE_BYTES:
        return None
    return stored[:IDENTITY_BYTES], _COUNT.unpack(stored[IDENTITY_BYTES:])[0]


class StoreFence:
    """What this worker knows about its store, and whether it may be used.

    `lost_writes` is how many writes of a shard a failover may lose without being refused.
    """

    def __init__(
        self, keys: StoreKeys, marks: HighWaterMarks | None = None, *, lost_writes: int = 0
    ) -> None:
        self._keys = keys
        self.marks = marks or HighWaterMarks()
        self._lost_writes = lost_writes
        self.reason: str | None = None
        """Why the store is not used, for good; None while it is."""
        self.doubt: str | None = None
        """Why the store is not used at the moment: it may lose something."""
        self.accepted = False
        """Whether the operator has accepted a store in place of ours: time to begin anew."""

    def require_open(self) -> None:
        """Raise `StoreFenced` if the store must not be used, `StoreUnavailable` if not now."""
        if self.reason is not None:
            raise StoreFenced(self.reason)
        if self.doubt is not None:
            raise StoreUnavailable(self.doubt)

    def begin_anew(self) -> None:
        """Forget what was carried: the operator accepted a store in its place."""
        self.marks.identity = None
        self.accepted = False
        self.reason = None

    def trip(self, reason: str) -> StoreFenced:
        """Use the store no more; return the error to raise."""
        if self.reason is None:
            self.reason = reason if self.accepted else reason + REMEDY
            log.error("%s", self.reason)
        return StoreFenced(self.reason)

    def carried(self, shards: Iterable[int]) -> bytes:
        """Return what a script compares the fences of shards with."""
        identity = self.marks.identity
        assert identity is not None, "the store is open"
        return b"".join([pack_fence(identity, self._least(shard)) for shard in shards])

    def _least(self, shard: int) -> int:
        return max(0, self.marks.seen(shard) - self._lost_writes)

    def expected(self) -> list[int]:
        """Return the fewest writes that each shard may say it took when it is asked after this."""
        return [self._least(shard) for shard in range(SHARDS)]

    def fault(
        self,
        record: StoreIdentity | None,
        fences: Mapping[int, bytes | None],
        expected: Sequence[int],
    ) -> str | None:
        """Return why a store that says this must not be used, or None if it may be.

        `record` None and shards that are missing are on another member of the cluster. `expected`
        is from before the store was asked: other workers raise the marks all the time.
        """
        ours = self.marks.identity
        if ours is None:
            return None
        if record is not None:
            if not record.identity:
                return EMPTIED
            if record.identity != ours:
                self.accepted = self.accepted or record.follows(ours)
                return ACCEPTED if self.accepted else OTHER
            if record.broken:
                return record.broken.decode(errors="replace")
        for shard, stored in fences.items():
            found = unpack_fence(stored)
            if found is None:
                return EMPTIED
            if found[0] != ours:
                return OTHER
            if found[1] < expected[shard]:
                return f"{OLDER} (at least {expected[shard] - found[1]} of them)"
        return None

    async def examine(self, connection: PipelinedConnection) -> None:
        """Raise `StoreFenced` unless the server behind a new connection lost nothing."""
        if self.marks.identity is None:
            return
        expected = self.expected()
        keys = [self._keys.fence(shard) for shard in range(SHARDS)]
        told, *found = await connection.ask_each(
            (b"HMGET", self._keys.identity, *FIELDS), *((b"GET", key) for key in keys)
        )
        record = None if _elsewhere(told) else read_identity(told)
        fences = {shard: each for shard, each in enumerate(found) if not _elsewhere(each)}
        fault = self.fault(record, fences, expected)
        if fault is None:
            return
        if record is not None and record.identity and not record.broken and not self.accepted:
            # Others may know less than we do: let them find it. An empty store stays empty.
            script = scripts.MARK_BROKEN
            call = script.call((self._keys.identity,), fault.encode(), self.marks.identity)
            await connection.ask_each((b"SCRIPT", b"LOAD", script.source), call)
        raise StoreFenced(fault if self.accepted else fault + REMEDY)


def _elsewhere(reply: Any) -> bool:
    if isinstance(reply, CommandRefused):
        if reply.code in _ELSEWHERE:
            return True
        raise StoreUnavailable(str(reply))
    if isinstance(reply, Exception):
        raise reply
    return False


def read_identity(reply: Sequence[bytes | None]) -> StoreIdentity:
    """Read the fields of the record."""
    return StoreIdentity(*(each or b"" for each in reply))
