"""The store on Redis or Valkey: one typed method for each script or command.

A command costs one script call and no round trip of its own: what is issued in one turn of the
event loop travels together (see `client`). What a reply means is written in `replies`; what cannot
be read raises `StoreUnavailable`, because sums or a ledger in doubt release nothing.

The store belongs to the event loop in which it was opened.
"""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from discreet.errors import InvalidArgument, StoreFenced
from discreet.state import checks, replies, scripts
from discreet.state.client import StoreClient
from discreet.state.fence import EMPTIED, OLDER, StoreFence
from discreet.state.keys import DEFAULT_NAMESPACE, StoreKeys
from discreet.state.marks import HighWaterMarks
from discreet.state.redis_awaiting import RedisAwaiting
from discreet.state.redis_releases import RedisReleases
from discreet.state.redis_streams import RedisStreams
from discreet.state.redis_sums import RedisSums
from discreet.state.redis_values import RedisValues
from discreet.state.stores import Event, Registry
from discreet.state.urls import parse
from discreet.state.wire.sender import CommandSender

T = TypeVar("T")


def open_store(
    url: str,
    *,
    namespace: str = DEFAULT_NAMESPACE,
    timeout: float = 2.0,
    init: bool = True,
    marks: Path | None = None,
    lost_writes: int = 0,
) -> "RedisStore":
    """Return the store at `url` (see `urls`), not yet connected: that is `open()`.

    `timeout` is the longest that any command takes to answer or fail, in seconds. `init` says
    whether a namespace that holds nothing may be begun; `marks` is the file of the high-water mark,
    and `lost_writes` how many writes of a shard a failover may lose (see `fence`).
    """
    if not 0.05 <= timeout <= 60:
        raise InvalidArgument("timeout", "must be 0.05 to 60 seconds")
    sources = [script.source for script in scripts.ALL]
    keys = StoreKeys(namespace)
    fence = StoreFence(keys, HighWaterMarks(marks), lost_writes=lost_writes)
    sender = CommandSender(parse(url), scripts=sources, timeout=timeout, examine=fence.examine)
    return RedisStore(sender, keys, fence, init=init)


