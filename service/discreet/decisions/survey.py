"""Refreshing what workers hold in memory, now and then, beside the request path.

What a refresh does is the family's business. It happens less often when it takes long, so that
refreshing never takes more than a small share of a core.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from discreet.decisions.recommender import Recommender
from discreet.errors import StoreUnavailable

log = logging.getLogger(__name__)


class Surveyor:
    """Refreshes every recommender that had traffic, one after the other, for ever."""

    def __init__(
        self,
        *,
        refresh: Callable[[Recommender], Awaitable[None]],
        recommenders: Callable[[], Iterable[Recommender]],
        seconds: float,
    ) -> None:
        self._refresh = refresh
        self._recommenders = recommenders
        self._seconds = seconds
        self._task: asyncio.Task[None] | None = None

    async def prepare(self, recommender: Recommender) -> None:
        """Refresh a recommender that this worker has just compiled, before it answers from it."""
        await self._refresh(recommender)

    def start(self) -> None:
        """Begin surveying in the background."""
        self._task = asyncio.create_task(self._run(), name="survey")

    async def stop(self) -> None:
        """Stop surveying."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        pause = self._seconds
        while True:
            await asyncio.sleep(pause)
            began = time.monotonic()
            for recommender in list(self._recommenders()):
                if not recommender.touched:
                    continue
                recommender.touched = False
                try:
                    await self.prepare(recommender)
                except StoreUnavailable:
                    recommender.touched = True
                except Exception:
                    log.exception("a survey failed")
            pause = max(self._seconds, 10 * (time.monotonic() - began))
