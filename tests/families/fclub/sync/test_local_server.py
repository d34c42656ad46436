"""The local side: every update arrives, once, whatever fails on the way; nobody waits for it."""

from typing import Any

import numpy as np
import pytest

from discreet.families.fclub.model import NumberedUpdate
from discreet.families.fclub.recommender import ClusterRecommender
from discreet.families.fclub.sums import NoisyUpdate
from discreet.families.fclub.sync import local_server
from discreet.families.fclub.sync.local_server import (
    LONGEST_PAUSE,
    SHORTEST_PAUSE,
    Deliveries,
)
from discreet.research.noise import SeededNoise
from discreet.state.memory import MemoryStore
from tests.families.fclub.servers import (
    BY_OBSERVATION,
    GENEROUS,
    LEFT,
    RIGHT,
    UNPROTECTED,
    Clock,
    Wire,
    answer,
    built,
    exchange,
    kept,
    local,
    merging,
    own_sums,
    play,
    release,
    total_sums,
)

pytestmark = pytest.mark.anyio

SHARING = {"first_update": 20}


class Pair:
    """A local server and the global one."""

    def __init__(
        self, hub: ClusterRecommender | None = None, label: str = "shop-a", **changes: Any
    ):
        self.clock = Clock()
        self.hub = hub or built(merging())
        self.wire = Wire(self.hub, label)
        fields = {"privacy": UNPROTECTED, "sharing": SHARING, **changes}
        self.shop = built(local(**fields), peers=self.wire, clock=self.clock)

    async def cycle(self) -> None:
        """Release, and speak to the global server."""
        await release(self.shop)
        await exchange(self.shop, self.clock)


async def test_deliveries_begin_at_nothing() -> None:
    deliveries = Deliveries(MemoryStore(), b"k" * 16)
    assert await deliveries.load() == 0
    await deliveries.save(12)
    assert await deliveries.load() == 12


async def test_an_update_is_sent_once_and_the_merged_model_fetched() -> None:
    pair = Pair()
    await play(pair.shop, "ada", RIGHT, 25, np.random.default_rng(1))
    await pair.cycle()
    await release(pair.hub)
    for _ in range(3):
        await pair.cycle()
    assert [(one["number"], one["members"]) for one in pair.wire.updates()] == [(0, [0])]
    ((server, members, steps),) = await kept(pair.hub)
    assert (server, members) == (f"{pair.shop.generation.hex()}/shop-a", (0,))
    assert steps == await own_sums(pair.shop, "ada")
    asked = [body["seen"] for what, body in pair.wire.sent if what == "merged-model"]
    assert asked == [-1, -1, 1, 1]


async def test_what_is_sent_is_noisy_sums_and_nothing_else() -> None:
    pair = Pair(privacy=BY_OBSERVATION)
    await play(pair.shop, "ada", RIGHT, 25, np.random.default_rng(2))
    await pair.cycle()
    (update,) = pair.wire.updates()
    assert set(update) == {"number", "members", "steps", "deviation"}
    exact = await own_sums(pair.shop, "ada")
    assert update["steps"][0] == 25
    # Noise of deviation above 5 million steps is 0 with probability below 1e-7 in each of five.
    assert all(a != b for a, b in zip(update["steps"][1:], exact[1:], strict=True))
    assert update["deviation"] > 5


async def test_a_global_server_that_is_gone_costs_nobody_anything() -> None:
    pair = Pair()
    rng = np.random.default_rng(3)
    pair.wire.dead = True
    await play(pair.shop, "ada", RIGHT, 25, rng)
    await pair.cycle()
    await play(pair.shop, "bob", LEFT, 200, rng)
    for _ in range(3):
        await pair.cycle()
    assert (await answer(pair.shop)).decision.items == ("right",)
    assert await kept(pair.hub) == []
    pair.wire.dead = False
    for _ in range(3):
        await pair.cycle()
    assert sorted(steps[0] for *_, steps in await kept(pair.hub)) == [25, 200]
    total = np.sum([steps for *_, steps in await kept(pair.hub)], axis=0)
    assert total.tolist() == await total_sums(pair.shop)


async def test_an_update_whose_receipt_was_lost_counts_once() -> None:
    pair = Pair(privacy=BY_OBSERVATION)
    await exchange(pair.shop, pair.clock)
    pair.wire.deaf = True
    await play(pair.shop, "ada", RIGHT, 25, np.random.default_rng(4))
    for _ in range(3):
        await pair.cycle()
    pair.wire.deaf = False
    await pair.cycle()
    sent = pair.wire.updates()
    assert len(sent) == 4
    assert all(one == sent[0] for one in sent), "the same observations under other noise"
    assert len(await kept(pair.hub)) == 1


async def test_another_worker_asks_what_has_arrived_and_goes_on() -> None:
    pair = Pair()
    await play(pair.shop, "ada", RIGHT, 25, np.random.default_rng(5))
    await pair.cycle()
    other = built(like=pair.shop, peers=pair.wire, clock=pair.clock)
    other.adopt(number=1, released_at=0.0, model=pair.shop.current.model)
    before = len(pair.wire.sent)
    await other.tend()
    assert len(pair.wire.sent) == before, "one worker at a time speaks"
    await exchange(other, pair.clock)
    assert len(pair.wire.updates()) == 1


