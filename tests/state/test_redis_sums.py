"""What lies in the server: small, and lapsing where it should."""

import asyncio

import pytest

from discreet.errors import StoreUnavailable
from discreet.privacy.charges import Charge, Limit
from discreet.state.keys import StoreKeys
from discreet.state.redis_store import RedisStore
from discreet.state.stores import OWN, Account, Ledger, shard_of
from tests.state.places import (
    ADA,
    GENERATION,
    ONE,
    learn,
    record,
    spend,
    spent,
)
from tests.state.servers import Server, eventually

pytestmark = pytest.mark.anyio

KEYS = StoreKeys()


async def test_a_ledger_and_a_claim_are_small(store: RedisStore, server: Server) -> None:
    """A ledger may cost 250 bytes all told, with a window and a day of both accounts 350; each
    further day and account 50. A claim, which lapses, may cost 300."""
    principal, claim = b"p" * 16, b"c" * 16
    await spend(store, principal)
    ledger = KEYS.ledger(principal)
    assert server.do("HSTRLEN", ledger, "l") == 24, "an unused account takes no room"
    assert server.do("HSTRLEN", ledger, "w") == 0
    assert server.do("MEMORY", "USAGE", ledger) <= 250
    await learn(store, record(principal=principal, claim=claim, charge=ONE))
    assert server.do("HSTRLEN", ledger, "l") == 48
    await spend(store, principal, window=86_400, purpose=b"films")
    assert server.do("HSTRLEN", ledger, "w") == 56
    assert server.do("MEMORY", "USAGE", ledger) <= 350
    for number in range(50):
        await spend(store, principal, window=86_400, purpose=b"films%02d" % number)
    assert server.do("MEMORY", "USAGE", ledger) <= 350 + 50 * 50
    assert server.do("MEMORY", "USAGE", KEYS.claim(principal, claim)) <= 300
    assert server.do("PTTL", KEYS.ledger(principal)) == -1
    assert 0 < server.do("PTTL", KEYS.claim(principal, claim)) <= 60_000


async def test_what_costs_nothing_writes_no_ledger(store: RedisStore, server: Server) -> None:
    for account in Account:
        assert (await spend(store, charge=Charge(), account=account)).granted
    assert not (await spend(store, limit=Limit(0, 0, 0))).granted
    assert await spent(store) == Ledger()
    assert server.do("DBSIZE") == 66, "schema, identity and fences"
    await learn(store, record())
    assert not server.do("EXISTS", KEYS.ledger(ADA))
    assert not server.do("EXISTS", KEYS.counts(shard_of(ADA), GENERATION))


async def test_lapsed_markers_leave_nothing_behind(store: RedisStore, server: Server) -> None:
    await spend(store, marker=b"longer", marker_ttl=600)
    for number in range(20):
        await spend(store, marker=b"%d" % number, marker_ttl=1)
    await asyncio.sleep(1.1)
    for number in range(16):  # one of which sweeps
        await spend(store, marker=b"new %d" % number, marker_ttl=600)
    assert server.do("ZCARD", KEYS.markers(ADA)) == 1 + 16
    assert await store.forget_markers(ADA) != []
    assert not server.do("EXISTS", KEYS.markers(ADA))
    await spend(store, marker=b"last", marker_ttl=1)
    await asyncio.to_thread(
        eventually, lambda: not server.do("EXISTS", KEYS.markers(ADA)), "the last to lapse"
    )
    assert server.do("EXISTS", KEYS.ledger(ADA))


async def test_unreadable_markers_grant_nothing(store: RedisStore, server: Server) -> None:
    server.do("SET", KEYS.markers(ADA), "x")
    with pytest.raises(StoreUnavailable):
        await spend(store, marker=b"m")
    assert await spent(store) == Ledger()


async def test_unreadable_own_sums_are_not_empty_ones(store: RedisStore, server: Server) -> None:
    await learn(store, record(blocks={OWN: [(0, 1)]}))
    server.do("SET", KEYS.own(shard_of(ADA), GENERATION) + ADA, "nine bytes")
    with pytest.raises(StoreUnavailable):
        await store.own(generation=GENERATION, principals=[b"other", ADA])
