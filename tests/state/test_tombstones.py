"""Erasures are counted, and decisions from before one are recognised."""

import pytest

from discreet.errors import ClientErased
from discreet.state.memory import MemoryStore
from discreet.state.tombstones import Tombstones

pytestmark = pytest.mark.anyio

ANN, BOB = b"a" * 16, b"b" * 16


async def test_erasures_are_counted_by_principal() -> None:
    now = 10.25
    tombstones = Tombstones(MemoryStore(clock=lambda: now))
    assert await tombstones.count(ANN) == 0
    assert await tombstones.mark(ANN) == (1, 10.25)
    now = 20.5
    assert await tombstones.mark(ANN) == (2, 20.5)
    assert (await tombstones.count(ANN), await tombstones.count(BOB)) == (2, 0)


async def test_an_erasure_since_the_first_look_is_refused() -> None:
    tombstones = Tombstones(MemoryStore())
    await tombstones.mark(ANN)
    await tombstones.refuse_if_erased(ANN, since=1)
    with pytest.raises(ClientErased):
        await tombstones.refuse_if_erased(ANN, since=0)


async def test_decisions_from_before_an_erasure_are_covered() -> None:
    tombstones = Tombstones(MemoryStore(clock=lambda: 9.1))
    await tombstones.mark(ANN)
    decisions = [(ANN, 9), (ANN, 10), (ANN, 11), (BOB, 9)]
    assert await tombstones.cover(decisions) == [True, True, False, False]
    assert await tombstones.cover([]) == []
