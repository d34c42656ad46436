"""Three ways to ask: one answer, all or an error, each or its error. Always sent when called."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from discreet.errors import StoreDamaged, StoreUnavailable
from discreet.state.client import StoreCommand
from discreet.state.keys import StoreKeys
from discreet.state.redis_commands import RedisCommands

pytestmark = pytest.mark.anyio

LOST = StoreUnavailable("lost")


class Scripted:
    """A client that answers what it was told to."""

    def __init__(self, *replies: Any, one_server: bool = True) -> None:
        self.one_server = one_server
        self.sent: list[StoreCommand] = []
        self._replies = list(replies)

    def send(self, commands: Sequence[StoreCommand]) -> "asyncio.Future[list[Any]]":
        self.sent.extend(commands)
        future = asyncio.get_running_loop().create_future()
        future.set_result(self._replies)
        return future


def asking(*replies: Any) -> tuple[RedisCommands, Scripted]:
    client = Scripted(*replies)
    return RedisCommands(client, StoreKeys()), client  # type: ignore[arg-type]


async def test_one_command_is_sent_when_called_and_read_when_awaited() -> None:
    commands, client = asking(b"7")
    answer = commands._ask(int, b"k", (b"GET", b"k"), repeatable=False)
    assert client.sent == [StoreCommand(b"k", (b"GET", b"k"), False)]
    assert [await answer, await answer] == [7, 7]


@pytest.mark.parametrize("reply", [LOST, b"seven", None])
async def test_the_error_of_one_is_raised(reply: Any) -> None:
    commands, _ = asking(reply)
    with pytest.raises(StoreUnavailable):
        await commands._ask(int, b"k", (b"GET", b"k"))


async def test_all_or_an_error() -> None:
    many = [StoreCommand(b"k", (b"GET", b"k"))] * 2
    commands, _ = asking(b"1", b"2")
    assert await commands._ask_all(int, many) == [1, 2]
    commands, _ = asking(b"1", LOST)
    with pytest.raises(StoreUnavailable, match="lost"):
        await commands._ask_all(int, many)


async def test_each_or_its_error() -> None:
    many = [StoreCommand(b"k", (b"GET", b"k"))] * 4
    commands, client = asking(b"1", LOST, b"x", b"2")
    found = await commands._ask_each(int, many)
    assert client.sent == many
    assert (found[0], found[1], found[3]) == (1, LOST, 2)
    assert isinstance(found[2], StoreUnavailable)


async def test_values_on_one_server_are_read_by_few_commands() -> None:
    keys = [b"%d" % number for number in range(65)]
    commands, client = asking([*keys[:64]], [b"64"])
    assert await commands._ask_values(int, keys) == list(range(65))
    assert client.sent == [
        StoreCommand(b"0", (b"MGET", *keys[:64])),
        StoreCommand(b"64", (b"MGET", b"64")),
    ]
    commands, _ = asking([b"1", b"not a number"])
    with pytest.raises(StoreDamaged):
        await commands._ask_values(int, [b"a", b"b"])
    commands, _ = asking(LOST)
    with pytest.raises(StoreUnavailable, match="lost"):
        await commands._ask_values(int, [b"a", b"b"])


async def test_values_in_a_cluster_are_read_one_by_one() -> None:
    client = Scripted(b"1", b"2", one_server=False)
    commands = RedisCommands(client, StoreKeys())  # type: ignore[arg-type]
    assert await commands._ask_values(int, [b"a", b"b"]) == [1, 2]
    assert [command.words for command in client.sent] == [(b"GET", b"a"), (b"GET", b"b")]
