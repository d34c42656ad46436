"""Federated clusters at work: what the service asks of every family, for this one."""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from discreet.families.questions import Ask, Feedback, Receipt, Recommendation
from discreet.families.fclub import answering, erasing, hearing, mail, merging
from discreet.families.fclub.recommender import Belief, ClusterRecommender
from discreet.families.fclub.users import look
from discreet.decisions.family import Plain
from discreet.decisions.recommender import Recommender, Stored
from discreet.families.budgets import PrivacyReport
from discreet.decisions.tokens import Pending
from discreet.errors import StoreUnavailable

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

log = logging.getLogger(__name__)

LEASE_SECONDS = 15.0
SHORTEST_PAUSE = 1.0
LONGEST_PAUSE = 8.0
"""Seconds between two cycles of a recommender: the shorter ones while something happens."""
QUICK_LOOK = 0.5
"""Seconds up to which looking at all users is done while others wait."""
_SHARE = 10
"""What took a second is followed by a pause of this many."""


class ClusterFamily(Plain):
    """Serves users from memory and their own sums; letters and merging run in the background."""

    def __init__(self) -> None:
        self._holder = os.urandom(16)
        self._beliefs: dict[bytes, Belief] = {}
        self._looked: dict[bytes, tuple[float, float]] = {}
        self._looking: dict[bytes, asyncio.Task[None]] = {}
        self._pacing: asyncio.Task[None] | None = None
        self._cycles: dict[bytes, asyncio.Task[None]] = {}
        self._pauses: dict[bytes, tuple[float, float]] = {}

    def compile(self, *, name: str, stored: Stored) -> ClusterRecommender:
        """Check every item's features."""
        recommender = ClusterRecommender(name=name, stored=stored)
        # What was believed before a change of the document is better than nothing; the next look
        # replaces it.
        recommender.belief = self._beliefs.get(recommender.generation)
        return recommender

    def check(self, recommender: Recommender, ask: Ask) -> None:
        """Features of the right size and length, and nothing that other families use."""
        assert isinstance(recommender, ClusterRecommender)
        recommender.offer(ask)

    def answer(
        self, runtime: "Runtime", recommender: Recommender, ask: Ask, marker: bytes | None = None
    ) -> Awaitable[Recommendation]:
        """Read the client's sums, which begins now; choose once they are there."""
        assert isinstance(recommender, ClusterRecommender)
        return answering.begin(runtime, recommender, ask, marker)

    def hear(
        self,
        runtime: "Runtime",
        recommender: Recommender,
        pending: Pending,
        feedback: Feedback,
        ttl: int,
    ) -> Awaitable[Receipt]:
        """Claim once and merge into the client's own sums."""
        assert isinstance(recommender, ClusterRecommender)
        return hearing.hear(runtime, recommender, pending, feedback, ttl)

    async def refresh(self, runtime: "Runtime", recommender: Recommender) -> None:
        """Look at everybody's sums, and at what other servers tell."""
        assert isinstance(recommender, ClusterRecommender)
        key = recommender.generation
        if not recommender.is_local:
            return
        ended, took = self._looked.get(key, (0.0, 0.0))
        if took < QUICK_LOOK:
            await self._look(runtime, recommender)
            return
        # Thousands of users take seconds: others, who are refreshed in turn, must not wait.
        recommender.touched = True
        if key not in self._looking and time.monotonic() > ended + _SHARE * took:
            self._looking[key] = asyncio.create_task(
                self._look_aside(runtime, recommender), name="look at users"
            )

    async def _look(self, runtime: "Runtime", recommender: ClusterRecommender) -> None:
        began = time.monotonic()
        await look(runtime, recommender)
        ended = time.monotonic()
        self._looked[recommender.generation] = (ended, ended - began)
        if recommender.belief is not None:
            self._beliefs[recommender.generation] = recommender.belief

    async def _look_aside(self, runtime: "Runtime", recommender: ClusterRecommender) -> None:
        try:
            recommender.touched = False
            await self._look(runtime, recommender)
        except StoreUnavailable:
            recommender.touched = True
        except Exception:
            log.exception("users could not be looked at")
        finally:
            del self._looking[recommender.generation]

    async def remove(self, runtime: "Runtime", recommender: Recommender) -> None:
        """Erase sums, letters and views."""
        assert isinstance(recommender, ClusterRecommender)
        self._beliefs.pop(recommender.generation, None)
        if recommender.is_local:
            await super().remove(runtime, recommender)
            await erasing.erase_all(runtime, recommender)
        else:
            await merging.erase(runtime, recommender)

    async def forget(self, runtime: "Runtime", recommender: Recommender, client: str) -> int:
        """Erase a client's sums. Letters that were sent stay: they are noise to everybody."""
        assert isinstance(recommender, ClusterRecommender)
        if not recommender.is_local:
            return 0
        return await erasing.erase_user(runtime, recommender, client)

    async def standing(
        self, runtime: "Runtime", recommender: Recommender, client: str
    ) -> PrivacyReport:
        """Return what any one observation of the client costs."""
        assert isinstance(recommender, ClusterRecommender)
        return recommender.report

    # In the background

    async def cycle(self, runtime: "Runtime", recommender: ClusterRecommender) -> bool:
        """Do what one worker at a time does for a recommender; tell whether anything happened."""
        if not await runtime.store.hold(
            lease=recommender.key(b"lease"), holder=self._holder, seconds=LEASE_SECONDS
        ):
            return False
        if recommender.is_local:
            return await mail.exchange(runtime, recommender)
        return await merging.merge(runtime, recommender)

    def start(self, runtime: "Runtime") -> None:
        """Begin the cycles of every recommender, each at a pace of its own."""
        self._pacing = asyncio.create_task(self._pace(runtime), name="federation")

    async def stop(self) -> None:
        """End them; whatever was being done is found again in the store."""
        tasks = [*self._cycles.values(), *self._looking.values()]
        if self._pacing is not None:
            tasks.append(self._pacing)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _pace(self, runtime: "Runtime") -> None:
        while True:
            await asyncio.sleep(SHORTEST_PAUSE / 4)
            now = time.monotonic()
            for recommender in runtime.registry.held():
                if not isinstance(recommender, ClusterRecommender):
                    continue
                key = recommender.generation
                if key in self._cycles or now < self._pauses.get(key, (0.0, 0.0))[0]:
                    continue
                # A task each: a slow peer of one recommender holds up no other.
                self._cycles[key] = asyncio.create_task(
                    self._run(runtime, recommender), name="federation"
                )

    async def _run(self, runtime: "Runtime", recommender: ClusterRecommender) -> None:
        key, began, busy = recommender.generation, time.monotonic(), False
        try:
            busy = await self.cycle(runtime, recommender)
        except StoreUnavailable:
            pass  # others say so, often enough
        except Exception:
            log.exception("a cycle of federated clusters failed")
        finally:
            del self._cycles[key]
        ended = time.monotonic()
        _, last = self._pauses.get(key, (0.0, SHORTEST_PAUSE))
        pause = SHORTEST_PAUSE if busy else min(2 * last, LONGEST_PAUSE)
        # Looking at many users takes time; it must not take a whole core.
        self._pauses[key] = (ended + max(pause, _SHARE * (ended - began)), pause)
