"""Decisions that await a reward, in memory; see `memory_sums`, which opens and counts them.

What nobody looks at is not abandoned here: it goes with the process.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from discreet.state import checks
from discreet.state.awaiting import ClosedDecision, DueDecision, DueDecisions, OpenDecision
from discreet.state.ready import Ready
from discreet.state.stores import SHARDS, FeedbackRecord, shard_of


@dataclass(slots=True)
class _Awaited:
    due: float
    content: bytes
    counted: set[bytes] = field(default_factory=set)


_Shard = dict[tuple[bytes, bytes], _Awaited]


class MemoryAwaiting:
    """The part of `stores.Store` that waits."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._awaited: defaultdict[bytes, list[_Shard]] = defaultdict(
            lambda: [{} for _ in range(SHARDS)]
        )

    def _open_decision(self, principal: bytes, one: OpenDecision) -> bool:
        shard = self._shard(one.generation, principal)
        name = (principal, one.decision)
        standing = shard.get(name)
        if standing is not None:
            standing.content = one.content
            standing.due = (min if one.sooner else max)(standing.due, one.due)
        elif len(shard) < -(-one.most // SHARDS):
            shard[name] = _Awaited(one.due, one.content)
        else:
            return False
        return True

    def _shard(self, generation: bytes, principal: bytes) -> _Shard:
        return self._awaited[generation][shard_of(principal)]

    def _may_default(self, one: FeedbackRecord) -> bool:
        found = self._shard(one.generation, one.principal).get((one.principal, one.awaited))
        return found is not None and one.claim not in found.counted

    def _note_counted(self, one: FeedbackRecord) -> None:
        if one.awaited:
            found = self._shard(one.generation, one.principal).get((one.principal, one.awaited))
            if found is not None:
                found.counted.add(one.claim)

    def due(self, *, generation: bytes, most: int) -> Awaitable[DueDecisions]:
        shards = self._awaited[checks.digest("generation", generation)]
        checks.most(most)
        now = self._clock()
        due: list[DueDecision] = []
        for shard in shards:
            ready = sorted((each.due, name) for name, each in shard.items() if each.due <= now)
            due += (DueDecision(*name, shard[name].content) for _, name in ready[:most])
        return Ready(DueDecisions(due, sum(map(len, shards))))

    def close_decisions(
        self, *, generation: bytes, decisions: Sequence[ClosedDecision]
    ) -> Awaitable[None]:
        checks.digest("generation", generation)
        for principal, decision, _ in decisions:
            self._shard(generation, principal).pop((principal, decision), None)
        return Ready(None)

    def forget_open(self, *, generation: bytes, principal: bytes) -> Awaitable[int]:
        checks.digest("generation", generation)
        shard = self._shard(generation, checks.digest("principal", principal))
        found = [name for name in shard if name[0] == principal]
        for name in found:
            del shard[name]
        return Ready(len(found))
