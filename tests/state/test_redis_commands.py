"""Three ways to ask: one answer, all or an error, each or its error. Always sent when called."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from discreet.errors import StoreUnavailable
from discreet.state.client import StoreCommand
from discreet.state.keys import StoreKeys
from discreet.state.redis_commands import RedisCommands

pytestmark = pytest.mark.anyio

LOST = StoreUnavailable("lost")


class Scripted:
    """A client that answers what it was told to."""

    def __init__(self, *replies: Any) -> None:
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
