"""Beginning a namespace, looking after it, and accepting one that lost something; see `fence`."""

import logging
import math
import time
from collections.abc import Awaitable, Sequence
from typing import Any

from discreet.errors import StoreEmpty, StoreFenced, StoreUnavailable, StoreUnsuitable
from discreet.state import replies, scripts
from discreet.state.client import StoreCommand
from discreet.state.fence import (
    EMPTIED,
    FIELDS,
    StoreIdentity,
    new_identity,
    pack_fence,
    read_identity,
    unpack_fence,
)
from discreet.state.redis_commands import PendingAnswer, RedisCommands
from discreet.state.stores import SCHEMA, SHARDS
from discreet.state.wire.handshake import ASK_FSYNC, durability_doubt

log = logging.getLogger(__name__)

_NOTHING = -1
"""The schema of a namespace that holds nothing."""
_BEFORE_FENCES = 4
"""Commands of a ping that come before those about fences."""
_SAY_SECONDS = 600.0
"""How often it is said that a crash may cost debits, while it lasts."""


class RedisFence(RedisCommands):
    """The part of `RedisStore` that knows whether the store is what it was."""

    _beats = 0
    _sound = False
    _evicted: int | None = None
    _hides_fsync = False
    _said = "", -math.inf
    """What was said last about durability, and when."""
    _offset = 0.0
    """The store's clock less our own steady one."""

    async def _begin(self, *, init: bool) -> None:
        """Learn the store's identity and where its shards stand, or raise why it is not used."""
        asked = _steady()
        told = await self._ask(replies.whole, self._keys.identity, (b"TIME",))
        self._offset = _seconds(told) - asked
        record = await self._identity(init=init)
        if not record.begun:
            await self._fence_shards(record.identity, [0] * SHARDS, replace=False)
            log.warning(
                "this store was empty; its namespace %r is used from now on", self._keys.namespace
            )
        expected, fences = self._fence.expected(), await self._fences()
        marks = self._fence.marks
        if marks.identity is None:
            marks.identity = record.identity  # the first that we meet is the one we go on with
        fault = self._fence.fault(record, dict(enumerate(fences)), expected)
        if fault is not None:
            raise self._fence.trip(fault)
        found = [unpack_fence(each) for each in fences]
        marks.adopt(record.identity, [each[1] for each in found if each is not None])

    async def _identity(self, *, init: bool) -> StoreIdentity:
        keys = self._keys
        names = (keys.schema, keys.documents, keys.epoch, keys.secrets, keys.identity)
        known = self._fence.marks.identity is not None  # then it was there, and is not begun again
        call = scripts.BEGIN.call(names, SCHEMA, new_identity(), int(init and not known))
        schema, *record = await self._ask(replies.whole, keys.schema, call)
        try:
            found = int(schema)
        except ValueError:
            raise StoreUnavailable("the store holds something that cannot be read") from None
        if found == SCHEMA:
            return read_identity(record)
        where = f"the namespace {keys.namespace!r} of the store"
        if found == _NOTHING:
            if known:
                raise self._fence.trip(EMPTIED)
            raise StoreEmpty(
                f"{where} is empty: if that is right, because nothing was ever answered from it, "
                "begin it with --init or `discreet store init`; if not, bring the store back"
            )
        written = f"of schema {found}" if found else "written before stores had a schema version"
        raise StoreUnsuitable(
            f"{where} holds data {written}, and this server reads schema {SCHEMA}: use a server of "
            "that version, or another --namespace, or an empty store"
        )

    async def _fences(self) -> list[bytes | None]:
        keys = [self._keys.fence(shard) for shard in range(SHARDS)]
        commands = [StoreCommand(key, (b"GET", key)) for key in keys]
        return list(await self._ask_all(replies.whole, commands))

    async def _fence_shards(self, identity: bytes, writes: Sequence[int], *, replace: bool) -> None:
        """Give every shard its fence; only then is the namespace said to be begun."""
        commands = []
        for shard, count in enumerate(writes):
            key = self._keys.fence(shard)
            words = (b"SET", key, pack_fence(identity, count))
            commands.append(StoreCommand(key, words if replace else (*words, b"NX")))
        await self._ask_all(replies.nothing, commands)
        key = self._keys.identity
        await self._ask(replies.nothing, key, (b"HSET", key, b"begun", b"1"))

    async def accept(self) -> StoreIdentity:
        """Take the store as it is, although it lost something: the operator's decision.

        It gets a new identity, which names the old one, and what this process carries, as accepted.
        Its numbers of writes do not fall behind what was seen. Whoever carries the old identity
        begins anew.
        """
        fence, key = self._fence, self._keys.identity
        carried = fence.marks.identity or b""
        seen = [fence.marks.seen(shard) for shard in range(SHARDS)]
        fence.marks.identity = None
        await self._client.open()
        record = await self._identity(init=True)
        found = [unpack_fence(each) for each in await self._fences()]
        writes = [
            max(count, each[1] if each else 0) for count, each in zip(seen, found, strict=True)
        ]
        identity = new_identity()
        accepted = record.accepted + record.identity + carried
        words = (b"HSET", key, b"identity", identity, b"accepted", accepted, b"begun", b"")
        await self._ask(replies.nothing, key, words)
        await self._ask(replies.nothing, key, (b"HDEL", key, b"broken", b"secrets"))
        await self._fence_shards(identity, writes, replace=True)
        fence.marks.adopt(identity, writes)
        return StoreIdentity(identity, accepted)

    def clock(self) -> float:
        """Return the store's time, looked up every second: workers' own clocks may disagree."""
        return _steady() + self._offset

    def superseded(self) -> bool:
        """Tell whether it is time to begin anew: the operator accepted a store in place of the one
        that we refused, or brought the right one back."""
        return self._fence.accepted or self._sound

    def ping(self) -> Awaitable[None]:
        """Write to the store and look at its fences; raise why it cannot be used.

        One shard is written to in turn, so that every member of a cluster is tried.
        """
        fence, keys = self._fence, self._keys
        if fence.marks.identity is None:
            raise StoreUnavailable("the store is not open")
        fence.marks.assert_own()
        shard = self._beats % SHARDS
        self._beats += 1
        at, fences = keys.fence(shard), [keys.fence(each) for each in range(SHARDS)]
        expected = fence.expected()
        commands = [
            StoreCommand(at, scripts.BEAT.call((at,), fence.carried((shard,)))),
            StoreCommand(at, (b"INFO", b"everything")),
            StoreCommand(keys.identity, (b"TIME",)),
            StoreCommand(keys.identity, (b"HMGET", keys.identity, *FIELDS)),
            *(StoreCommand(key, (b"GET", key)) for key in fences),
        ]
        if not self._hides_fsync:
            commands.append(StoreCommand(at, ASK_FSYNC))
        asked, sent = _steady(), self._client.send(commands)
        return PendingAnswer(sent, lambda found: self._beaten(asked, expected, found))

    def _beaten(self, asked: float, expected: Sequence[int], found: Sequence[Any]) -> None:
        fence = self._fence
        fsync = None if self._hides_fsync else found[-1]
        found = found[: _BEFORE_FENCES + SHARDS]
        _, info, moment, told, *fences = found
        self._sound = False
        if not isinstance(moment, Exception):
            self._offset = _seconds(moment) - asked
        if not isinstance(told, Exception):
            # Without the shards, of which some may not answer: this is what others have to say.
            fault = fence.fault(read_identity(told), {}, expected)
            if fault is not None:
                raise fence.trip(fault)
        for each in found:
            if isinstance(each, StoreFenced):
                raise self._tripped(each)
            if isinstance(each, Exception):
                raise each
        fault = fence.fault(None, dict(enumerate(fences)), expected)
        if fault is not None:
            raise self._break(fault)
        for shard, stored in enumerate(fences):
            read = unpack_fence(stored)
            assert read is not None
            fence.marks.note(shard, read[1])
        self._look_at(info, fsync)
        self._sound = fence.reason is not None
        fence.require_open()

    def _look_at(self, info: bytes, fsync: Any) -> None:
        """Raise if the store may evict ledgers by now, and for good if it has; say if a crash may
        cost debits by now."""
        facts = dict(
            line.split(":", 1)
            for line in info.decode("utf-8", "replace").splitlines()
            if line.startswith(("maxmemory_policy:", "evicted_keys:", "aof_enabled:"))
        )
        self._hides_fsync = self._hides_fsync or isinstance(fsync, Exception)
        fsync = None if self._hides_fsync else fsync
        doubt = durability_doubt(appends=facts.get("aof_enabled") == "1", fsync=fsync)
        said, moment = self._said
        if doubt is not None and (doubt != said or _steady() - moment >= _SAY_SECONDS):
            self._said = doubt, _steady()
            log.warning("%s", doubt)
        evicted = int(facts.get("evicted_keys", 0))
        if self._evicted is not None and evicted > self._evicted:
            raise self._break(
                "the store evicted keys, and nobody knows whether ledgers were among them"
            )
        self._evicted = evicted
        policy = facts.get("maxmemory_policy", "unknown")
        self._fence.doubt = None
        if policy != "noeviction":
            self._fence.doubt = (
                f"the store's maxmemory-policy has become {policy}, so it may evict ledgers; run "
                "CONFIG SET maxmemory-policy noeviction"
            )


_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def _steady() -> float:
    """Return seconds on a clock that nobody sets, and that goes on while the machine sleeps."""
    return time.clock_gettime(_BOOT_CLOCK)


def _seconds(reply: Sequence[bytes]) -> float:
    """Read what TIME returns."""
    return int(reply[0]) + int(reply[1]) / 1e6
