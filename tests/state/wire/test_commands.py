"""A group is answered once all of it is, each entry once, whatever becomes of the others."""

import asyncio

import pytest

from discreet.errors import StoreUnavailable
from discreet.state.wire.commands import CommandGroup, packed, packed_group
from tests.state.wire.peers import commands

pytestmark = pytest.mark.anyio


async def test_a_group_is_answered_once_all_of_it_is() -> None:
    many = commands(3)
    future = many[0].group.future
    for position in (2, 0):
        many[position].answer(position)
    assert [each.done for each in many] == [True, False, True]
    many[0].answer("again")
    many[0].answer(StoreUnavailable("again"))
    assert not future.done(), "one entry counted for two"
    lost = StoreUnavailable("lost")
    many[1].answer(lost)
    assert await future == [0, lost, 2]


async def test_a_group_that_nobody_awaits_any_more_is_done() -> None:
    many = commands(2)
    many[0].group.future.cancel()
    assert all(each.done for each in many)
    for each in many:
        each.answer(1)


async def test_an_empty_group_is_answered_at_once() -> None:
    assert await CommandGroup(asyncio.get_running_loop(), 0).future == []
    assert await packed_group([])[0].future == []


def test_words_are_packed_as_the_protocol_wants_them() -> None:
    words = [b"k", b"", b"\r\n$1\r\n", b"x" * 100]
    encoded = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
    assert packed([*words, 7, -1]) == b"*6\r\n" + encoded + b"$1\r\n7\r\n$2\r\n-1\r\n"
