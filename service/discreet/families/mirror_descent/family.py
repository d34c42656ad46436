"""Sparse mirror descent at work: what the service asks of every family, for this one."""

import asyncio
import logging
import os
from collections.abc import Awaitable
from contextlib import suppress
from typing import TYPE_CHECKING

from discreet.families.questions import Ask, Feedback, Receipt, Recommendation
from discreet.decisions.family import Plain
from discreet.families.mirror_descent.answering import answer
from discreet.families.mirror_descent.broadcasts import broadcast, due, erase, refresh
from discreet.families.mirror_descent.hearing import hear
from discreet.families.mirror_descent.neighbours import mix
from discreet.families.mirror_descent.recommender import MirrorRecommender
from discreet.decisions.recommender import Recommender, Stored
from discreet.decisions.tokens import Pending
from discreet.errors import StoreUnavailable

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

log = logging.getLogger(__name__)

TICK_SECONDS = 0.25
LEASE_SECONDS = 60.0
"""Longer than the noise of one stretch of features takes."""


class MirrorFamily(Plain):
    """Ranks, learns, and in the background broadcasts and mixes."""

    def __init__(self) -> None:
        self._holder = os.urandom(8)
        self._task: asyncio.Task[None] | None = None

    def compile(self, *, name: str, stored: Stored) -> MirrorRecommender:
        """Read the catalogue's features and make the learner."""
        return MirrorRecommender(name=name, stored=stored)

    def check(self, recommender: Recommender, ask: Ask) -> None:
        """Sparse features within their limits, and nothing that other families use."""
        assert isinstance(recommender, MirrorRecommender)
        recommender.question(ask)

    def answer(
        self, runtime: "Runtime", recommender: Recommender, ask: Ask, marker: bytes | None = None
    ) -> Awaitable[Recommendation]:
        """Rank by the published model. Nothing is debited, so that the marker marks nothing."""
        assert isinstance(recommender, MirrorRecommender)
        return answer(runtime, recommender, ask)

    def hear(
        self,
        runtime: "Runtime",
        recommender: Recommender,
        pending: Pending,
        feedback: Feedback,
        ttl: int,
    ) -> Awaitable[Receipt]:
        """Pay for the record, and add it; several at once share their round trips."""
        assert isinstance(recommender, MirrorRecommender)
        return asyncio.ensure_future(hear(runtime, recommender, pending, feedback, ttl))

    async def refresh(self, runtime: "Runtime", recommender: Recommender) -> None:
        """Take over a model that another worker has made or mixed."""
        assert isinstance(recommender, MirrorRecommender)
        await refresh(runtime, recommender)

    async def remove(self, runtime: "Runtime", recommender: Recommender) -> None:
        """Erase sums, noise and models."""
        assert isinstance(recommender, MirrorRecommender)
        await super().remove(runtime, recommender)
        await erase(runtime, recommender)

    def start(self, runtime: "Runtime") -> None:
        """Begin to broadcast and mix."""
        self._task = asyncio.create_task(self._run(runtime), name="mirror descent")

    async def stop(self) -> None:
        """End it."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self, runtime: "Runtime") -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            for recommender in runtime.registry.held():
                if not isinstance(recommender, MirrorRecommender):
                    continue
                try:
                    await self.tend(runtime, recommender)
                except StoreUnavailable:
                    continue
                except Exception:
                    log.exception("a broadcast or a mixing round failed")

    async def tend(self, runtime: "Runtime", recommender: MirrorRecommender) -> None:
        """Broadcast and mix, if it is time and no other worker is at it."""
        await refresh(runtime, recommender)
        now = runtime.clock()
        if not (due(recommender, now) or self._should_mix(recommender, now)):
            return
        lease = recommender.key(b"lease")

        def keep() -> Awaitable[bool]:
            return runtime.store.hold(lease=lease, holder=self._holder, seconds=LEASE_SECONDS)

        if not await keep():
            return
        try:
            # Whoever had the lease before may have done it meanwhile.
            await refresh(runtime, recommender)
            if due(recommender, now):
                await broadcast(runtime, recommender, keep)
            if self._should_mix(recommender, now):
                await mix(runtime, recommender)
            await refresh(runtime, recommender)
        finally:
            await runtime.store.let_go(lease=lease, holder=self._holder)

    @staticmethod
    def _should_mix(recommender: MirrorRecommender, now: float) -> bool:
        document = recommender.document
        return bool(document.neighbours) and now - recommender.mixed_at >= document.mixing_seconds
