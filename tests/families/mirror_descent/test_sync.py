"""Messages between nodes, weights, and nodes that mix: agreement, absence, changes, lies."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument, PeerUnavailable
from discreet.families.mirror_descent.document import NeighbourDocument
from discreet.families.mirror_descent.model import NodeSums
from discreet.families.mirror_descent.recommender import MirrorDescentRecommender
from discreet.families.mirror_descent.sync import (
    ModelExchange,
    NeighbourNodes,
    neighbour_weights,
    read_message,
    write_message,
)
from discreet.families.observer import NullObserver
from discreet.families.peering import NoPeers
from discreet.research.noise import SeededNoise
from tests.families.mirror_descent.nodes import (
    DIMENSION,
    Clock,
    built,
    load,
    node,
    release,
    teach,
)

pytestmark = pytest.mark.anyio

SUMS = NodeSums(np.array([1.0, -2.5, 0.0]), count=7.5, squares=20.0)
MESSAGE = write_message(SUMS, revision=bytes(range(16)), degree=2)


def test_a_message_survives_the_wire() -> None:
    again = read_message(MESSAGE.encode(), dimension=3)
    assert (again.revision, again.degree) == (MESSAGE.revision, 2)
    assert (again.count, again.squares) == (7.5, 20.0)
    assert again.gradients is not None
    assert again.gradients.tolist() == [1.0, -2.5, 0.0]
    short = read_message(MESSAGE.shortened(MESSAGE.revision).encode(), dimension=3)
    assert short.gradients is None
    assert MESSAGE.shortened(bytes(16)) is MESSAGE


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        replace(MESSAGE, gradients=np.full(3, np.nan, dtype=np.float32)).encode(),
        replace(MESSAGE, gradients=np.full(3, 1e31, dtype=np.float32)).encode(),
        replace(MESSAGE, count=-1.0).encode(),
        replace(MESSAGE, squares=float("nan")).encode(),
        replace(MESSAGE, count=float("inf")).encode(),
        replace(MESSAGE, dimension=5).encode(),
        replace(MESSAGE, gradients=np.zeros(5, dtype=np.float32)).encode(),
        b"XXXX" + MESSAGE.encode()[4:],
    ],
)
def test_what_cannot_be_mixed_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidArgument):
        read_message(content, dimension=3)


def test_an_exchange_says_only_what_is_new() -> None:
    exchange = ModelExchange(name="feed", message=lambda: MESSAGE, observer=NullObserver())
    assert exchange.answer(peer="b", seen=b"") == MESSAGE.encode()
    assert len(exchange.answer(peer="b", seen=MESSAGE.revision)) < 64


def test_weights_are_those_of_metropolis_and_the_missing_have_none() -> None:
    assert neighbour_weights({"a": 2, "b": 5}, ["b"]) == {"b": 1 / 6}
    assert neighbour_weights({"a": 1, "b": 2}, ["a", "b"]) == {"a": 1 / 3, "b": 1 / 3}


def test_a_round_is_a_weighted_mean_and_one_without_a_difference_is_none() -> None:
    neighbours = NeighbourNodes(
        name="feed",
        documents=[NeighbourDocument(name="b", url="http://b")],
        dimension=3,
        peers=NoPeers(),
        observer=NullObserver(),
    )
    own = NodeSums(np.array([3.0, 0.5, 2.0]), count=1.5, squares=0.0)
    mixed = neighbours.mix(own, {"b": replace(MESSAGE, degree=3)})
    assert mixed is not None
    assert mixed.gradients.tolist() == [2.5, -0.25, 1.5]
    assert (mixed.count, mixed.squares) == (3.0, 5.0)
    assert own.gradients.tolist() == [3.0, 0.5, 2.0]
    assert neighbours.mix(own, {}) is None
    assert neighbours.mix(SUMS, {"b": MESSAGE}) is None


class Wire:
    """Nodes that reach each other without a network, and may be cut off."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.nodes: dict[str, MirrorDescentRecommender] = {}
        self.dead: set[str] = set()
        self.lies: dict[str, bytes] = {}
        self.distrusted: list[str] = []
        self.bytes = 0
        self.questions = 0

    def reachable(self, peer: str, *, urgent: bool = False) -> bool:
        return True

    async def post(
        self, *, peer: str, url: str, content: bytes, seconds: float | None = None
    ) -> tuple[int, bytes]:
        self.questions += 1
        if peer in self.dead:
            raise PeerUnavailable("gone", reason="dead")
        if peer in self.lies:
            return 200, self.lies[peer]
        assert url == f"http://{peer}/peers/recommenders/feed/models"
        seen = bytes.fromhex(json.loads(content)["seen"])
        body = self.nodes[peer].part(ModelExchange).answer(peer="other", seen=seen)
        self.bytes += len(body)
        return 200, body

    def distrust(self, *, peer: str, urgent: bool = False) -> None:
        self.distrusted.append(peer)

    def add(
        self, name: str, neighbours: Sequence[str], like: MirrorDescentRecommender | None = None
    ) -> MirrorDescentRecommender:
        """Build a node, or, `like` one, that node again with other neighbours."""
        documents = [{"name": other, "url": f"http://{other}"} for other in neighbours]
        document = node(neighbours=documents, mixing_seconds=5)
        found = built(document, peers=self, clock=self.clock, like=like)
        self.nodes[name] = found
        return found

    async def mix_all(self, rounds: int) -> None:
        for _ in range(rounds):
            for name, one in self.nodes.items():
                if name not in self.dead:
                    await one.mix()

    def thetas(self) -> np.ndarray[Any, Any]:
        return np.array([one.current.model.mixed.theta for one in self.nodes.values()])


