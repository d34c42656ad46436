"""The sums of a whole recommender on Redis or Valkey: set aside, added up, erased.

They lie on all shards, so every step asks each of them, in pieces. A server runs what comes in one
write before it looks at anybody else's commands: 64 scripts that move a thousand blocks each would
keep every debit waiting. So a few shards are asked at a time, as many as have few blocks together,
and whoever debits meanwhile comes in between. What is read is added up in a thread, beside which
the worker answers.

A step that was cut short is completed by the next attempt: each of them can be repeated.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import numpy as np

from discreet.errors import DiscreetError, StateOverflow
from discreet.state import checks, replies, scripts
from discreet.state.client import StoreCommand
from discreet.state.codec import unpack_vector
from discreet.state.keys import frozen_sums
from discreet.state.redis_commands import PendingAnswer, RedisCommands
from discreet.state.stores import SHARDS, Vector

BLOCKS_AT_ONCE = 500
"""Blocks that the scripts of one round trip move, read or erase: a millisecond or two."""
_BLOCK_BYTES = 4_096
"""A block that is longer counts as several."""


class RedisReleases(RedisCommands):
    """The part of `stores.Store` that concerns the sums of everybody."""

    def freeze(self, *, generation: bytes, number: int) -> Awaitable[None]:
        checks.digest("generation", generation)
        checks.number(number)

        def command(shard: int) -> StoreCommand:
            release = self._keys.release(shard, generation)
            frozen = self._keys.frozen(shard, generation)
            keys = (
                release,
                self._keys.sums(shard, generation),
                frozen_sums(frozen, number),
                frozen,
                self._keys.counts(shard, generation),
            )
            return StoreCommand(release, self._known(scripts.FREEZE, keys, number))

        async def moved(found: Sequence[int]) -> int:
            return max(found)

        return self._in_turns(command, moved)

    def frozen(self, *, generation: bytes, number: int) -> Awaitable[Mapping[bytes, Vector]]:
        checks.digest("generation", generation)
        checks.number(number)
        totals: dict[bytes, Vector] = {}

        def command(shard: int) -> StoreCommand:
            key = frozen_sums(self._keys.frozen(shard, generation), number)
            return StoreCommand(key, scripts.FROZEN.call((key,)))

        async def added(found: Sequence[Sequence[bytes]]) -> int:
            outcome = await asyncio.to_thread(
                replies.outcome, lambda some: _add_up(some, totals), found
            )
            if isinstance(outcome, DiscreetError):
                raise outcome
            return outcome

        asked = self._in_turns(command, added)

        async def all_added() -> Mapping[bytes, Vector]:
            await asked
            return {block: totals[block] for block in sorted(totals)}

        return all_added()

    def discard(self, *, generation: bytes, number: int) -> Awaitable[None]:
        checks.digest("generation", generation)
        checks.number(number)

        def command(shard: int, most: int) -> StoreCommand:
            frozen = self._keys.frozen(shard, generation)
            keys = (frozen_sums(frozen, number), frozen)
            return StoreCommand(frozen, scripts.DISCARD.call(keys, number, most))

        return self._until_all_are_done(command)

    def owners(self, *, generation: bytes) -> Awaitable[Sequence[bytes]]:
        checks.digest("generation", generation)
        keys = [self._keys.own(shard, generation) for shard in range(SHARDS)]
        commands = [StoreCommand(key, (b"SMEMBERS", key)) for key in keys]
        return PendingAnswer(self._ask_all(replies.whole, commands), _merged)

    def erase_sums(self, *, generation: bytes) -> Awaitable[None]:
        checks.digest("generation", generation)

        def command(shard: int, most: int) -> StoreCommand:
            keys = (
                self._keys.sums(shard, generation),
                self._keys.own(shard, generation),
                self._keys.frozen(shard, generation),
                self._keys.counts(shard, generation),
                self._keys.release(shard, generation),
                self._keys.open(shard, generation),
                self._keys.contents(shard, generation),
                self._keys.erasures(shard, generation),
            )
            return StoreCommand(keys[0], scripts.ERASE_SUMS.call(keys, most))

        return self._until_all_are_done(command)

    def _in_turns(
        self, command: Callable[[int], StoreCommand], take: Callable[[list[Any]], Awaitable[int]]
    ) -> Awaitable[None]:
        """Ask one shard, and then as many at once as would have few blocks together.

        `take` is given the answers of each turn, and tells the most blocks that a shard had.
        """
        first = self._ask_all(replies.whole, [command(0)])

        async def turns() -> None:
            asked, found = 1, await first
            while True:
                most = await take(found)
                if asked == SHARDS:
                    return
                end = min(SHARDS, asked + max(1, BLOCKS_AT_ONCE // max(1, most)))
                commands = [command(shard) for shard in range(asked, end)]
                asked, found = end, await self._ask_all(replies.whole, commands)

        return turns()

    def _until_all_are_done(self, command: Callable[[int, int], StoreCommand]) -> Awaitable[None]:
        """Let every shard erase its share of `BLOCKS_AT_ONCE`, until none has more to erase."""

        def ask(shards: Sequence[int]) -> Awaitable[list[bool]]:
            share = max(1, BLOCKS_AT_ONCE // len(shards))
            return self._ask_all(bool, [command(shard, share) for shard in shards])

        first = ask(range(SHARDS))

        async def others() -> None:
            left = list(range(SHARDS))
            done = await first
            while left := [shard for shard, all_ in zip(left, done, strict=True) if not all_]:
                done = await ask(left)

        return others()


def _add_up(shards: Sequence[Sequence[bytes]], totals: dict[bytes, Vector]) -> int:
    """Add what `frozen.lua` returned, shard by shard; return how large the largest reply was.

    A block that is not there is being moved to another member of a cluster at the moment, or was
    lost. Without it a release would be of less than what was paid for, so there is none.
    """
    largest = 0
    for reply in shards:
        blocks = replies.pairs(reply)
        if None in blocks.values():
            raise ValueError("a block without sums")
        for name, stored in blocks.items():
            vector = unpack_vector(stored)
            held = totals.get(name)
            totals[name] = vector if held is None else _total(held, vector)
        size = sum(map(len, blocks.values()))
        largest = max(largest, len(blocks) + size // _BLOCK_BYTES)
    return largest


def _total(one: Vector, other: Vector) -> Vector:
    """Return the sum of two blocks, the shorter of which lacks fields, or raise `StateOverflow`."""
    if len(one) < len(other):
        one, other = other, one
    total = one.copy()
    part, before = total[: len(other)], one[: len(other)]
    part += other
    # A sum has left 64 bits where its sign is neither term's.
    if np.any(((before ^ part) & (other ^ part)) < 0):
        raise StateOverflow("a statistic would leave its 64-bit field")
    total.setflags(write=False)
    return total


def _merged(shards: Sequence[Sequence[bytes]]) -> Sequence[bytes]:
    return sorted(principal for shard in shards for principal in shard)
