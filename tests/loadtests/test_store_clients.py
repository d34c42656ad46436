"""The store on redis-py behaves as it does on our own client, or comparing them shows nothing.

coredis comes with the extra `bench` only; the benchmark itself finds out whether it works.
"""

from collections.abc import Iterator

import clients
import pytest
from callers import Caller, feedback_on, ids_of
from drive import recommend_bodies
from stage import discreet
from store_clients import RedisPyClient

from discreet.errors import StoreUnavailable
from discreet.state.client import StoreCommand
from discreet.state.embedded import EmbeddedStore
from discreet.state.keys import StoreKeys
from discreet.state.redis_store import RedisStore, open_store
from discreet.state.stores import Debit, Debited, Learned, Ledger
from tests.state.places import BLOCK, ONE, learn, record, released, spend, spent

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with EmbeddedStore(tmp_path_factory.mktemp("clients")) as running:
        yield running


async def test_the_store_runs_on_another_client(url: str) -> None:
    store, ours = (
        RedisStore(RedisPyClient(url), StoreKeys("other")),
        open_store(url, namespace="other", timeout=60),
    )
    await store.open()
    await ours.open()
    try:
        calls = [store.spend([Debit(b"p", ONE)] * 3) for _ in range(4)]
        assert await ours.epoch() == 0
        found = [each for call in calls for each in await call]
        totals = [each.ledger.answers.nano_epsilon for each in found if isinstance(each, Debited)]
        assert totals == [100 * n for n in range(1, 13)], "in the order in which they were sent"
        assert (await spend(ours, b"p")).ledger == await spent(store, b"p")
        assert isinstance(await learn(store, record(charge=ONE)), Learned)
        assert await learn(ours, record(charge=ONE)) == await learn(store, record(charge=ONE))
        assert await released(store, 1) == await released(ours, 1) == {BLOCK: [1]}
        assert (await store.registry()).documents == {}
    finally:
        await store.close()
        await ours.close()


async def test_an_error_is_listed_in_its_place(url: str) -> None:
    store, ours = (
        RedisStore(RedisPyClient(url), StoreKeys("bad")),
        open_store(url, namespace="bad", timeout=60),
    )
    await store.open()
    await ours.open()
    try:
        key = StoreKeys("bad").ledger(b"bad")
        await ours._client.send([StoreCommand(key, (b"SET", key, b"short"))])
        found = await store.spend([Debit(b"good", ONE), Debit(b"bad", ONE), Debit(b"good", ONE)])
        assert found[::2] == [Debited(True, Ledger(ONE)), Debited(True, Ledger(ONE + ONE))]
        assert isinstance(found[1], StoreUnavailable)
    finally:
        await store.close()
        await ours.close()


@pytest.mark.needs("procfs")
def test_discreet_is_served_over_another_client(url: str) -> None:
    with discreet(url, client="redis-py") as target, Caller(target) as caller:
        ids = ids_of(caller.post("/recommend", recommend_bodies(1)[0].encode()))
        assert len(ids) == 1
        assert b'"learned":true' in caller.post("/feedback", feedback_on(ids)[0].encode())


async def test_a_short_comparison(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "installed", lambda: ["redis-py"])
    found = await clients.measured(url, seconds=0.02, turns=1)
    assert found.keys() == {"always", "everysec"}
    for works in found.values():
        assert works.keys() == clients.WORKS.keys()
        for figures in works.values():
            assert figures.keys() == {"ours", "redis-py"}
            assert figures["ours"]["cpu_ratio_to_ours"] == 1
            assert figures["redis-py"]["commands_per_second"] > 0
    shown = clients.table(found)
    assert "spend of 16, appendfsync everysec" in shown
