"""Decisions that await a reward, on Redis or Valkey; `redis_sums` opens and counts them.

A recommender's open decisions lie on the shards of those who were answered, beside their ledgers.
"""

from collections.abc import Awaitable, Sequence
from typing import Any

from discreet.state import checks, replies, scripts
from discreet.state.awaiting import Counted, DueDecision, DueDecisions
from discreet.state.client import StoreCommand, Word
from discreet.state.keys import open_name, read_open_name
from discreet.state.redis_commands import PendingAnswer, RedisCommands
from discreet.state.stores import SHARDS, shard_of


class RedisAwaiting(RedisCommands):
    """The part of `stores.Store` that waits."""

    def due(self, *, generation: bytes, most: int) -> Awaitable[DueDecisions]:
        checks.digest("generation", generation)
        commands = [
            self._on(shard, generation, scripts.DUE, checks.most(most)) for shard in range(SHARDS)
        ]
        return PendingAnswer(self._ask_all(_due, commands), _joined)

    def close_decisions(
        self, *, generation: bytes, decisions: Sequence[tuple[bytes, bytes]]
    ) -> Awaitable[None]:
        checks.digest("generation", generation)
        words: dict[int, list[Word]] = {}
        for principal, decision in decisions:
            some = words.setdefault(shard_of(principal), [])
            some.append(open_name(principal, decision))
        commands = [
            self._on(shard, generation, scripts.CLOSE_DECISIONS, *some)
            for shard, some in words.items()
        ]
        return PendingAnswer(self._ask_all(replies.nothing, commands), replies.nothing)

    def forget_open(self, *, generation: bytes, principal: bytes) -> Awaitable[int]:
        checks.digest("generation", generation)
        shard = shard_of(checks.digest("principal", principal))
        command = self._on(shard, generation, scripts.FORGET_OPEN, open_name(principal, b""))
        # Not repeatable: the second time there would be none.
        return self._ask(int, command.key, command.words, repeatable=False)

    def _on(
        self, shard: int, generation: bytes, script: scripts.LuaScript, *words: Word
    ) -> StoreCommand:
        keys = (self._keys.open(shard, generation), self._keys.contents(shard, generation))
        return StoreCommand(keys[0], script.call(keys, *words))


def _due(reply: Sequence[Any]) -> DueDecisions:
    """Read what `due.lua` returns."""
    due = []
    for name, content, rewards in zip(reply[1::3], reply[2::3], reply[3::3], strict=True):
        stored = None if content is None else content[2:]
        due.append(DueDecision(*read_open_name(name), stored, tuple(map(_reward, rewards))))
    return DueDecisions(due, int(reply[0]))


def _reward(stored: bytes | None) -> int | Counted | None:
    if stored is None:
        return None
    return Counted.COUNTED if stored == b"c" else int(stored)


def _joined(shards: Sequence[DueDecisions]) -> DueDecisions:
    due = [one for shard in shards for one in shard.due]
    return DueDecisions(due, sum(shard.open for shard in shards))
