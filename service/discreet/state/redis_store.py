"""The store on Redis or Valkey: one typed method for each script or command.

A command costs one script call and no round trip of its own: what is issued in one turn of the
event loop travels together (see `wire`). What a reply means is written beside each command; what
cannot be read raises `StoreUnavailable`, because statistics or a ledger in doubt release nothing.

The store belongs to the event loop in which it was opened.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial

from discreet.errors import DiscreetError, InvalidArgument
from discreet.privacy.charges import Charge, Limit
from discreet.state import checks, replies, scripts
from discreet.state.codec import pack_amounts
from discreet.state.keys import DEFAULT_NAMESPACE, Keys
from discreet.state.redis_values import RedisValues
from discreet.state.scripts import getting, packed
from discreet.state.stores import Account, Event, Learned, Learning, Registry, Rows, Vector
from discreet.state.urls import parse

BATCH = 500
"""Cells erased at a time: small enough not to stall the store, large enough to get done."""


def open_store(
    url: str, *, namespace: str = DEFAULT_NAMESPACE, timeout: float = 2.0
) -> "RedisStore":
    """Return the store at `url` (see `urls`), not yet connected: that is `open()`.

    `timeout` is the longest that any command takes to answer or fail, in seconds.
    """
    if not 0.05 <= timeout <= 60:
        raise InvalidArgument("timeout", "must be 0.05 to 60 seconds")
    return RedisStore(parse(url), keys=Keys(namespace), timeout=timeout)


class RedisStore(RedisValues):
    """Every method of `stores.Store`, on a single server, behind Sentinels, or on a cluster."""

    def spend(
        self,
        *,
        principal: bytes,
        charge: Charge,
        limit: Limit,
        marker: bytes | None = None,
        marker_ttl: int = 86_400,
    ) -> Awaitable[Account]:
        ledger = self._keys.ledger(checks.digest("principal", principal))
        price = pack_amounts(charge)
        most = pack_amounts(limit)
        if marker is None:
            payload = scripts.SPEND.call((ledger,), price, most)
            return self._send(payload, ledger, replies.account, repeatable=False)
        payload = scripts.SPEND.call(
            (ledger, self._keys.markers(principal)),
            price,
            most,
            checks.digest("marker", marker) + price,
            checks.ttl("marker_ttl", marker_ttl) * 1000,
        )
        return self._send(payload, ledger, replies.account)

    def spend_each(
        self, *, principals: Sequence[bytes], charge: Charge, limit: Limit
    ) -> Awaitable[Sequence[Account | DiscreetError]]:
        key_of = self._keys.ledger
        ledgers = [key_of(each) for each in checks.digests("principals", principals)]
        payloads = scripts.SPEND.calls(ledgers, pack_amounts(charge), pack_amounts(limit))
        commands = list(zip(payloads, ledgers, strict=True))
        return self._send_each(commands, replies.accounts, repeatable=False)

    def balance(self, *, principal: bytes) -> Awaitable[Charge]:
        ledger = self._keys.ledger(checks.digest("principal", principal))
        return self._send(packed(b"GET", ledger), ledger, replies.charge)

    def forget_markers(self, *, principal: bytes) -> Awaitable[Sequence[bytes]]:
        markers = self._keys.markers(checks.digest("principal", principal))
        # Not repeatable: the second time there would be none to return.
        return self._send(
            scripts.FORGET_MARKERS.call((markers,)), markers, replies.markers, repeatable=False
        )

    def read(self, *, addresses: Sequence[bytes]) -> Awaitable[Sequence[Vector]]:
        cells = [self._keys.cell(checks.digest("addresses", each)) for each in addresses]
        if len(cells) == 1:
            return self._send(packed(b"GET", cells[0]), cells[0], replies.vectors)
        return self._send_all([(packed(b"GET", cell), cell) for cell in cells], replies.vector)

    def read_rows(self, *, addresses: Sequence[bytes], fields: int) -> Awaitable[Rows]:
        key_of = self._keys.cell
        cells = [key_of(each) for each in checks.digests("addresses", addresses)]
        commands = list(zip(getting(cells), cells, strict=True))
        return self._send_each(commands, partial(replies.rows, fields=checks.fields(fields)))

    def learn(
        self,
        *,
        address: bytes,
        increments: Sequence[tuple[int, int]],
        claim: bytes,
        reward: int,
        claim_ttl: int,
    ) -> Awaitable[Learned]:
        payload, cell = self._learn(Learning(address, increments, claim, reward, claim_ttl))
        # Repeatable: the claim makes it so. A repetition answers DUPLICATE, not COUNTED.
        return self._send(payload, cell, replies.learned)

    def learn_each(
        self, *, learnings: Sequence[Learning]
    ) -> Awaitable[Sequence[Learned | DiscreetError]]:
        return self._send_each([self._learn(each) for each in learnings], replies.learned_each)

    def _learn(self, one: Learning) -> tuple[bytes, bytes]:
        """Return the command and the key that it goes to."""
        address, increments, claim, reward, ttl = checks.learning(one)
        cell = self._keys.cell(address)
        additions: list[bytes | int] = []
        for field, amount in increments:
            additions += (b"INCRBY", b"i64", b"#%d" % field, amount)
        keys = (cell, self._keys.claim(address, claim))
        return scripts.LEARN.call(keys, reward, ttl * 1000, *additions), cell

    def index_cell(self, *, index: bytes, address: bytes, level: int) -> Awaitable[None]:
        key = self._keys.index(checks.digest("index", index))
        checks.digest("address", address)
        return self._send(packed(b"HSET", key, address, checks.level(level)), key, replies.nothing)

    def cells(self, *, index: bytes, most: int) -> Awaitable[Mapping[bytes, int]]:
        key = self._keys.index(checks.digest("index", index))
        payload = packed(b"HRANDFIELD", key, checks.most(most), b"WITHVALUES")
        return self._send(payload, key, replies.levels)

    def count_cells(self, *, index: bytes) -> Awaitable[int]:
        key = self._keys.index(checks.digest("index", index))
        return self._send(packed(b"HLEN", key), key, int)

    def remove_cells(self, *, index: bytes) -> Awaitable[int]:
        key = self._keys.index(checks.digest("index", index))
        return asyncio.ensure_future(self._remove_cells(key))

    async def _remove_cells(self, key: bytes) -> int:
        """Erase cell by cell, and forget each only once it is gone: a crash leaves none behind.

        The scan visits whatever was indexed before it began; what comes later stays.
        """
        removed = 0
        cursor = b"0"
        while True:
            scan = packed(b"HSCAN", key, cursor, b"COUNT", BATCH)
            cursor, entries = await self._send(scan, key, tuple)
            addresses = entries[::2]
            if addresses:
                cells = [self._keys.cell(address) for address in addresses]
                await self._send_all(
                    [(packed(b"UNLINK", cell), cell) for cell in cells], replies.nothing
                )
                removed += await self._send(packed(b"HDEL", key, *addresses), key, int)
            if cursor == b"0":
                return removed

    def claim_event(self, *, event: bytes, fingerprint: bytes, ttl: int) -> Awaitable[Event]:
        key = self._keys.event(checks.digest("event", event))
        payload = scripts.CLAIM_EVENT.call(
            (key,), checks.digest("fingerprint", fingerprint), checks.ttl("ttl", ttl) * 1000
        )
        return self._send(payload, key, replies.claimed_event)

    def answer_event(self, *, event: bytes, answer: bytes, ttl: int) -> Awaitable[bytes]:
        key = self._keys.event(checks.digest("event", event))
        payload = scripts.ANSWER_EVENT.call(
            (key,), checks.document("answer", answer), checks.ttl("ttl", ttl) * 1000
        )
        return self._send(payload, key, replies.answer)

    def find_event(self, *, event: bytes) -> Awaitable[Event | None]:
        key = self._keys.event(checks.digest("event", event))
        return self._send(packed(b"HMGET", key, b"f", b"a"), key, replies.event)

    def forget_event(self, *, event: bytes) -> Awaitable[None]:
        key = self._keys.event(checks.digest("event", event))
        return self._send(packed(b"UNLINK", key), key, replies.nothing)

    def post_letter(self, *, queue: bytes, letter: bytes, content: bytes) -> Awaitable[None]:
        key = self._keys.queue(checks.digest("queue", queue))
        checks.digest("letter", letter)
        payload = packed(b"HSET", key, letter, checks.document("content", content))
        return self._send(payload, key, replies.nothing)

    def letters(self, *, queue: bytes, most: int) -> Awaitable[Mapping[bytes, bytes]]:
        key = self._keys.queue(checks.digest("queue", queue))
        payload = packed(b"HRANDFIELD", key, checks.most(most), b"WITHVALUES")
        return self._send(payload, key, replies.letters)

    def discard_letter(self, *, queue: bytes, letter: bytes) -> Awaitable[None]:
        key = self._keys.queue(checks.digest("queue", queue))
        payload = packed(b"HDEL", key, checks.digest("letter", letter))
        return self._send(payload, key, replies.nothing)

    def count_letters(self, *, queue: bytes) -> Awaitable[int]:
        key = self._keys.queue(checks.digest("queue", queue))
        return self._send(packed(b"HLEN", key), key, int)

    def epoch(self) -> Awaitable[int]:
        return self._send(packed(b"GET", self._keys.epoch), self._keys.epoch, replies.count)

    def registry(self) -> Awaitable[Registry]:
        keys = (self._keys.documents, self._keys.epoch)
        return self._send(scripts.REGISTRY.call(keys), self._keys.epoch, replies.registry)

    def put_document(
        self, *, name: str, document: bytes, expected: bytes | None
    ) -> Awaitable[bool]:
        keys = (self._keys.documents, self._keys.epoch)
        arguments = [checks.name(name).encode(), checks.document("document", document)]
        if expected is not None:
            arguments.append(checks.document("expected", expected))
        payload = scripts.PUT_DOCUMENT.call(keys, *arguments)
        return self._send(payload, self._keys.epoch, bool, repeatable=False)

    def remove_document(self, *, name: str) -> Awaitable[bool]:
        keys = (self._keys.documents, self._keys.epoch)
        payload = scripts.REMOVE_DOCUMENT.call(keys, checks.name(name).encode())
        return self._send(payload, self._keys.epoch, bool, repeatable=False)

    def secret(self, *, name: str, proposal: bytes) -> Awaitable[bytes]:
        secrets = self._keys.secrets
        payload = scripts.SECRET.call(
            (secrets,), checks.name(name).encode(), checks.document("proposal", proposal)
        )
        return self._send(payload, secrets, bytes)

    def ping(self) -> Awaitable[None]:
        # An ordinary read of a key that everybody reads: it goes where commands go.
        return self._send(packed(b"EXISTS", self._keys.epoch), self._keys.epoch, replies.nothing)
