"""The global server: what it keeps, whom it believes, and what it tells."""

import asyncio
import json
from typing import Any

import numpy as np
import pytest
from discreet.families.fclub.merging import MOST_SERVERS, Arrived, accept, merge, view_of
from discreet.families.fclub.view import View, read_view

from discreet.errors import InvalidArgument, NotAllowed, StateOverflow
from discreet.families.fclub.evidence import Knowledge
from discreet.state.memory import MemoryStore
from tests.families.fclub.servers import GLOBAL, Server, Wire
from tests.families.fclub.test_letters import EXACT, LEFT, RIGHT, kept, total

pytestmark = pytest.mark.anyio

STEPS = 2**20


def arrived(*sequences: int, label: str = "shop-a", **changes: Any) -> Arrived:
    """Letters of 40 observations each, every one along the first axis."""
    fields: dict[str, Any] = {
        "label": label,
        "source": "0" * 16,
        "dimensions": 2,
        "baseline": 0.5,
        "epsilon": 1.0,
        "delta": 1e-6,
        "letters": [
            (sequence, [sequence], [40, 40 * STEPS, 0, 1, 20 * STEPS, sequence])
            for sequence in sequences
        ],
        **changes,
    }
    return Arrived(**fields)


async def take(hub: Server, letters: Arrived) -> int:
    return await accept(hub.runtime, await hub.found(), letters)


async def view(hub: Server, label: str, source: str = "0" * 16, seen: int = -1) -> View | None:
    content = await view_of(hub.runtime, await hub.found(), label=label, source=source, seen=seen)
    return None if content is None else read_view(content, dimensions=2)


async def test_letters_are_kept_once_and_in_order(hub: Server) -> None:
    assert await take(hub, arrived(0, 1)) == 2
    assert await take(hub, arrived(0, 1)) == 2
    assert await take(hub, arrived(1, 2)) == 3
    assert await take(hub, arrived(0)) == 3
    assert [members for members, _ in kept(hub)] == [[0], [1], [2]]
    # Whoever lost the first ones goes on from there.
    assert await take(hub, arrived(7, 9)) == 10
    assert [members for members, _ in kept(hub)] == [[0], [1], [2], [7], [9]]


async def test_parallel_copies_are_kept_once(hub: Server) -> None:
    other = await Server(hub.store).open()
    answers = await asyncio.gather(
        *(take(one, arrived(*range(n))) for n in (1, 3, 2, 3) for one in (hub, other))
    )
    assert max(answers) == 3
    assert [members for members, _ in kept(hub)] == [[0], [1], [2]]


