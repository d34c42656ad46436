"""The global server: what it keeps, whom it believes, and what it tells."""

import asyncio
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument, NotAllowed, StateOverflow
from discreet.families.fclub.recommender import ClusterRecommender
from discreet.families.fclub.sync import global_server
from discreet.families.fclub.sync.global_server import (
    ArrivedUpdates,
    GlobalModel,
    UpdatesFromServers,
    server_name,
)
from discreet.families.fclub.sync.merged_model import MergedModel, read_merged_model
from tests.families.fclub.servers import built, kept, merging, release

pytestmark = pytest.mark.anyio

STEPS = 2**20
SOURCE = "0" * 16


def arrived(*numbers: int, label: str = "shop-a", **changes: Any) -> ArrivedUpdates:
    """Exact updates of 40 observations each, every one along the first axis."""
    fields: dict[str, Any] = {
        "label": label,
        "source": SOURCE,
        "dimensions": 2,
        "baseline": 0.5,
        "updates": [
            (number, [number], [40, 40 * STEPS, 0, 1, 20 * STEPS, number], 0.0)
            for number in numbers
        ],
        **changes,
    }
    return ArrivedUpdates(**fields)


async def take(hub: ClusterRecommender, updates: ArrivedUpdates) -> int:
    return await hub.part(UpdatesFromServers).accept(updates)


def merged(
    hub: ClusterRecommender, label: str, source: str = SOURCE, seen: int = -1
) -> MergedModel | None:
    content = hub.part(UpdatesFromServers).merged_for(label=label, source=source, seen=seen)
    return None if content is None else read_merged_model(content, dimensions=2)


async def members(hub: ClusterRecommender) -> list[tuple[int, ...]]:
    return [whom for _, whom, _ in await kept(hub)]


async def test_updates_are_kept_once() -> None:
    hub = built(merging())
    assert await take(hub, arrived()) == 0
    assert not hub.asked
    assert await take(hub, arrived(0, 1)) == 2
    assert hub.asked, "there is something to merge"
    assert await take(hub, arrived(0, 1)) == 2
    assert await take(hub, arrived(1, 2)) == 3
    assert await take(hub, arrived(0)) == 3
    assert await members(hub) == [(0,), (1,), (2,)]
    # Totals that grew meanwhile leave out numbers.
    assert await take(hub, arrived(7, 9)) == 10
    assert await members(hub) == [(0,), (1,), (2,), (7,), (9,)]


async def test_a_newer_total_takes_the_place_of_the_older_one() -> None:
    hub = built(merging())
    await take(hub, arrived(0))
    grown = [(1, [0], [90, 90 * STEPS, 0, 1, 45 * STEPS, 0], 0.0)]
    assert await take(hub, arrived(updates=grown)) == 2
    await take(hub, arrived(0))
    assert [(whom, steps[0]) for _, whom, steps in await kept(hub)] == [((0,), 90)]


async def test_copies_that_come_at_once_are_kept_once() -> None:
    hub = built(merging())
    other = built(like=hub)
    answers = await asyncio.gather(
        *(take(one, arrived(*range(n))) for n in (1, 3, 2, 3) for one in (hub, other))
    )
    assert max(answers) == 3
    assert await members(hub) == [(0,), (1,), (2,)]


@pytest.mark.parametrize(
    ("changes", "culprit"),
    [
        ({"dimensions": 3}, "dimensions"),
        ({"baseline": 0.25}, "baseline"),
        ({"updates": [(1, [0], [40] + [0] * 5, 0.0), (1, [1], [40] + [0] * 5, 0.0)]}, "updates"),
        ({"updates": [(1, [0], [40] + [0] * 5, 0.0), (0, [1], [40] + [0] * 5, 0.0)]}, "updates"),
        ({"updates": [(0, [0], [40] + [0] * 4, 0.0)]}, "steps"),
        ({"updates": [(0, [0], [0] + [0] * 5, 0.0)]}, "steps"),
        ({"updates": [(0, [0], [40, 10**12, 0, 0, 0, 0], 0.0)]}, "steps"),
        ({"updates": [(0, [0, 0], [40] + [0] * 5, 0.0)]}, "members"),
        ({"updates": [(0, [], [40] + [0] * 5, 0.0)]}, "members"),
        ({"updates": [(0, [0], [40] + [0] * 5, -1.0)]}, "deviation"),
    ],
)
async def test_what_cannot_be_an_update_is_refused_whole(
    changes: dict[str, Any], culprit: str
) -> None:
    hub = built(merging())
    with pytest.raises(InvalidArgument) as caught:
        await take(hub, arrived(0, **changes))
    assert caught.value.argument == culprit
    assert await kept(hub) == []
    assert await take(hub, arrived(0)) == 1


