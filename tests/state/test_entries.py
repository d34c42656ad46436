"""Many commands of one call: how they leave, and what becomes of each by itself."""

import asyncio
from typing import Any

import pytest

from discreet.errors import StoreUnavailable
from discreet.state import replies, wire
from discreet.state.commands import Entry, Gathered
from discreet.state.connection import Converted
from discreet.state.scripts import SPEND, getting, packed
from tests.state.peers import Peer, wire_to

pytestmark = pytest.mark.anyio


def entries(size: int, *deadlines: float, payload: bytes = packed(b"N")) -> list[Entry]:
    gathered = Gathered(asyncio.get_running_loop().create_future(), size)
    until = [*deadlines, *[float("inf")] * (size - len(deadlines))]
    return [
        Entry(payload, b"", replies.nothing, False, until[place], gathered, place)
        for place in range(size)
    ]


def answers(*numbers: int) -> bytes:
    return b"".join(b":%d\r\n" % number for number in numbers)


def written_by(one: wire.Wire) -> list[bytes]:
    """Note what leaves over a wire, write by write."""
    transport: Any = one._transport
    writes: list[bytes] = []

    class Noting:
        def write(self, data: bytes) -> None:
            writes.append(data)
            transport.write(data)

        def abort(self) -> None:
            transport.abort()

    one._transport = Noting()  # type: ignore[assignment]
    return writes


# How they leave


async def test_many_commands_leave_in_a_few_writes_before_the_turn_ends(peer: Peer) -> None:
    wires, losses = await wire_to(peer)
    writes = written_by(wires)
    first = entries(1, payload=packed(b"FIRST"))[0]
    many = entries(1_250)
    for number, each in enumerate(many):
        each.payload = packed(b"N", number)
    last = entries(1, payload=packed(b"LAST"))[0]
    wires.send(first)
    wires.send_all(many)
    assert len(writes) == 3, "500 at a time, and the one that waited for the turn to end goes first"
    wires.send(last)
    assert wires.in_flight == 1_252
    commands = [first, *many, last]
    everything = b"".join(each.payload for each in commands)
    assert await peer.reader.readexactly(len(everything)) == everything
    assert writes[3:] == [last.payload]
    peer.writer.write(answers(*range(1_252)))
    assert await last.future == [1_251]
    assert await first.future == [0]
    assert await many[0].future == list(range(1, 1_251))
    wires.abort()
    assert losses == [([], [])]


async def test_a_wire_that_is_gone_has_sent_none_of_them(peer: Peer) -> None:
    wires, losses = await wire_to(peer)
    wires.abort()
    many = entries(3)
    wires.send_all(many)
    await asyncio.sleep(0)
    assert losses[1:] == [((), (each,)) for each in many]


async def test_what_was_held_back_within_one_call_is_known_to_be_unsent(peer: Peer) -> None:
    """The peer reads nothing, so the system's buffers fill and the last chunks stay with us."""
    wires, losses = await wire_to(peer)
    many = entries(4_000, payload=packed(b"SET", b"x" * 10_000))
    wires.send_all(many)
    wires.abort()
    ((ran, unsent),) = losses
    assert len(ran) == 500, "one chunk overfills the buffers"
    assert len(unsent) == 3_500
    assert [*ran, *unsent] == many


async def test_nothing_to_send_is_nothing_in_flight(peer: Peer) -> None:
    wires, _ = await wire_to(peer)
    writes = written_by(wires)
    wires.send_all([])
    await asyncio.sleep(0)
    assert (wires.in_flight, writes) == (0, [])


async def test_a_server_is_given_its_time_from_when_the_first_of_them_left(peer: Peer) -> None:
    """A wire that lay idle for long is not late the moment that it is used again."""
    wires, losses = await wire_to(peer)
    wires._progress = asyncio.get_running_loop().time() - 1_000
    wires.send_all(entries(2))
    wires.check(asyncio.get_running_loop().time() + 1, timeout=10)
    assert losses == []


def test_calls_on_many_keys_are_the_calls_on_each() -> None:
    keys = [b"k", b"", b"\r\n$1\r\n", b"x" * 100]
    for arguments in [(b"a" * 24, b"b" * 24), (b"a", 7, -1, b"\r\n"), (b"",)]:
        assert SPEND.calls(keys, *arguments) == [SPEND.call((key,), *arguments) for key in keys]
    assert SPEND.calls([], b"a") == []
    assert getting(keys) == [packed(b"GET", key) for key in keys]


# What becomes of each


async def test_an_entry_that_expired_leaves_the_others_theirs(peer: Peer) -> None:
    wires, _ = await wire_to(peer)
    now = asyncio.get_running_loop().time()
    many = entries(3, float("inf"), now)
    wires.send_all(many)
    for _ in range(2):
        wires.check(now + 0.1, timeout=10)
    assert [each.done for each in many] == [False, True, False]
    peer.writer.write(answers(1, 2))
    await asyncio.sleep(0.01)
    assert not many[0].future.done(), "the late reply was counted as another's"
    peer.writer.write(answers(3))
    found = await many[0].future
    assert (found[0], found[2]) == (1, 3)
    assert isinstance(found[1], StoreUnavailable)


async def test_when_all_have_expired_the_list_is_there_and_late_replies_are_harmless(
    peer: Peer,
) -> None:
    wires, losses = await wire_to(peer)
    now = asyncio.get_running_loop().time()
    late = entries(2, now, now)
    wires.send_all(late)
    wires.check(now + 0.1, timeout=10)
    assert [type(each) for each in await late[0].future] == [StoreUnavailable] * 2
    next_ones = entries(2)
    wires.send_all(next_ones)
    peer.writer.write(answers(1, 2, 3, 4))
    assert await next_ones[0].future == [3, 4]
    assert [type(each) for each in await late[0].future] == [StoreUnavailable] * 2
    assert losses == []


async def test_who_gives_up_on_a_list_disturbs_nobody(peer: Peer) -> None:
    wires, losses = await wire_to(peer)
    given_up, kept = entries(2), entries(2)
    read: list[Any] = []

    async def awaiting() -> None:
        await Converted(given_up[0].future, read.append)

    task = asyncio.ensure_future(awaiting())
    wires.send_all(given_up)
    wires.send_all(kept)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert all(each.done for each in given_up)
    peer.writer.write(answers(1))
    await asyncio.sleep(0.01)
    wires.check(asyncio.get_running_loop().time(), timeout=10)
    peer.writer.write(answers(2, 3, 4))
    assert await kept[0].future == [3, 4]
    assert (read, losses, wires.in_flight) == ([], [], 0)


async def test_a_list_is_read_once_all_of_it_is_there() -> None:
    many = entries(3)
    awaited = Converted(many[0].future, tuple)
    for place in (2, 0):
        many[place].succeed(place)
    assert not many[0].future.done()
    many[0].succeed("again")
    many[0].fail(StoreUnavailable("again"))
    assert not many[0].future.done(), "one entry counted for two"
    many[1].fail(StoreUnavailable("lost"))
    first, second, third = await awaited
    assert (first, third) == (0, 2)
    assert isinstance(second, StoreUnavailable)
