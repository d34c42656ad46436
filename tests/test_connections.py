"""The table of connections: room, and time that counts."""

import asyncio
import math

import pytest

from discreet.connections import (
    LOOK_SECONDS,
    MOST_REFUSED,
    ConnectionTable,
    HoldingFlow,
    HttpLimits,
)

pytestmark = pytest.mark.anyio


class Pretended:
    """A connection that notes what is done to it."""

    def __init__(self, network: str = "192.0.2.1", due: float = math.inf) -> None:
        self.network = network
        self.due = due
        self.reading_due = math.inf
        self.held_back = False
        self.expired = asyncio.Event()

    def expire(self) -> None:
        self.due = math.inf
        self.expired.set()


async def test_room_by_address_and_in_all() -> None:
    table = ConnectionTable(HttpLimits(connections=3, connections_by_address=2))
    first, second, third = Pretended("a"), Pretended("a"), Pretended("a")
    assert [table.enter(one) for one in (first, second, third)] == [True, True, False]
    assert len(table) == 2
    other, last = Pretended("b"), Pretended("c")
    assert [table.enter(one) for one in (other, last)] == [True, False]
    table.leave(third)
    assert not table.enter(Pretended("a")), "whoever was refused gives back no room"
    table.leave(first)
    table.leave(first)
    assert len(table) == 2
    assert table.enter(Pretended("a"))


async def test_not_everybody_who_is_refused_is_told_so() -> None:
    table = ConnectionTable(HttpLimits(connections=1))
    assert table.enter(Pretended())
    refused = [Pretended() for _ in range(MOST_REFUSED)]
    assert not any(table.enter(one) for one in refused)
    assert not table.crowded
    table.enter(one_more := Pretended())
    assert table.crowded
    table.leave(one_more)
    assert not table.crowded


async def test_time_is_up() -> None:
    table = ConnectionTable(HttpLimits())
    late, patient, not_read = Pretended(due=0.1), Pretended(), Pretended()
    not_read.reading_due = 0.1
    for one in (late, patient, not_read):
        table.enter(one)
    await late.expired.wait()
    await not_read.expired.wait()
    assert not patient.expired.is_set()


async def test_time_in_which_nothing_was_polled_does_not_count() -> None:
    table = ConnectionTable(HttpLimits())
    connection = Pretended(due=60.0)
    table.enter(connection)
    loop = asyncio.get_running_loop()
    table._looked = loop.time() - 1_000.0  # as if the loop had not turned for so long
    table._look(loop)
    assert table.now <= 2 * LOOK_SECONDS
    assert not connection.expired.is_set()


async def test_whoever_we_do_not_read_cannot_be_late() -> None:
    table = ConnectionTable(HttpLimits())
    connection = Pretended(due=0.1)
    connection.held_back = True
    table.enter(connection)
    for _ in range(5):
        table._look(asyncio.get_running_loop())
    assert not connection.expired.is_set()
    assert connection.due == pytest.approx(table.now + 0.1)


def test_a_flow_that_holds_reads_nothing_whoever_asks() -> None:
    told: list[str] = []

    class Told(asyncio.Transport):
        def pause_reading(self) -> None:
            told.append("pause")

        def resume_reading(self) -> None:
            told.append("resume")

    flow = HoldingFlow(Told())
    flow.pause_reading()
    flow.holds = True
    flow.resume_reading()
    assert told == ["pause"]
    flow.holds = False
    flow.resume_reading()
    assert told == ["pause", "resume"]
