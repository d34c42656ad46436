"""Endings in several steps, each of which is taken whatever becomes of the others."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

log = logging.getLogger(__name__)


async def end_all(*steps: Callable[[], Awaitable[None] | None]) -> None:
    """Take every step, one after another; then raise the first error, if there was one.

    A worker that left out a step would hold on to what it ends: with a training that goes on it
    would not stop before it is killed.
    """
    first: BaseException | None = None
    for step in steps:
        try:
            under_way = step()
            if under_way is not None:
                await under_way
        except BaseException as error:
            if first is None:
                first = error
            else:
                log.error("another step of the ending failed as well", exc_info=error)
    if first is not None:
        raise first


async def cancelled(task: "asyncio.Task[Any] | None") -> None:
    """Cancel a task, if there is one, and return once it has ended."""
    if task is not None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def ended(task: "asyncio.Task[Any] | None") -> None:
    """Return once a task, if there is one, has ended, whatever became of it."""
    if task is not None:
        await asyncio.wait([task])


def retrieve(task: "asyncio.Task[Any]") -> None:
    """Look at what a task came to: whoever waited for it may have gone, and nobody needs to know.

    As a callback. Without it, asyncio would say aloud that an error was never looked at.
    """
    if not task.cancelled():
        task.exception()
