"""Turns: clients are held all at once, in the order in which they were asked for."""

import asyncio
from collections.abc import Sequence

import pytest

from discreet.families.p_rec.turns import ClientTurns
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio


class Watched:
    """Turns that note when they begin and end."""

    def __init__(self) -> None:
        self.turns = ClientTurns()
        self.seen: list[str] = []
        self.held: set[bytes] = set()

    async def hold(self, name: str, clients: Sequence[bytes], until: asyncio.Event) -> None:
        async with self.turns.hold(clients):
            assert not self.held & set(clients)
            self.held |= set(clients)
            self.seen.append(name)
            await until.wait()
            self.held -= set(clients)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_others_do_not_wait_and_whoever_shares_a_client_does() -> None:
    watched, first, rest = Watched(), asyncio.Event(), asyncio.Event()
    rest.set()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(watched.hold("one", [b"a", b"b"], first))
        tasks.create_task(watched.hold("two", [b"b", b"c"], rest))
        tasks.create_task(watched.hold("three", [b"d"], rest))
        tasks.create_task(watched.hold("four", [b"c", b"a"], rest))
        await settle()
        assert watched.seen == ["one", "three"]
        first.set()
    assert watched.seen == ["one", "three", "two", "four"]
    assert not watched.turns._last


async def test_one_that_is_cancelled_while_it_waits_lets_nobody_in_too_early() -> None:
    watched, first, rest = Watched(), asyncio.Event(), asyncio.Event()
    rest.set()
    holds = asyncio.create_task(watched.hold("one", [b"a"], first))
    await settle()
    gone = asyncio.create_task(watched.hold("two", [b"a", b"b"], rest))
    await settle()
    last = asyncio.create_task(watched.hold("three", [b"b", b"a"], rest))
    gone.cancel()
    await settle()
    assert gone.cancelled()
    assert watched.seen == ["one"]
    first.set()
    await asyncio.gather(holds, last)
    assert watched.seen == ["one", "three"]
    assert not watched.turns._last


async def test_a_turn_that_fails_ends() -> None:
    turns = ClientTurns()
    with pytest.raises(ValueError, match="out of order"):
        async with turns.hold([b"a"]):
            raise ValueError("out of order")
    async with asyncio.timeout(PATIENCE), turns.hold([b"a"]):
        pass
    assert not turns._last
