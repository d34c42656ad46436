"""Sentinel names the master; when it fails, the client follows."""

import asyncio
from pathlib import Path

import pytest

from discreet.errors import StoreUnavailable
from discreet.privacy.charges import Charge, Limit
from discreet.state.redis_store import open_store
from tests.state.servers import sentinel

pytestmark = pytest.mark.anyio

ONE = Charge(nano_epsilon=1)
HANG = 60


async def test_the_client_follows_a_failover(tmp_path: Path) -> None:
    with sentinel(tmp_path / "watched") as watched:
        dead_first = watched.url.replace("//", "//127.0.0.1:1,")
        store = open_store(dead_first, timeout=0.5)
        await store.open()
        assert (await store.spend(principal=b"p", charge=ONE, limit=Limit())).granted
        assert watched.master.do("DBSIZE") == 1
        watched.master.do("WAIT", 1, 10_000)
        watched.master.kill()
        async with asyncio.timeout(HANG):
            while True:
                try:
                    account = await store.spend(principal=b"p", charge=ONE, limit=Limit())
                    break
                except StoreUnavailable:
                    await asyncio.sleep(0.05)
        # A replica refuses writes, so no attempt before the promotion can have been booked.
        assert account.granted
        assert account.spent == Charge(nano_epsilon=2)
        assert watched.replica.do("INFO", "replication")["role"] == "master"
        await store.close()


async def test_a_service_that_nobody_watches(tmp_path: Path) -> None:
    with sentinel(tmp_path / "watched") as watched:
        url = watched.url.replace("/discreet", "/other")
        with pytest.raises(StoreUnavailable, match="no node of the store knows"):
            await open_store(url, timeout=0.5).open()
