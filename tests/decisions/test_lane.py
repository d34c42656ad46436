"""Long work: two pieces at a time, single requests first, and the event loop turns between."""

import asyncio
import itertools

import pytest

from discreet.decisions.lane import AT_ONCE, MOST_WAITING, PIECE, LongWorkLane
from discreet.errors import Overloaded

pytestmark = pytest.mark.anyio


async def test_at_most_two_pieces_are_under_way_and_all_are_done() -> None:
    lane, under_way, most = LongWorkLane(), 0, 0

    async def work() -> int:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return 7

    done = await asyncio.gather(*(lane.piece(work) for _ in range(50)))
    assert done == [7] * 50
    assert most == AT_ONCE


async def test_other_work_has_its_turn_between_two_pieces() -> None:
    """Each piece keeps the loop busy; whatever else is ready runs after two of them at most."""
    lane, pieces, seen = LongWorkLane(), 0, []

    async def work() -> None:
        nonlocal pieces
        await asyncio.sleep(0)  # as a debit would
        pieces += 1

    async def other() -> None:
        while pieces < 40:
            seen.append(pieces)
            await asyncio.sleep(0)

    await asyncio.gather(other(), *(lane.piece(work) for _ in range(40)))
    steps = [later - earlier for earlier, later in itertools.pairwise(seen)]
    assert max(steps) <= AT_ONCE


async def test_single_requests_go_first() -> None:
    lane, order = LongWorkLane(), []

    async def work(name: str) -> None:
        await asyncio.sleep(0)
        order.append(name)

    batch = [asyncio.create_task(lane.piece(lambda: work("batch"))) for _ in range(10)]
    await asyncio.sleep(0)
    await lane.single(1, lambda: work("single"))
    await asyncio.gather(*batch)
    assert order.index("single") <= AT_ONCE


async def test_what_cannot_begin_soon_is_refused_before_it_begins() -> None:
    lane, begun = LongWorkLane(), 0
    open_ = asyncio.Event()

    async def work() -> None:
        nonlocal begun
        begun += 1
        await open_.wait()

    waiting = [asyncio.create_task(lane.single(PIECE, work)) for _ in range(MOST_WAITING // PIECE)]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await lane.single(PIECE, work)
    assert begun == AT_ONCE
    open_.set()
    await asyncio.gather(*waiting)
    await lane.single(100 * MOST_WAITING, work)  # of any size, if it is alone


async def test_whoever_gives_up_takes_nobody_elses_turn() -> None:
    lane = LongWorkLane()

    async def work() -> int:
        await asyncio.sleep(0.01)
        return 1

    async def fail() -> int:
        raise KeyError("no")

    tasks = [asyncio.create_task(lane.piece(work)) for _ in range(20)]
    await asyncio.sleep(0)
    for task in tasks[1::3]:
        task.cancel()
    for failing in (lane.piece(fail), lane.piece(fail)):
        with pytest.raises(KeyError):
            await failing
    await asyncio.gather(*tasks, return_exceptions=True)
    assert await asyncio.gather(lane.piece(work), lane.piece(work), lane.piece(work)) == [1] * 3
