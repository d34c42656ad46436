"""Nodes that hear each other: agreement, absence, changes, lies."""

import math
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from discreet.families.mirror_descent.broadcasts import load_known
from discreet.families.mirror_descent.letters import Letter, read_letter
from discreet.families.mirror_descent.neighbours import letter_of, mix
from discreet.decisions.runtime import Runtime
from discreet.errors import InvalidArgument, PeerUnavailable
from discreet.privacy.noise import SystemNoise
from discreet.state.memory import MemoryStore
from tests.decisions.conftest import Clock
from tests.families.mirror_descent.scenes import (
    DIMENSION,
    found,
    node,
    release,
    teach,
)

pytestmark = pytest.mark.anyio


class Wire:
    """Instances that hear each other without a network, and may be cut off."""

    def __init__(self) -> None:
        self.nodes: dict[str, Runtime] = {}
        self.dead: set[str] = set()
        self.lies: dict[str, bytes] = {}
        self.distrusted: list[str] = []
        self.bytes = 0

    def reachable(self, peer: str) -> bool:
        return True

    async def post(self, *, peer: str, url: str, content: bytes) -> tuple[int, bytes]:
        if peer in self.dead:
            raise PeerUnavailable("gone", reason="dead")
        if peer in self.lies:
            return 200, self.lies[peer]
        recommender = await found(self.nodes[peer])
        known = await load_known(self.nodes[peer], recommender)
        seen = bytes.fromhex(content.decode().partition('":"')[2].rstrip('"}'))
        letter = letter_of(recommender, known).shortened(seen).encode()
        self.bytes += len(letter)
        return 200, letter

    def distrust(self, *, peer: str) -> None:
        self.distrusted.append(peer)


def ring(names: str) -> dict[str, list[dict[str, str]]]:
    return {
        name: [
            {"name": other, "url": f"http://{other}"}
            for other in sorted({names[place - 1], names[(place + 1) % len(names)]} - {name})
        ]
        for place, name in enumerate(names)
    }


@pytest.fixture
async def wire(clock: Clock) -> AsyncIterator[Wire]:
    """Four nodes in a ring, each with its own store; node a alone has learned something."""
    wire = Wire()
    runtimes = []
    for name, neighbours in ring("abcd").items():
        runtime = await Runtime.open(
            store=MemoryStore(clock=clock),
            noise=SystemNoise(),
            lease_seconds=math.inf,
            survey_seconds=math.inf,
            clock=clock,
            peers=wire,
        )
        await runtime.registry.put("feed", node(neighbours=neighbours))
        wire.nodes[name] = runtime
        runtimes.append(runtime)
    await teach(wire.nodes["a"], 8)
    await release(wire.nodes["a"], await found(wire.nodes["a"]))
    yield wire
    for runtime in runtimes:
        await runtime.close()


async def thetas(wire: Wire) -> np.ndarray[Any, Any]:
    return np.array(
        [(await load_known(one, await found(one))).theta for one in wire.nodes.values()]
    )


async def mix_all(wire: Wire, rounds: int) -> None:
    for _ in range(rounds):
        for name, runtime in wire.nodes.items():
            if name not in wire.dead:
                await mix(runtime, await found(runtime))


def spread(found: np.ndarray[Any, Any]) -> float:
    return float(np.abs(found - found.mean(axis=0)).max() / np.abs(found).max())


async def test_neighbours_come_together(wire: Wire) -> None:
    before = await thetas(wire)
    await mix_all(wire, 12)
    after = await thetas(wire)
    assert spread(before) > 0.7
    assert spread(after) < 0.01
    # Asking one after the other moves the mean a little, and only a little.
    assert np.allclose(after.mean(axis=0), before.mean(axis=0), atol=0.5 * np.abs(before).max())
    counts = [(await load_known(one, await found(one))).count for one in wire.nodes.values()]
    assert max(counts) - min(counts) < 1.5


async def test_once_they_agree_letters_are_short_and_nothing_is_written(wire: Wire) -> None:
    await mix_all(wire, 40)
    versions = [(await load_known(one, await found(one))).version for one in wire.nodes.values()]
    wire.bytes = 0
    await mix_all(wire, 1)
    again = [(await load_known(one, await found(one))).version for one in wire.nodes.values()]
    assert versions == again
    assert wire.bytes < 8 * 100


async def test_a_missing_neighbour_has_no_voice_and_comes_back(wire: Wire) -> None:
    wire.dead.add("b")
    await mix_all(wire, 30)
    others = await thetas(wire)
    assert not others[1].any()
    assert spread(others[[0, 2, 3]]) < 0.05
    wire.dead.clear()
    await mix_all(wire, 15)
    assert spread(await thetas(wire)) < 0.02


async def test_the_topology_can_change_while_running(wire: Wire) -> None:
    complete = {
        name: [{"name": other, "url": f"http://{other}"} for other in "abcd" if other != name]
        for name in "abcd"
    }
    for name, runtime in wire.nodes.items():
        await runtime.registry.put("feed", node(neighbours=complete[name]))
    await mix_all(wire, 3)
    assert spread(await thetas(wire)) < 0.05


async def test_lies_are_not_mixed_in(wire: Wire) -> None:
    a = wire.nodes["a"]
    recommender = await found(a)
    before = await load_known(a, recommender)
    good = letter_of(recommender, before)
    assert good.theta is not None
    for lie in (
        b"",
        b"{}",
        replace(good, theta=np.full(DIMENSION, np.nan)).encode(),
        replace(good, theta=np.full(DIMENSION, 1e13)).encode(),
        replace(good, count=-1.0).encode(),
        replace(good, dimension=5).encode(),
        replace(good, theta=np.zeros(5)).encode(),
    ):
        wire.lies = {"b": lie, "d": lie}
        wire.distrusted.clear()
        assert not await mix(a, recommender)
        assert sorted(wire.distrusted) == ["b", "d"]
    after = await load_known(a, recommender)
    assert (after.theta == before.theta).all()


def test_a_letter_survives_the_wire() -> None:
    letter = Letter(bytes(range(16)), 3, 2, 7.5, np.array([1.0, -2.5, 0.0]))
    again = read_letter(letter.encode(), dimension=3)
    assert (again.revision, again.degree, again.count) == (letter.revision, 2, 7.5)
    assert again.theta is not None
    assert again.theta.tolist() == [1.0, -2.5, 0.0]
    short = read_letter(letter.shortened(letter.revision).encode(), dimension=3)
    assert short.theta is None
    with pytest.raises(InvalidArgument):
        read_letter(letter.encode(), dimension=4)