async def test_members_only_if_the_document_names_any() -> None:
    hub = built(merging(members=["shop-b"]))
    with pytest.raises(NotAllowed):
        await take(hub, arrived(0))
    with pytest.raises(NotAllowed):
        merged(hub, "shop-a")
    assert await take(hub, arrived(0, label="shop-b")) == 1


async def test_a_local_server_takes_no_updates() -> None:
    with pytest.raises(InvalidArgument, match="takes no updates"):
        await take(built(), arrived(0))
    with pytest.raises(InvalidArgument, match="takes no updates"):
        merged(built(), "shop-a")


async def test_there_are_only_so_many_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_server, "MOST_SERVERS", 2)
    hub = built(merging())
    for source in ("a" * 16, "b" * 16):
        await take(hub, arrived(0, source=source))
    with pytest.raises(StateOverflow):
        await take(hub, arrived(0, source="c" * 16))
    assert await take(hub, arrived(1, source="a" * 16)) == 2


async def test_a_server_may_keep_only_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = built(merging())
    await take(hub, arrived(0))
    monkeypatch.setattr(global_server, "MOST_SERVER_BYTES", 200)
    with pytest.raises(StateOverflow):
        await take(hub, arrived(*range(1, 9)))
    assert await members(hub) == [(0,)]


async def test_a_merged_model_tells_what_the_others_sent() -> None:
    hub = built(merging())
    assert merged(hub, "shop-a") is None
    for label in ("shop-a", "shop-b"):
        await take(hub, arrived(0, label=label))
    await release(hub)
    a, anybody = merged(hub, "shop-a"), merged(hub, "shop-new")
    assert a is not None
    assert anybody is not None
    assert (a.version, a.groups, a.counts.tolist()) == (1, {0: 0}, [40.0])
    assert (anybody.groups, anybody.counts.tolist()) == ({}, [80.0])
    # Exact updates are worth V / s2; a sees b's alone, a newcomer both.
    assert np.allclose(a.foreign.matrix[0, 0, 0], 40 / 0.2, rtol=1e-3)
    assert np.allclose(anybody.foreign.matrix[0, 0, 0], 80 / 0.2, rtol=1e-3)
    assert merged(hub, "shop-a", seen=a.version) is None
    # Another source of the same label is another server: it may use the first one's updates.
    again = merged(hub, "shop-a", source="f" * 16)
    assert again is not None
    assert np.allclose(again.foreign.matrix, anybody.foreign.matrix)


async def test_the_largest_clusters_are_told_if_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub = built(merging())
    # Two tastes, far apart; the second has more observations.
    large = [0, 400 * STEPS, 0, 400 * STEPS, -290 * STEPS, 0]
    updates = [
        (0, [0], [400, 400 * STEPS, 0, 400 * STEPS, 290 * STEPS, 0], 0.0),
        (1, [1], [800, *(2 * step for step in large[1:])], 0.0),
    ]
    await take(hub, arrived(updates=updates))
    await release(hub)
    assert hub.current.model.clusters == 2
    monkeypatch.setattr(global_server, "MOST_CLUSTERS", 1)
    model = hub.current.model
    assert isinstance(model, GlobalModel)
    told = model.merged_for("elsewhere", 1)
    assert told is not None
    assert told.counts.tolist() == [800.0]
    own = model.merged_for(server_name("shop-a", SOURCE), 1)
    assert own is not None
    assert len(own.groups) == 1


async def test_one_servers_rubbish_does_not_cost_the_others() -> None:
    hub = built(merging())
    for label in ("shop-a", "shop-b"):
        await take(hub, arrived(0, label=label))
    rubbish = hub.key(b"server", server_name("shop-b", SOURCE).encode())
    await hub.store.save(key=rubbish, content=b"?")
    await release(hub)
    assert merged(hub, "shop-new") is not None


async def test_updates_survive_the_global_servers_restart() -> None:
    hub = built(merging())
    await take(hub, arrived(0))
    await release(hub)
    again = built(like=hub)
    assert await take(again, arrived(0, 1)) == 2
    again.adopt(number=1, released_at=0.0, model=again.decode(hub.encode(hub.current.model)))
    (one, other) = (merged(server, "shop-b") for server in (hub, again))
    assert one is not None
    assert other is not None
    assert np.array_equal(one.foreign.matrix, other.foreign.matrix)


async def test_a_model_without_updates_survives_the_store() -> None:
    hub = built(merging())
    await release(hub)
    assert (hub.current.number, hub.current.model.clusters) == (1, 0)
    assert merged(hub, "shop-a") is None


async def test_erasing_leaves_no_updates() -> None:
    hub = built(merging())
    for label in ("shop-a", "shop-b"):
        await take(hub, arrived(0, label=label))
    await hub.erase()
    assert await kept(hub) == []
    assert await take(built(like=hub), arrived()) == 0
