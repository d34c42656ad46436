"""A cluster in motion: slots that move, masters that die, members that lie about where to go."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from discreet.errors import StoreUnavailable
from discreet.privacy.charges import Charge
from discreet.state.keys import StoreKeys
from discreet.state.redis_store import RedisStore, open_store
from discreet.state.slots import slot_of
from discreet.state.stores import Debit, shard_of
from tests.state import places
from tests.state.load import PLACES, Traffic
from tests.state.places import BLOCK, learn, record, released, spent
from tests.state.servers import ClusterOf6, Server, cluster, eventually, settled
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio

ONE = Charge(nano_epsilon=1)
KEYS = StoreKeys()
HANG = PATIENCE


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterOf6]:
    with cluster(tmp_path_factory.mktemp("moving"), node_timeout=4_000) as running:
        yield running


@pytest.fixture
async def store(six: ClusterOf6) -> AsyncIterator[RedisStore]:
    client = open_store(six.url, timeout=60)
    await client.open()
    yield client
    await client.close()


async def spend(store: RedisStore, principal: bytes, marker: bytes | None = None) -> int:
    found = await places.spend(store, principal, charge=ONE, marker=marker)
    return found.ledger.answers.nano_epsilon


async def test_commands_go_to_all_masters(store: RedisStore, six: ClusterOf6) -> None:
    """192 principals, three on each shard: a third of the shards is on each master."""
    await store.spend([Debit(bytes([n]), ONE) for n in range(192)])
    sizes = [server.do("DBSIZE") for server in six.servers[:3]]
    assert sum(sizes) == 192 + 66, "the ledgers, schema, identity and fences"
    assert max(sizes) - min(sizes) <= 4


def put_off(*servers: Server) -> int:
    """Return how often these have answered TRYAGAIN: the keys of a slot are apart."""
    found = [server.do("INFO", "errorstats").get("errorstat_TRYAGAIN") for server in servers]
    return sum(int(each["count"]) for each in found if each)


async def test_a_moving_slot_is_followed(store: RedisStore, six: ClusterOf6) -> None:
    """ASK while the slot moves, TRYAGAIN while its keys are apart, MOVED once it has moved."""
    principal = b"mover"
    ledger, markers = KEYS.ledger(principal), KEYS.markers(principal)
    slot = slot_of(ledger)
    source = six.owner(slot)
    target = next(server for server in six.servers[:3] if server is not source)
    source_id, target_id = source.do("CLUSTER", "MYID"), target.do("CLUSTER", "MYID")
    assert await spend(store, principal, b"before") == 1

    target.do("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
    source.do("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
    assert await spend(store, principal, b"before") == 1, "still at home"
    source.do("MIGRATE", "127.0.0.1", target.port, ledger, 0, 10_000)
    assert (await spent(store, principal)).answers == ONE, "asked elsewhere"
    before = put_off(source, target)
    apart = asyncio.ensure_future(spend(store, principal, b"before"))
    await asyncio.to_thread(eventually, lambda: put_off(source, target) > before, "TRYAGAIN")
    assert not apart.done(), "neither member has all keys"
    for key in (markers, KEYS.fence(shard_of(principal))):
        source.do("MIGRATE", "127.0.0.1", target.port, key, 0, 10_000)
    assert await apart == 1
    assert await spend(store, principal, b"during") == 2
    before = put_off(source, target)
    learned = asyncio.ensure_future(learn(store, record(principal=principal)))
    await asyncio.to_thread(eventually, lambda: put_off(source, target) > before, "TRYAGAIN")
    assert not learned.done(), "blocks of the slot may be at either member"

    for other in source.do("CLUSTER", "GETKEYSINSLOT", slot, 100):
        source.do("MIGRATE", "127.0.0.1", target.port, other, 0, 10_000)
    for server in (target, source, *six.servers[:3]):
        server.do("CLUSTER", "SETSLOT", slot, "NODE", target_id)
    assert await spend(store, principal, b"during") == 2
    assert await spend(store, principal, b"after") == 3
    assert (await learned).added
    assert await released(store, 1) == {BLOCK: [1]}
    assert six.owner(slot) is target


async def test_any_member_will_do_to_find_the_others(six: ClusterOf6) -> None:
    replica = six.servers[5]
    client = open_store(f"redis+cluster://127.0.0.1:1,127.0.0.1:{replica.port}", timeout=60)
    await client.open()
    assert await spend(client, b"via replica") == 1
    await client.close()


async def test_a_cluster_that_is_not_there() -> None:
    with pytest.raises(StoreUnavailable, match="no member"):
        await open_store("redis+cluster://127.0.0.1:1", timeout=0.3).open()


async def test_a_master_dies_under_load(six: ClusterOf6) -> None:
    """The client fails closed and recovers by itself.

    Replication is asynchronous, so the new master may lack the last writes that the old one had
    acknowledged: that nothing acknowledged is lost is promised for a restart, not for a failover.
    What is promised here: no place is ever booked beyond what was tried, every error is
    `StoreUnavailable`, the other masters' places lose nothing, and all places serve again.
    """
    # Any loss is tolerated, so that the run goes on whichever way a replica that lags decides it:
    # that an untolerated loss is refused is shown in test_redis_fence.py, and tests/chaos kills
    # masters under a service that tolerates none. The timeout is less than the members need until
    # they replace one, so that its loss is seen.
    store = open_store(six.url, timeout=2, lost_writes=1_000_000)
    await store.open()
    traffic = Traffic(store)
    traffic.start()
    async with asyncio.timeout(HANG):
        await traffic.progress(by=20)
        victim = six.owner(slot_of(KEYS.ledger(b"plain 0")))
        victim.kill()
        await traffic.progress(by=20)
        await traffic.stop()
    afterwards = open_store(six.url, timeout=60, lost_writes=1_000_000)
    await afterwards.open()
    for place in range(PLACES):
        principal = b"plain %d" % place
        found = (await spent(afterwards, principal)).answers.nano_epsilon
        assert found <= traffic.acknowledged[place] + traffic.in_doubt[place]
        heir = six.owner(slot_of(KEYS.ledger(principal)))
        if heir in six.servers[:3]:
            assert found >= traffic.acknowledged[place], "a master that lived lost a debit"
    assert traffic.failures > 0
    victim.start()
    await asyncio.to_thread(eventually, lambda: settled(victim), "the dead to return")
    assert (await learn(afterwards, record())).added
    await afterwards.close()
    await store.close()