@pytest.mark.parametrize(
    ("changes", "culprit"),
    [
        ({"dimensions": 3}, "dimensions"),
        ({"baseline": 0.25}, "baseline"),
        ({"letters": [(1, [0], [40] + [0] * 5), (1, [1], [40] + [0] * 5)]}, "letters"),
        ({"letters": [(0, [0], [40] + [0] * 4)]}, "steps"),
        ({"letters": [(0, [0], [0] + [0] * 5)]}, "steps"),
        ({"letters": [(0, [0], [40, 10**12, 0, 0, 0, 0])]}, "steps"),
        ({"letters": [(0, [0, 0], [40] + [0] * 5)]}, "members"),
        ({"letters": [(0, [], [40] + [0] * 5)]}, "members"),
    ],
)
async def test_what_cannot_be_a_letter_is_refused_whole(
    hub: Server, changes: dict[str, Any], culprit: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        await take(hub, arrived(0, **changes))
    assert caught.value.argument == culprit
    assert kept(hub) == []
    assert await take(hub, arrived(0)) == 1


async def test_members_only_if_there_are_any(hub: Server) -> None:
    await hub.put(**GLOBAL | {"members": ["shop-b"]})
    with pytest.raises(NotAllowed):
        await take(hub, arrived(0))
    with pytest.raises(NotAllowed):
        await view(hub, "shop-a")
    assert await take(hub, arrived(0, label="shop-b")) == 1


async def test_a_local_server_takes_no_letters(shop: Server) -> None:
    with pytest.raises(InvalidArgument, match="takes no letters"):
        await take(shop, arrived(0))


async def test_there_are_only_so_many_servers(hub: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.families.fclub.merging.MOST_SERVERS", 2)
    assert MOST_SERVERS > 2
    for source in ("a" * 16, "b" * 16):
        await take(hub, arrived(0, source=source))
    with pytest.raises(StateOverflow):
        await take(hub, arrived(0, source="c" * 16))
    assert await take(hub, arrived(1, source="a" * 16)) == 2


async def test_a_view_tells_what_the_others_sent(hub: Server) -> None:
    assert await view(hub, "shop-a") is None
    for label in ("shop-a", "shop-b"):
        await take(hub, arrived(0, label=label, epsilon=None))
    assert await merge(hub.runtime, await hub.found())
    assert not await merge(hub.runtime, await hub.found())
    a, anybody = await view(hub, "shop-a"), await view(hub, "shop-new")
    assert a is not None
    assert anybody is not None
    assert a.groups == {0: 0}
    assert anybody.groups == {}
    # Exact letters are worth V / s2; a sees b's alone, a newcomer both.
    assert np.allclose(a.foreign.matrix[0, 0, 0], 40 / 0.2, rtol=1e-3)
    assert np.allclose(anybody.foreign.matrix[0, 0, 0], 80 / 0.2, rtol=1e-3)
    assert await view(hub, "shop-a", seen=a.version) is None
    # Another source of the same label is another server: it may use the first one's letters.
    again = await view(hub, "shop-a", source="f" * 16)
    assert again is not None
    assert np.allclose(again.foreign.matrix, anybody.foreign.matrix)


async def test_one_servers_rubbish_does_not_cost_the_others(hub: Server) -> None:
    for label in ("shop-a", "shop-b"):
        await take(hub, arrived(0, label=label, epsilon=None))
    recommender = await hub.found()
    page = recommender.key(b"letters", b"0000000000000000/shop-b")
    await hub.store.write_page(page=page, writes=[(4, b"?")])
    assert await merge(hub.runtime, recommender)
    assert (await view(hub, "shop-new")) is not None


async def test_letters_survive_the_global_servers_restart(hub: Server) -> None:
    await take(hub, arrived(0))
    again = await Server(hub.store).open()
    assert await take(again, arrived(0, 1)) == 2
    assert await again.cycle()
    assert (await view(hub, "shop-b")) is not None


async def test_what_one_server_learned_serves_the_others_users(hub: Server) -> None:
    """Two kinds of users on both servers; shop a is old, shop b is new. With what a sent, b's
    users of a kind are recognised after a few observations."""
    rng = np.random.default_rng(5)
    shops = []
    for label in ("shop-a", "shop-b"):
        server = await Server(MemoryStore(), Wire(label, lambda: hub.runtime)).open()
        await server.put(**EXACT)
        shops.append(server)
    a, b = shops
    for client, theta in (("ada", RIGHT), ("bob", LEFT)):
        await a.play(client, theta, 150, rng)
    for server in (a, hub, b):
        await server.cycle()
    await b.refresh()
    belief = (await b.found()).belief
    assert belief is not None
    assert len(belief.outlook.total) == 2
    await b.play("eve", LEFT, 40, rng)
    assert (await b.ask("eve")).items == ("left",)
    await b.refresh()
    belief = (await b.found()).belief
    assert belief is not None
    # Nobody else is at b: all that others tell about her came from a, 150 observations' worth.
    assert np.trace(belief.outlook.others.matrix[0]) > 100 / 0.2 * 0.9**2
    # Letters of both, everything in exactly one of them, and both heard of.
    for server in (b, hub, a):
        await server.cycle()
    assert total(kept(hub))[0] == 340


def test_a_view_is_believed_only_if_it_can_be_one() -> None:
    good = View(3, Knowledge(np.eye(2)[None], np.ones((1, 2))), {0: 0, 4: 0})
    fields = json.loads(good.encode())
    found = read_view(good.encode(), dimensions=2)
    assert (found.version, found.groups) == (3, {0: 0, 4: 0})
    assert np.allclose(found.foreign.matrix, np.eye(2))
    bad = [
        b"nonsense",
        b"[]",
        b"null",
        json.dumps(fields | {"more": 1}).encode(),
        json.dumps(fields | {"version": -1}).encode(),
        json.dumps(fields | {"version": True}).encode(),
        json.dumps(fields | {"vectors": [[1.0]]}).encode(),
        json.dumps(fields | {"vectors": [[1.0, "2"]]}).encode(),
        json.dumps(fields | {"vectors": [[1.0, float("nan")]]}).encode(),
        json.dumps(fields | {"matrices": []}).encode(),
        json.dumps(fields | {"matrices": [[1e300, 0, 1]]}).encode(),
        json.dumps(fields | {"users": [0]}).encode(),
        json.dumps(fields | {"users": [0, 0]}).encode(),
        b"[" * 100_000,
    ]
    for content in bad:
        with pytest.raises(InvalidArgument):
            read_view(content, dimensions=2)
    # A matrix that is not one of information is mended, not believed.
    odd = json.dumps(fields | {"matrices": [[1.0, 5.0, 1.0]]}).encode()
    assert np.linalg.eigvalsh(read_view(odd, dimensions=2).foreign.matrix[0]).min() > -1e-9


@pytest.mark.parametrize("answer", [b"nonsense", b"{}", b'{"next": "1"}', b'{"next": null}'])
async def test_a_global_server_that_talks_nonsense_is_distrusted(
    shop: Server, wire: Wire, answer: bytes
) -> None:
    class Nonsense(Wire):
        async def post(self, *, peer: str, url: str, content: bytes) -> tuple[int, bytes]:
            return 200, answer

    shop.peers = Nonsense("shop-a", wire.to)
    server = await Server(shop.store, shop.peers).open()
    await server.put(**EXACT)
    await server.play("ada", RIGHT, 25, np.random.default_rng(6))
    await server.cycle()
    assert shop.peers.distrusted == 2
    assert (await server.ask("ada")).items


async def test_a_global_server_that_refuses_is_asked_less(shop: Server, hub: Server) -> None:
    await hub.put(**GLOBAL | {"members": ["somebody-else"]})
    await shop.put(**EXACT)
    await shop.play("ada", RIGHT, 25, np.random.default_rng(7))
    await shop.cycle()
    assert isinstance(shop.peers, Wire)
    assert shop.peers.distrusted == 2
    assert kept(hub) == []
