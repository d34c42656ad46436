"""An ending is complete whatever its steps raise, and says what went wrong first."""

import asyncio
import logging

import pytest

from discreet.decisions.endings import cancelled, end_all, ended, retrieve

pytestmark = pytest.mark.anyio


async def test_every_step_is_taken_in_order() -> None:
    taken: list[str] = []

    async def waits() -> None:
        await asyncio.sleep(0)
        taken.append("waits")

    await end_all(waits, lambda: taken.append("does not"), waits)
    assert taken == ["waits", "does not", "waits"]


async def test_the_first_error_is_raised_and_the_others_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    taken: list[str] = []

    async def fails(name: str) -> None:
        taken.append(name)
        raise OSError(name)

    async def cancelled() -> None:
        taken.append("cancelled")
        raise asyncio.CancelledError

    with caplog.at_level(logging.ERROR), pytest.raises(OSError, match="first"):
        await end_all(
            lambda: fails("first"), cancelled, lambda: fails("last"), lambda: taken.append("done")
        )
    assert taken == ["first", "cancelled", "last", "done"]
    assert [str(each.exc_info[1]) for each in caplog.records if each.exc_info] == ["", "last"]


async def test_a_task_has_ended_when_it_was_cancelled_or_waited_for() -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise OSError

    endless, failing = asyncio.create_task(asyncio.sleep(3600)), asyncio.create_task(fails())
    failing.add_done_callback(retrieve)
    endless.add_done_callback(retrieve)
    await cancelled(endless)
    await ended(failing)
    assert endless.cancelled()
    assert isinstance(failing.exception(), OSError)
    await cancelled(None)
    await ended(None)
