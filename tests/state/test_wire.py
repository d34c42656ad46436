"""What one connection knows about its commands when it goes."""

import asyncio

import pytest

from discreet.errors import StoreUnavailable
from discreet.state.commands import Command
from discreet.state.scripts import packed
from discreet.state.wire import Refused
from tests.state.peers import Peer, wire_to

pytestmark = pytest.mark.anyio


def command(payload: bytes, deadline: float = float("inf")) -> Command:
    return Command(
        payload,
        key=b"",
        convert=int,
        future=asyncio.get_running_loop().create_future(),
        repeatable=False,
        deadline=deadline,
    )


async def test_replies_find_their_commands_in_order(peer: Peer) -> None:
    wire, losses = await wire_to(peer)
    commands = [command(packed(b"N", number)) for number in range(100)]
    for each in commands:
        wire.send(each)
    assert wire.in_flight == 100
    replies = b"".join(b":%d\r\n" % number for number in range(100))
    peer.writer.write(replies[:77])
    await asyncio.sleep(0.01)
    peer.writer.write(replies[77:])
    assert [await each.future for each in commands] == list(range(100))
    wire.abort()
    assert losses == [([], [])]


async def test_what_was_not_written_is_known_to_be_unsent(peer: Peer) -> None:
    """The peer reads nothing, so the system's buffers fill and the rest stays with us."""
    wire, losses = await wire_to(peer)
    commands = [command(packed(b"SET", b"x" * 1_000_000)) for _ in range(100)]
    for each in commands:
        wire.send(each)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    wire.abort()
    ((ran, unsent),) = losses
    assert ran
    assert unsent
    assert [*ran, *unsent] == commands


async def test_a_peer_that_hangs_up_loses_what_it_was_sent(peer: Peer) -> None:
    wire, losses = await wire_to(peer)
    sent = command(packed(b"PING"))
    wire.send(sent)
    await peer.reader.read(100)
    lost = asyncio.Event()
    record = wire.lost
    wire.lost = lambda ran, unsent: (record(ran, unsent), lost.set())[0]
    peer.writer.transport.abort()
    await lost.wait()
    assert losses == [([sent], [])]
    late = command(packed(b"PING"))
    wire.send(late)
    await asyncio.sleep(0)
    assert losses[1] == ((), (late,))


async def test_an_answer_that_makes_no_sense_is_not_an_answer(peer: Peer) -> None:
    wire, _ = await wire_to(peer)
    sent = command(packed(b"GET", b"x"))
    wire.send(sent)
    peer.writer.write(b"$5\r\nthree\r\n")
    with pytest.raises(StoreUnavailable, match="cannot be read"):
        await sent.future


async def test_a_reply_to_nothing_ends_the_connection(peer: Peer) -> None:
    wire, losses = await wire_to(peer)
    peer.writer.write(b":1\r\n")
    assert await peer.reader.read(1) == b""
    assert losses == [([], [])]
    assert wire.in_flight == 0


async def test_an_expired_command_fails_and_its_reply_is_still_matched(peer: Peer) -> None:
    wire, _ = await wire_to(peer)
    now = asyncio.get_running_loop().time()
    expired, patient = command(packed(b"A"), deadline=now), command(packed(b"B"))
    wire.send(expired)
    wire.send(patient)
    wire.check(now + 0.1, timeout=10)
    with pytest.raises(StoreUnavailable, match="in time"):
        await expired.future
    peer.writer.write(b":1\r\n:2\r\n")
    assert await patient.future == 2


async def test_a_silent_server_is_given_up(peer: Peer) -> None:
    wire, losses = await wire_to(peer)
    sent = command(packed(b"A"))
    wire.send(sent)
    await peer.reader.read(100)
    wire.check(asyncio.get_running_loop().time() + 9, timeout=10)
    assert not losses
    wire.check(asyncio.get_running_loop().time() + 11, timeout=10)
    assert losses == [([sent], [])]


async def test_a_question_gets_its_own_refusal(peer: Peer) -> None:
    wire, _ = await wire_to(peer)
    question = wire.ask(packed(b"AUTH", b"secret"))
    peer.writer.write(b"-WRONGPASS invalid secret\r\n")
    with pytest.raises(Refused) as caught:
        await question
    assert caught.value.code == "WRONGPASS"
    assert "secret" not in str(caught.value)
    orphan = wire.ask(packed(b"PING"))
    wire.abort()
    with pytest.raises(ConnectionResetError):
        await orphan