class RedisStore(RedisSums, RedisReleases, RedisAwaiting, RedisValues, RedisStreams):
    """Every method of `stores.Store`, over a client of a single server or of a cluster."""

    def __init__(
        self,
        client: StoreClient,
        keys: StoreKeys,
        fence: StoreFence | None = None,
        *,
        init: bool = True,
    ) -> None:
        super().__init__(client, keys, fence)
        self._init = init
        self._epoch = 0

    @property
    def fence(self) -> StoreFence:
        """What is known of the store, and whether it may be used."""
        return self._fence

    async def open(self) -> None:
        """Connect, load scripts, and refuse a store that would evict ledgers, is of another
        schema, is empty (unless it may be begun), or lost something."""
        try:
            await self._client.open()
        except StoreFenced:
            if not self._fence.accepted:
                raise
            # What we carry is from before the operator's decision; we begin with what stands now.
            self._fence.begin_anew()
            await self._client.open()
        try:
            await self._begin(init=self._init)
        except BaseException:
            await self._client.close()
            raise

    async def close(self) -> None:
        """Let go of every connection; whatever is outstanding raises `StoreUnavailable`."""
        self._fence.marks.close()
        await self._client.close()

    def claim_event(self, *, event: bytes, fingerprint: bytes, ttl: int) -> Awaitable[Event]:
        key = self._keys.event(checks.digest("event", event))
        checks.digest("fingerprint", fingerprint)
        call = self._known(scripts.CLAIM_EVENT, (key,), fingerprint, checks.ttl("ttl", ttl) * 1000)
        return self._ask(replies.claimed_event, key, call)

    def answer_event(self, *, event: bytes, answer: bytes, ttl: int) -> Awaitable[bytes]:
        key = self._keys.event(checks.digest("event", event))
        checks.document("answer", answer)
        call = scripts.ANSWER_EVENT.call((key,), answer, checks.ttl("ttl", ttl) * 1000)
        return self._ask(replies.answer, key, call)

    def find_event(self, *, event: bytes) -> Awaitable[Event | None]:
        key = self._keys.event(checks.digest("event", event))
        return self._ask(replies.event, key, (b"HMGET", key, b"f", b"a"))

    def forget_event(self, *, event: bytes) -> Awaitable[None]:
        key = self._keys.event(checks.digest("event", event))
        return self._ask(replies.nothing, key, (b"UNLINK", key))

    def forget_answer(self, *, event: bytes, answer: bytes) -> Awaitable[None]:
        key = self._keys.event(checks.digest("event", event))
        call = scripts.FORGET_ANSWER.call((key,), checks.document("answer", answer))
        return self._ask(replies.nothing, key, call)

    def put_message(self, *, queue: bytes, name: bytes, content: bytes) -> Awaitable[None]:
        key = self._keys.queue(checks.digest("queue", queue))
        checks.digest("name", name)
        words = self._written(key, b"HSET", key, name, checks.document("content", content))
        return self._ask(replies.nothing, key, words)

    def messages(self, *, queue: bytes, most: int) -> Awaitable[Mapping[bytes, bytes]]:
        key = self._keys.queue(checks.digest("queue", queue))
        words = (b"HRANDFIELD", key, checks.most(most), b"WITHVALUES")
        return self._ask(replies.pairs, key, words)

    def remove_message(self, *, queue: bytes, name: bytes) -> Awaitable[None]:
        key = self._keys.queue(checks.digest("queue", queue))
        return self._ask(replies.nothing, key, (b"HDEL", key, checks.digest("name", name)))

    def count_messages(self, *, queue: bytes) -> Awaitable[int]:
        key = self._keys.queue(checks.digest("queue", queue))
        return self._ask(int, key, (b"HLEN", key))

    def epoch(self) -> Awaitable[int]:
        read = self._not_before(replies.count, int)
        return self._ask(read, self._keys.epoch, (b"GET", self._keys.epoch))

    def registry(self) -> Awaitable[Registry]:
        keys = (self._keys.documents, self._keys.epoch)
        read = self._not_before(replies.registry, lambda found: found.epoch)
        return self._ask(read, self._keys.epoch, scripts.REGISTRY.call(keys))

    def _not_before(
        self, read: Callable[[Any], T], epoch: Callable[[T], int]
    ) -> Callable[[Any], T]:
        """Read a reply whose epoch is not less than what we knew when we asked: it only grows."""
        known = self._epoch

        def checked(reply: Any) -> T:
            found = read(reply)
            if epoch(found) < known:
                raise self._break(OLDER if epoch(found) else EMPTIED)
            self._epoch = max(self._epoch, epoch(found))
            return found

        return checked

    def put_document(
        self, *, name: str, document: bytes, expected: bytes | None
    ) -> Awaitable[bool]:
        keys = (self._keys.documents, self._keys.epoch)
        arguments = [checks.name(name).encode(), checks.document("document", document)]
        if expected is not None:
            arguments.append(checks.document("expected", expected))
        call = self._known(scripts.PUT_DOCUMENT, keys, *arguments, beside=True)
        return self._ask(bool, self._keys.epoch, call, repeatable=False)

    def remove_document(self, *, name: str, expected: bytes) -> Awaitable[bool]:
        keys = (self._keys.documents, self._keys.epoch)
        arguments = [checks.name(name).encode(), checks.document("expected", expected)]
        call = scripts.REMOVE_DOCUMENT.call(keys, *arguments)
        return self._ask(bool, self._keys.epoch, call, repeatable=False)

    def secret(self, *, name: str, proposal: bytes) -> Awaitable[bytes]:
        checks.document("proposal", proposal)
        words = (checks.name(name).encode(), proposal)
        call = self._known(scripts.SECRET, (self._keys.secrets,), *words, beside=True)
        return self._ask(bytes, self._keys.secrets, call)
