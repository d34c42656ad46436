"""Ledgers, claims and sums on Redis or Valkey; see `redis_store`, which adds the rest.

Everything of a principal lies on one shard, so a debit and a record are one script call each. What
concerns the sums of a whole recommender is in `redis_releases`.
"""

from collections.abc import Awaitable, Sequence

from discreet.errors import DiscreetError
from discreet.state import checks, replies, scripts
from discreet.state.client import StoreCommand, Word
from discreet.state.codec import (
    pack_terms,
    unpack_days,
    unpack_parts,
    unpack_vector,
)
from discreet.state.debits import debit_calls
from discreet.state.keys import open_name
from discreet.state.redis_commands import FencedCall, RedisCommands
from discreet.state.stores import (
    NO_CHARGE,
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
        # Repeatable: the claim makes it so. A repetition answers DUPLICATE, not COUNTED.
        return self._ask_fenced(replies.learned, [self._record(each) for each in records])

    def _record(self, one: FeedbackRecord) -> FencedCall:
        checks.feedback_record(one)
        principal, generation, claim, reward, ttl, increments, charge, limit, window, purpose = one[
            :10
        ]
        shard = shard_of(principal)
        ledger = self._keys.ledger(principal)
        keys = [
            ledger,
            self._keys.claim(principal, claim),
            self._keys.counts(shard, generation),
            self._keys.sums(shard, generation),
            self._keys.own(shard, generation),
        ]
        additions: list[Word] = []
        if one.awaited:
            keys.append(self._keys.contents(shard, generation))
            names = open_name(principal, one.awaited), open_name(principal, claim)
            settled = b"-" if one.held is None else b"%d" % one.held
            additions += (*names, settled if one.settles else b"")
        keys.append(self._keys.fence(shard))
        terms = b"" if charge == NO_CHARGE else pack_terms(charge, limit)
        for block, amounts in increments.items():
            additions += (block, len(amounts))
            for pair in amounts:
                additions += pair
        additions.append(self._fence.carried((shard,)))
        fixed = (reward, ttl * 1000, principal, terms, window, purpose)
        call = scripts.LEARN.call(keys, *fixed, *additions)
        return FencedCall(StoreCommand(ledger, call), (shard,))

    def own(self, *, generation: bytes, principals: Sequence[bytes]) -> Awaitable[Sequence[Vector]]:
        checks.digest("generation", generation)
        keys = [
            self._keys.own(shard_of(each), generation) + each
            for each in checks.digests("principals", principals)
        ]
        return self._ask_all(unpack_vector, [StoreCommand(key, (b"GET", key)) for key in keys])

    def forget_own(self, *, generation: bytes, principal: bytes) -> Awaitable[bool]:
        checks.digest("generation", generation)
        own = self._keys.own(shard_of(checks.digest("principal", principal)), generation)
        # Not repeatable: the second time there would be none.
        call = scripts.FORGET_OWN.call((own, own + principal), principal)
        return self._ask(bool, own, call, repeatable=False)