def spread(found: np.ndarray[Any, Any]) -> float:
    return float(np.abs(found - found.mean(axis=0)).max() / np.abs(found).max())


def others(name: str) -> list[str]:
    """The neighbours in a ring of four."""
    place = "abcd".index(name)
    return sorted({"abcd"[place - 1], "abcd"[(place + 1) % 4]})


@pytest.fixture
async def wire() -> Wire:
    """Four nodes in a ring, each with its own store; node a alone has learned something."""
    wire = Wire()
    for name in "abcd":
        wire.add(name, others(name))
    await teach(wire.nodes["a"], 8)
    await release(wire.nodes["a"], SeededNoise(1))
    return wire


async def test_neighbours_come_together(wire: Wire) -> None:
    before = wire.thetas()
    await wire.mix_all(12)
    after = wire.thetas()
    assert spread(before) > 0.7
    assert spread(after) < 0.01
    # Asking one after the other moves the mean a little, and only a little.
    assert np.allclose(after.mean(axis=0), before.mean(axis=0), atol=0.5 * np.abs(before).max())
    counts = [one.current.model.mixed.count for one in wire.nodes.values()]
    assert max(counts) - min(counts) < 1.5


async def test_once_they_agree_messages_are_short_and_nothing_is_written(wire: Wire) -> None:
    await wire.mix_all(40)
    wire.bytes = 0
    assert [await one.mix() for one in wire.nodes.values()] == [False] * 4
    assert wire.bytes < 8 * 100


async def test_a_missing_neighbour_is_left_out_and_comes_back(wire: Wire) -> None:
    wire.dead.add("b")
    await wire.mix_all(30)
    found = wire.thetas()
    assert not found[1].any()
    assert spread(found[[0, 2, 3]]) < 0.05
    wire.dead.clear()
    await wire.mix_all(15)
    assert spread(wire.thetas()) < 0.02


async def test_neighbours_can_change_while_running(wire: Wire) -> None:
    await wire.mix_all(1)
    before = wire.thetas()
    for name, one in list(wire.nodes.items()):
        wire.add(name, [other for other in "abcd" if other != name], like=one)
        await load(wire.nodes[name])
        await wire.nodes[name]._load_mixture()
    assert (wire.thetas() == before).all()
    await wire.mix_all(3)
    assert spread(wire.thetas()) < 0.05


async def test_lies_are_not_mixed_in(wire: Wire) -> None:
    a = wire.nodes["a"]
    before = a.current.model.mixed
    good = a.message()
    for lie in (b"{}", replace(good, gradients=np.full(DIMENSION, np.nan, np.float32)).encode()):
        wire.lies = {"b": lie, "d": lie}
        wire.distrusted.clear()
        assert not await a.mix()
        assert sorted(wire.distrusted) == ["b", "d"]
    assert (a.current.model.mixed.gradients == before.gradients).all()


async def test_a_release_during_a_round_and_a_round_during_a_release_are_both_kept(
    wire: Wire,
) -> None:
    a = wire.nodes["a"]
    await wire.mix_all(2)
    mixed = a.current.model.mixed
    # A releaser in another worker has gathered, and draws its noise, while a round ends here.
    other = built(a.document, peers=wire, clock=wire.clock, like=a)
    await load(other)
    await other._load_mixture()
    assert await wire.nodes["b"].mix()
    assert await a.mix()
    moved = a.current.model.mixed
    assert (moved.gradients != mixed.gradients).any()
    await teach(other, 2)
    assert await release(other, SeededNoise(2))
    added = other.current.model.own.gradients - a.current.model.own.gradients
    assert added.any()
    # Each takes over what the other has done, in either order.
    await load(a)
    await other._load_mixture()
    for one in (a, other):
        assert one.current.model.mixed.gradients == pytest.approx(moved.gradients + added)
    assert a.message().revision == other.message().revision
    assert (a.current.model.weights == other.current.model.weights).all()


async def test_a_model_that_was_read_before_a_round_ended_is_mixed_all_the_same(wire: Wire) -> None:
    a = wire.nodes["a"]
    read = a.decode(a.encode(a.current.model))
    assert await a.mix()
    added = a.current.model.neighbours
    a.adopt(number=2, released_at=wire.clock(), model=read)
    assert a.current.model.neighbours is added
    assert a.current.model.mixed.count != a.current.model.own.count


async def test_a_worker_waits_with_a_mixture_until_it_has_the_sums_it_belongs_to(
    wire: Wire,
) -> None:
    a = wire.nodes["a"]
    await wire.nodes["b"].mix()
    assert await a.mix()
    other = built(a.document, peers=wire, clock=wire.clock, like=a)
    await other.tend()
    assert other.current.model.neighbours is None
    await load(other)
    await other._load_mixture()
    assert (other.current.model.weights == a.current.model.weights).all()


async def test_one_of_all_workers_mixes_when_it_is_time(wire: Wire) -> None:
    a = wire.nodes["a"]
    workers = [a, built(a.document, peers=wire, clock=wire.clock, like=a)]
    await load(workers[1])
    await wire.nodes["b"].mix()
    for seconds in (0.0, 0.0, 4.9, 0.2, 0.0):
        wire.clock.now += seconds
        for worker in workers:
            await worker.tend()
    assert wire.questions == 2 + 2 * 2
    assert (workers[0].current.model.weights == workers[1].current.model.weights).all()


async def test_what_was_mixed_survives_a_restart_without_neighbours(wire: Wire) -> None:
    await wire.mix_all(3)
    c = wire.nodes["c"]
    again = built(node(), clock=wire.clock, like=c)
    await load(again)
    await again.tend()
    assert again.current.model.weights.any()
    assert (again.current.model.weights == c.current.model.weights).all()
