"""What the store calls: commands of one turn travel together, and a closed sender answers none."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from discreet.errors import StoreUnavailable
from discreet.state import scripts
from discreet.state.client import StoreCommand
from discreet.state.urls import parse
from discreet.state.wire.sender import CommandSender
from tests.state.servers import Server, valkey

pytestmark = pytest.mark.anyio

SCRIPTS = [script.source for script in scripts.ALL]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with valkey(tmp_path_factory.mktemp("sender") / "data") as running:
        yield running


@pytest.fixture
async def sender(server: Server) -> AsyncIterator[CommandSender]:
    server.do("FLUSHALL")
    one = CommandSender(parse(server.url), scripts=SCRIPTS, timeout=20)
    await one.open()
    yield one
    await one.close()
    server.do("CLIENT", "UNPAUSE")


def command(*words: bytes | int, repeatable: bool = True) -> StoreCommand:
    return StoreCommand(b"key", words, repeatable)


async def test_every_answer_stands_in_its_place_and_an_error_is_one(sender: CommandSender) -> None:
    found = await sender.send(
        [
            command(b"SET", b"key", b"text"),
            command(b"INCR", b"key"),
            command(b"GET", b"key"),
            command(b"NONSENSE"),
            command(b"GET", b"absent"),
        ]
    )
    assert found[::2] == [b"OK", b"text", None]
    assert [type(each) for each in found[1::2]] == [StoreUnavailable] * 2
    assert "text" not in str(found[1])
    assert await sender.send([]) == []


async def test_commands_of_one_turn_travel_together(sender: CommandSender, server: Server) -> None:
    """The server counts what it reads: 400 commands in far fewer reads than commands."""
    server.do("CONFIG", "RESETSTAT")
    before = server.do("INFO", "stats")["total_reads_processed"]
    sent = [sender.send([command(b"GET", b"%d" % n)] * 4) for n in range(100)]
    assert [await each for each in sent] == [[None] * 4] * 100
    stats = server.do("INFO", "stats")
    assert stats["total_commands_processed"] >= 400
    assert stats["total_reads_processed"] - before < 40


async def test_the_next_turn_does_not_wait_for_the_answers_of_this_one(
    sender: CommandSender, server: Server
) -> None:
    """A paused server answers nobody, yet the second turn's command reaches it too."""
    server.do("CLIENT", "PAUSE", 60_000, "WRITE")
    first = sender.send([command(b"SET", b"key", b"1")])
    for _ in range(3):
        await asyncio.sleep(0)
    second = sender.send([command(b"INCR", b"key")])
    for _ in range(3):
        await asyncio.sleep(0)
    assert not first.done()
    server.do("CLIENT", "UNPAUSE")
    assert (await first, await second) == ([b"OK"], [2])


async def test_flushed_scripts_are_loaded_again(sender: CommandSender, server: Server) -> None:
    server.do("SCRIPT", "FLUSH", "SYNC")
    call = command(*scripts.HOLD.call((b"key",), b"me", 60_000, b""))
    assert await sender.send([call] * 50) == [1] * 50


async def test_a_closed_sender_answers_nothing(server: Server) -> None:
    sender = CommandSender(parse(server.url), scripts=SCRIPTS, timeout=20)
    with pytest.raises(StoreUnavailable, match="not open"):
        sender.send([])
    await sender.open()
    with pytest.raises(StoreUnavailable, match="already"):
        await sender.open()
    server.do("CLIENT", "PAUSE", 60_000, "WRITE")
    outstanding = sender.send([command(b"SET", b"key", b"1")] * 3)
    await asyncio.sleep(0)
    await sender.close()
    server.do("CLIENT", "UNPAUSE")
    assert [type(each) for each in await outstanding] == [StoreUnavailable] * 3
    with pytest.raises(StoreUnavailable, match="not open"):
        sender.send([])
    await sender.close()
