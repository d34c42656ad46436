"""Ledgers, claims and sums on Redis or Valkey; see `redis_store`, which adds the rest.

Everything of a principal lies on one shard, so a debit and a record are one atomic step each; those
that are alike share a script call (`debits`, `records`). What concerns the sums of a whole
recommender is in `redis_releases`.
"""

from collections.abc import Awaitable, Sequence
from hashlib import sha1

from discreet.errors import DiscreetError
from discreet.state import checks, replies, scripts
from discreet.state.client import StoreCommand
from discreet.state.codec import (
    pack_vector,
    unpack_days,
    unpack_parts,
    unpack_vector,
)
from discreet.state.debits import debit_calls
from discreet.state.records import record_calls
from discreet.state.redis_commands import RedisCommands
from discreet.state.stores import (
    DaySpending,
    Debit,
    Debited,
    FeedbackRecord,
    Learned,
    Ledger,
    Vector,
    shard_of,
)


class RedisSums(RedisCommands):
    """The part of `stores.Store` that counts."""

    def spend(self, debits: Sequence[Debit]) -> Awaitable[Sequence[Debited | DiscreetError]]:
        calls = debit_calls(debits, self._keys, self._fence, one_server=self._client.one_server)
        return self._ask_fenced(replies.debited, calls)

    def ledgers(self, principals: Sequence[bytes]) -> Awaitable[Sequence[Ledger]]:
        keys = [self._keys.ledger(each) for each in checks.digests("principals", principals)]
        commands = [StoreCommand(key, (b"HMGET", key, b"l", b"w")) for key in keys]
        return self._ask_all(unpack_parts, commands)

    def days(self, principal: bytes) -> Awaitable[Sequence[DaySpending]]:
        ledger = self._keys.ledger(checks.digest("principal", principal))
        return self._ask(unpack_days, ledger, (b"HGETALL", ledger))

    def forget_days(self, principal: bytes) -> Awaitable[None]:
        ledger = self._keys.ledger(checks.digest("principal", principal))
        return self._ask(replies.nothing, ledger, scripts.FORGET_DAYS.call((ledger,)))

    def forget_markers(self, principal: bytes) -> Awaitable[Sequence[bytes]]:
        markers = self._keys.markers(checks.digest("principal", principal))
        # Not repeatable: the second time there would be none to return.
        return self._ask(
            replies.markers, markers, scripts.FORGET_MARKERS.call((markers,)), repeatable=False
        )

    def learn(
        self, records: Sequence[FeedbackRecord]
    ) -> Awaitable[Sequence[Learned | DiscreetError]]:
        calls = record_calls(records, self._keys, self._fence, one_server=self._client.one_server)
        return self._ask_fenced(replies.learned, calls)

    def own(self, *, generation: bytes, principals: Sequence[bytes]) -> Awaitable[Sequence[Vector]]:
        checks.digest("generation", generation)
        keys = [
            self._keys.own(shard_of(each), generation) + each
            for each in checks.digests("principals", principals)
        ]
        return self._ask_values(unpack_vector, keys)

    def fold_own(
        self, *, generation: bytes, principal: bytes, before: Vector, after: Vector
    ) -> Awaitable[bool]:
        checks.digest("generation", generation)
        own = self._keys.own(shard_of(checks.digest("principal", principal)), generation)
        begins = pack_vector(checks.folded(before))
        # SHA-1 is what a script can compute; nothing is secured by it.
        digest = sha1(begins, usedforsecurity=False).hexdigest().encode()
        becomes = pack_vector(checks.vector("after", after))
        call = scripts.FOLD_OWN.call((own + principal,), digest, len(begins), becomes)
        return self._ask(bool, own, call)

    def forget_own(self, *, generation: bytes, principal: bytes) -> Awaitable[bool]:
        checks.digest("generation", generation)
        shard = shard_of(checks.digest("principal", principal))
        own, erasures = self._keys.own(shard, generation), self._keys.erasures(shard, generation)
        # Not repeatable: the second time there would be none.
        call = self._known(scripts.FORGET_OWN, (own, own + principal, erasures), principal)
        return self._ask(bool, own, call, repeatable=False)
