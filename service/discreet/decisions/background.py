"""What runs beside requests in every worker: newer models, releases, rewards that are due, and what
families tend to.

Each recommender has at most one task at a time, so that a slow one holds up no other. Work that
takes long is done less often: a second of it is followed by a pause of several.

Four times a second a worker looks after some recommenders: those that it was asked for and whose
next model is due, and of the others so many in turn that a thousand cost no more than a few.
"""

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from discreet.decisions.release import Releaser
from discreet.decisions.rewards import Rewards
from discreet.errors import StoreUnavailable
from discreet.families.contract import Recommender

log = logging.getLogger(__name__)

TICK_SECONDS = 0.25
REWARDS_SECONDS = 0.5
AT_ONCE = 64
"""Recommenders that are looked after in one tick, beside those whose next model is awaited."""
_REST = 4.0
"""What took a second is followed by a pause of so many."""
_SEARCH_REST = 20.0
_SEARCH_SECONDS = 0.5
"""The same for a search for garbage, during which nothing else is done, by the time that it took of
this processor; and the shortest pause."""


class Background:
    """Looks after the recommenders of one worker."""

    def __init__(
        self,
        *,
        releaser: Releaser,
        rewards: Rewards,
        recommenders: Callable[[], Sequence[Recommender[Any]]],
        lingering: Callable[[], bool],
    ) -> None:
        """`recommenders` are those that are served; `lingering` tells whether there are others."""
        self._releaser = releaser
        self._rewards = rewards
        self._recommenders = recommenders
        self._lingering = lingering
        self._search_at = 0.0
        self._loops: list[asyncio.Task[None]] = []
        self._tasks: dict[Recommender[Any], asyncio.Task[None]] = {}
        self._rest_until: dict[Recommender[Any], float] = {}
        self._turn = 0

    def start(self) -> None:
        """Begin."""
        self._loops = [
            asyncio.create_task(self._run(), name="background"),
            asyncio.create_task(self._settle_rewards(), name="rewards"),
        ]

    async def stop(self) -> None:
        """End it; whatever was being done is found again in the store."""
        tasks = [*self._tasks.values(), *self._loops]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def retire(self, recommender: Recommender[Any]) -> None:
        """Drop everything that is kept or running for a recommender."""
        self._rest_until.pop(recommender, None)
        task = self._tasks.pop(recommender, None)
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await recommender.close()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            try:
                await self._releaser.load_newer(self._whose_turn_it_is())
            except StoreUnavailable:
                continue
            except Exception:
                log.exception("loading newer models failed")
            self._look_after_some()
            self._free_what_is_gone()
            self._turn += 1

    def _free_what_is_gone(self) -> None:
        """Free recommenders that were replaced or removed.

        They and their parts refer to each other. Python itself looks for such circles too seldom
        here (`serving`): a catalogue that is changed often would be in memory dozens of times.
        """
        if time.monotonic() >= self._search_at and self._lingering():
            began = time.thread_time()
            gc.collect()
            took = time.thread_time() - began
            self._search_at = time.monotonic() + max(_SEARCH_SECONDS, _SEARCH_REST * took)

    def _whose_turn_it_is(self) -> list[Recommender[Any]]:
        """Return all recommenders; of many some in turn, and always those that are awaited."""
        everybody = self._recommenders()
        if len(everybody) <= AT_ONCE:
            return list(everybody)
        turns = -(-len(everybody) // AT_ONCE)
        return [
            one
            for place, one in enumerate(everybody)
            if place % turns == self._turn % turns or self._releaser.awaits_release(one)
        ]

    async def _settle_rewards(self) -> None:
        while True:
            # Without a pause while there are more: the queue must not grow faster than it is read.
            more = await self._settle_all()
            await asyncio.sleep(0 if more else REWARDS_SECONDS)

    async def _settle_all(self) -> bool:
        more = False
        for one in self._recommenders():
            if one.awaits:
                try:
                    more |= await self._rewards.settle_due(one)
                except StoreUnavailable:
                    log.warning("%s: the store did not answer in the background", one.algorithm)
                except Exception:
                    log.exception("%s: counting rewards failed", one.algorithm)
        return more

    def _look_after_some(self) -> None:
        # Not in the loop above, whose frame would hold on to the last one, even if it is removed.
        now = time.monotonic()
        for one in self._whose_turn_it_is():
            if one not in self._tasks and now >= self._rest_until.get(one, 0.0):
                task = asyncio.create_task(self._look_after(one), name=f"background {one.name}")
                self._tasks[one] = task

    async def _look_after(self, recommender: Recommender[Any]) -> None:
        began = time.monotonic()
        try:
            await self._releaser.release_if_due(recommender)
            await recommender.tend()
        except StoreUnavailable:
            log.warning("%s: the store did not answer in the background", recommender.algorithm)
        except Exception:
            log.exception("%s: background work failed", recommender.algorithm)
        finally:
            if self._tasks.pop(recommender, None) is not None:
                ended = time.monotonic()
                self._rest_until[recommender] = ended + _REST * (ended - began)
