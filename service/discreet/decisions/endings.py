"""Endings in several steps, each of which is taken whatever becomes of the others."""

import logging
from collections.abc import Awaitable, Callable

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