async def test_a_global_server_that_lost_everything_is_told_again() -> None:
    pair = Pair()
    await play(pair.shop, "ada", RIGHT, 25, np.random.default_rng(6))
    await pair.cycle()
    pair.wire.to = built(merging())
    again = built(like=pair.shop, peers=pair.wire, clock=pair.clock)
    again.adopt(number=1, released_at=0.0, model=pair.shop.current.model)
    await exchange(again, pair.clock)
    assert len(await kept(pair.wire.to)) == 1


async def test_pauses_grow_while_nothing_happens() -> None:
    pair = Pair()
    times = []
    for _ in range(400):
        before = len(pair.wire.sent)
        await pair.shop.tend()
        if len(pair.wire.sent) > before:
            times.append(pair.clock.now)
        pair.clock.now += 0.25
    gaps = np.diff(times).tolist()
    assert gaps[:3] == [2.0, 4.0, 8.0]
    assert set(gaps[3:]) == {LONGEST_PAUSE}
    await play(pair.shop, "ada", RIGHT, 25, np.random.default_rng(7))
    await release(pair.shop)
    pair.clock.now += LONGEST_PAUSE
    await pair.shop.tend()
    before = len(pair.wire.sent)
    pair.clock.now += SHORTEST_PAUSE
    await pair.shop.tend()
    assert len(pair.wire.sent) > before


@pytest.mark.parametrize(
    "lie", [b"nonsense", b"{}", b"[]", b'{"next": "1"}', b'{"next": null}', b'{"next": -1}']
)
async def test_a_global_server_that_talks_nonsense_is_distrusted(lie: bytes) -> None:
    pair = Pair()
    pair.wire.lie = lie
    await play(pair.shop, "ada", RIGHT, 25, np.random.default_rng(8))
    await pair.cycle()
    assert pair.wire.distrusted == 2
    assert (await answer(pair.shop)).decision.items


async def test_a_global_server_that_refuses_is_asked_less() -> None:
    pair = Pair(built(merging(members=["somebody-else"])))
    await play(pair.shop, "ada", RIGHT, 25, np.random.default_rng(9))
    await pair.cycle()
    assert pair.wire.distrusted == 2
    assert await kept(pair.hub) == []


async def test_nobody_is_spoken_to_who_cannot_be_reached() -> None:
    pair = Pair(global_server={"name": "nobody", "url": "http://hub:8000"})
    await pair.cycle()
    assert pair.wire.sent == []


def numbered(count: int, members: int = 1) -> list[NumberedUpdate]:
    return [
        NumberedUpdate(number, NoisyUpdate(tuple(range(members)), np.ones(6, dtype=np.int64), 0.0))
        for number in range(count)
    ]


async def test_many_updates_are_sent_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    fitting = local_server._fitting
    assert len(fitting(numbered(100))) == local_server.MOST_UPDATES
    assert len(fitting(numbered(4, members=30_000))) == 2
    assert len(fitting(numbered(4, members=100_000))) == 1, "the first is sent, however long"
    monkeypatch.setattr(local_server, "MOST_UPDATES", 2)
    pair = Pair(sharing={"first_update": 1})
    rng = np.random.default_rng(10)
    for number in range(5):
        await play(pair.shop, f"user-{number}", RIGHT, 1, rng)
    await release(pair.shop)
    for _ in range(3):
        await exchange(pair.shop, pair.clock)
    sizes = [len(body["updates"]) for what, body in pair.wire.sent if what == "noisy-updates"]
    assert sizes == [0, 2, 2, 1]
    assert len(await kept(pair.hub)) == 5


async def test_what_one_server_learned_serves_the_others_users() -> None:
    """Two kinds of users; shop a is old, shop b is new. With what a sent, b's users of a kind are
    recognised after a few observations."""
    rng = np.random.default_rng(11)
    a = Pair()
    b = Pair(a.hub, "shop-b")
    for client, theta in (("ada", RIGHT), ("bob", LEFT)):
        await play(a.shop, client, theta, 150, rng)
    await a.cycle()
    await release(a.hub)
    await exchange(b.shop, b.clock)
    await release(b.shop)
    assert len(b.shop.current.model.kinds.shares) == 2
    await play(b.shop, "eve", LEFT, 40, rng)
    assert (await answer(b.shop, "eve")).decision.items == ("left",)
    await b.cycle()
    assert sum(steps[0] for *_, steps in await kept(a.hub)) == 340


async def test_servers_that_protect_people_help_each_other_too() -> None:
    rng = np.random.default_rng(12)
    a = Pair(privacy=GENEROUS, sharing={}, learning={"kinds": 2})
    b = Pair(a.hub, "shop-b", privacy=GENEROUS, sharing={}, learning={"kinds": 2})
    for number in range(60):
        await play(a.shop, f"user-{number}", RIGHT, 12, rng)
    await release(a.shop, SeededNoise(1))
    await exchange(a.shop, a.clock)
    await release(a.hub)
    await exchange(b.shop, b.clock)
    await release(b.shop, SeededNoise(2))
    # Nobody has used b yet: whatever it knows came from a.
    assert b.shop.current.model.clusters >= 1
    assert (await answer(b.shop, "stranger")).decision.items == ("right",)
