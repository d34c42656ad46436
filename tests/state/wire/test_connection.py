"""How commands leave, how replies find them, and what a connection knows of them when it goes."""

import asyncio
from typing import Any

import pytest

from discreet.errors import StoreUnavailable
from discreet.state.wire.commands import packed
from discreet.state.wire.connection import (
    AT_ONCE,
    LARGE,
    CommandRefused,
    PipelinedConnection,
)
from tests.state.wire.peers import Peer, commands, connected

pytestmark = pytest.mark.anyio


def written_by(connection: PipelinedConnection) -> list[bytes]:
    """Note what leaves, write by write."""
    transport: Any = connection._transport
    writes: list[bytes] = []

    class Noting:
        def write(self, data: bytes) -> None:
            writes.append(data)
            transport.write(data)

        def abort(self) -> None:
            transport.abort()

    connection._transport = Noting()  # type: ignore[assignment]
    return writes


async def test_replies_find_their_commands_in_order(peer: Peer) -> None:
    connection, losses = await connected(peer)
    many = commands(100)
    connection.send(many)
    assert connection.in_flight == 100
    replies = b"".join(b":%d\r\n" % number for number in range(100))
    peer.writer.write(replies[:77])
    await peer.writer.drain()
    peer.writer.write(replies[77:])
    assert await many[0].group.future == list(range(100))
    connection.abort()
    assert losses == [([], [])]


async def test_commands_of_one_turn_leave_in_one_write(peer: Peer) -> None:
    connection, _ = await connected(peer)
    writes = written_by(connection)
    groups = [commands(size, payload=packed((b"N", size))) for size in (1, 3, 1)]
    for group in groups:
        connection.send(group)
    assert writes == []
    await asyncio.sleep(0)
    assert writes == [b"".join(each.payload for group in groups for each in group)]
    connection.send([])
    await asyncio.sleep(0)
    assert (len(writes), connection.in_flight) == (1, 5)


async def test_many_commands_leave_in_a_few_writes_before_the_turn_ends(peer: Peer) -> None:
    connection, _ = await connected(peer)
    writes = written_by(connection)
    first, many, last = commands(1), commands(2 * AT_ONCE + 250), commands(1)
    connection.send(first)
    connection.send(many)
    assert len(writes) == 2, "what waited for the turn to end goes first"
    connection.send(last)
    everything = b"".join(each.payload for each in (*first, *many, *last))
    assert await peer.reader.readexactly(len(everything)) == everything
    assert len(writes) == 3
    peer.answer(*range(len(many) + 2))
    assert await last[0].group.future == [len(many) + 1]
    assert await many[0].group.future == list(range(1, len(many) + 1))


async def test_a_large_command_leaves_at_once_behind_those_that_wait(peer: Peer) -> None:
    connection, _ = await connected(peer)
    writes = written_by(connection)
    small, large = commands(1), commands(1, payload=packed((b"SET", b"x" * LARGE)))
    connection.send(small)
    connection.send(large)
    assert writes == [small[0].payload + large[0].payload]
    await asyncio.sleep(0)
    assert len(writes) == 1


async def test_what_was_not_written_is_known_to_be_unsent(peer: Peer) -> None:
    """The peer reads nothing, so the system's buffers fill and the last chunks stay with us."""
    connection, losses = await connected(peer)
    many = commands(8 * AT_ONCE, payload=packed((b"SET", b"x" * 10_000)))
    connection.send(many)
    connection.abort()
    ((ran, unsent),) = losses
    assert len(ran) == AT_ONCE, "one chunk overfills the buffers"
    assert [*ran, *unsent] == many


async def test_a_connection_that_is_gone_has_sent_nothing(peer: Peer) -> None:
    connection, losses = await connected(peer)
    connection.abort()
    many = commands(3)
    connection.send(many)
    await asyncio.sleep(0)
    assert losses[1:] == [([], many)]


async def test_a_peer_that_hangs_up_loses_what_it_was_sent(peer: Peer) -> None:
    connection, losses = await connected(peer)
    sent = commands(1)
    connection.send(sent)
    await peer.reader.read(100)
    lost = asyncio.Event()
    note = connection.lost
    connection.lost = lambda ran, unsent: (note(ran, unsent), lost.set())[0]
    peer.writer.transport.abort()
    await lost.wait()
    assert losses == [(sent, [])]


async def test_a_reply_to_nothing_ends_the_connection(peer: Peer) -> None:
    connection, losses = await connected(peer)
    peer.answer(1)
    assert await peer.reader.read(1) == b""
    assert losses == [([], [])]
    assert connection.in_flight == 0


async def test_an_expired_command_fails_alone_and_its_reply_is_still_matched(peer: Peer) -> None:
    connection, _ = await connected(peer)
    now = asyncio.get_running_loop().time()
    many, others = commands(3, float("inf"), now), commands(1)
    connection.send([*many, *others])
    for _ in range(2):
        connection.check(now + 0.1, timeout=10)
    assert [each.done for each in many] == [False, True, False]
    peer.answer(1, 2, 3, 4)
    assert await others[0].group.future == [4]
    first, expired, last = await many[0].group.future
    assert (first, last) == (1, 3)
    assert isinstance(expired, StoreUnavailable)


async def test_time_in_which_nothing_was_polled_is_not_the_servers(peer: Peer) -> None:
    """The reply lies unread in the socket: neither the command nor the connection is given up."""
    connection, losses = await connected(peer)
    now = asyncio.get_running_loop().time()
    sent = commands(1, now + 2.0)
    connection.send(sent)
    connection.excuse(13.0)
    connection.check(now + 14.0, timeout=2.0)
    assert (losses, sent[0].done) == ([], False)
    peer.answer(1)
    assert await sent[0].group.future == [1]


async def test_who_gives_up_disturbs_nobody(peer: Peer) -> None:
    connection, losses = await connected(peer)
    given_up, kept = commands(2), commands(2)
    connection.send([*given_up, *kept])
    given_up[0].group.future.cancel()
    connection.check(asyncio.get_running_loop().time(), timeout=10)
    peer.answer(1, 2, 3, 4)
    assert await kept[0].group.future == [3, 4]
    assert (losses, connection.in_flight) == ([], 0)


async def test_a_silent_server_is_given_up(peer: Peer) -> None:
    connection, losses = await connected(peer)
    sent = commands(1)
    connection._progress -= 1_000  # a connection that was idle for long is not late at once
    connection.send(sent)
    connection.check(asyncio.get_running_loop().time() + 9, timeout=10)
    assert not losses
    connection.check(asyncio.get_running_loop().time() + 11, timeout=10)
    assert losses == [([], sent)], "the turn had not ended, so nothing was written"


async def test_a_question_gets_its_own_refusal(peer: Peer) -> None:
    connection, _ = await connected(peer)
    connection.lost = PipelinedConnection(asyncio.get_running_loop()).lost
    question = asyncio.ensure_future(connection.ask((b"AUTH", b"secret"), (b"PING",)))
    peer.writer.write(b"-WRONGPASS invalid secret\r\n+PONG\r\n")
    with pytest.raises(CommandRefused) as caught:
        await question
    assert caught.value.code == "WRONGPASS"
    assert "secret" not in str(caught.value)
    orphan = asyncio.ensure_future(connection.ask((b"PING",)))
    await asyncio.sleep(0)
    connection.abort()
    with pytest.raises(ConnectionResetError):
        await orphan
