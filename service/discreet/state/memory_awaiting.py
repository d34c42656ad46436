"""Decisions that await a reward, in memory; see `memory_sums`, which opens and counts them.

What nobody looks at is not abandoned here: it goes with the process.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from discreet.state import checks
from discreet.state.awaiting import Counted, DueDecision, DueDecisions, OpenDecision
from discreet.state.ready import Ready
from discreet.state.stores import SHARDS, ClaimOutcome, FeedbackRecord, shard_of


@dataclass(slots=True)
class _Awaited:
    due: float
    content: bytes
    items: int
    rewards: dict[bytes, int | Counted] = field(default_factory=dict)
    """By claim."""


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
            shard[name] = _Awaited(one.due, one.content, one.items)
        else:
            return False
        return True

    def _shard(self, generation: bytes, principal: bytes) -> _Shard:
        return self._awaited[generation][shard_of(principal)]

    def _held(self, one: FeedbackRecord) -> ClaimOutcome | None:
        """Tell what becomes of a record because its decision is open; None: it may be counted."""
        if not one.awaited:
            return None
        found = self._shard(one.generation, one.principal).get((one.principal, one.awaited))
        held = None if found is None else found.rewards.get(one.claim)
        if one.settles:
            if found is None or held is Counted.COUNTED:
                return ClaimOutcome.DUPLICATE
            return None if held == one.held else ClaimOutcome.CHANGED
        if found is None or held is Counted.COUNTED:
            return None
        if held is None:
            return ClaimOutcome.HELD
        return ClaimOutcome.DUPLICATE if held == one.reward else ClaimOutcome.CONFLICT

    def _note(self, one: FeedbackRecord, reward: int | Counted) -> None:
        if one.awaited:
            found = self._shard(one.generation, one.principal).get((one.principal, one.awaited))
            if found is not None:
                found.rewards[one.claim] = reward

    def due(self, *, generation: bytes, most: int) -> Awaitable[DueDecisions]:
        shards = self._awaited[checks.digest("generation", generation)]
        checks.most(most)
        now = self._clock()
        due: list[DueDecision] = []
        for shard in shards:
            ready = sorted((each.due, name) for name, each in shard.items() if each.due <= now)
            due += (_due(*name, shard[name]) for _, name in ready[:most])
        return Ready(DueDecisions(due, sum(map(len, shards))))

    def close_decisions(
        self, *, generation: bytes, decisions: Sequence[tuple[bytes, bytes]]
    ) -> Awaitable[None]:
        checks.digest("generation", generation)
        for principal, decision in decisions:
            self._shard(generation, principal).pop((principal, decision), None)
        return Ready(None)

    def forget_open(self, *, generation: bytes, principal: bytes) -> Awaitable[int]:
        checks.digest("generation", generation)
        shard = self._shard(generation, checks.digest("principal", principal))
        found = [name for name in shard if name[0] == principal]
        for name in found:
            del shard[name]
        return Ready(len(found))


def _due(principal: bytes, decision: bytes, one: _Awaited) -> DueDecision:
    claims = (decision + place.to_bytes(2, "little") for place in range(one.items))
    rewards = tuple(one.rewards.get(claim) for claim in claims)
    return DueDecision(principal, decision, one.content, rewards)
