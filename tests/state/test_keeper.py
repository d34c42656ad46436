"""Kill -9 under load: nothing acknowledged is lost, nothing counted twice, nothing left behind."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from discreet.errors import StoreUnavailable
from discreet.state.embedded import EmbeddedStore
from discreet.state.keeper import MALLOC, server_environment
from discreet.state.redis_store import open_store
from discreet.state.stores import Ledger
from tests.state.load import Traffic
from tests.state.places import ONE, spend, spent
from tests.state.servers import eventually
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio

HANG = PATIENCE


def server_process(folder: Path) -> int:
    """Return the process id of the server that answers in a store's folder."""
    with redis.Redis(unix_socket_path=str(folder / "valkey.sock")) as client:
        return int(eventually(lambda: client.info("server")["process_id"], "the server"))


def keeper_process(folder: Path) -> int:
    return int((folder / "keeper.lock").read_text())


def gone(process: int) -> bool:
    """Tell whether a process has ended; one that only waits to be reaped has."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


async def test_kill_9_of_the_server_under_load(tmp_path: Path) -> None:
    embedded = EmbeddedStore(tmp_path)
    with embedded as url:
        store = open_store(url, timeout=5)
        await store.open()
        traffic = Traffic(store)
        traffic.start()
        async with asyncio.timeout(HANG):
            await traffic.progress(by=10)
            kills = 0
            # A kill shows something only if it meets a debit on its way.
            while kills < 5 or not any(traffic.in_doubt):
                kills += 1
                server = server_process(embedded.folder)
                os.kill(server, signal.SIGKILL)
                await asyncio.to_thread(
                    eventually,
                    lambda server=server: server_process(embedded.folder) != server,
                    "the keeper to start another",
                )
                await traffic.progress(by=10)
            await traffic.stop()
            await traffic.check()
        await store.close()


async def test_a_client_survives_its_store(tmp_path: Path) -> None:
    """Stopped, it is missed quickly; started again, it is found without a new client."""
    embedded = EmbeddedStore(tmp_path)
    url = embedded.start()
    store, patient = (open_store(url, timeout=seconds) for seconds in (5, 60))
    await store.open()
    await patient.open()
    await spend(patient)
    await patient.close()
    embedded.stop()
    async with asyncio.timeout(HANG):
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await spend(store)
        with EmbeddedStore(tmp_path):
            while True:
                with contextlib.suppress(StoreUnavailable):
                    assert await spent(store) == Ledger(ONE)
                    break
                await asyncio.sleep(0.02)
            await store.close()


OWNER = """
import sys, time
from discreet.state.embedded import EmbeddedStore
from discreet.state.keeper import MALLOC, server_environment
EmbeddedStore(sys.argv[1]).start()
print("started", flush=True)
time.sleep(600)
"""


@pytest.fixture
def owner(tmp_path: Path) -> "Iterator[subprocess.Popen[str]]":
    """Run a process that owns a store below `tmp_path`, and has debited it once."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    asyncio.run(debit(EmbeddedStore(tmp_path).url))
    yield process
    process.kill()
    process.wait(PATIENCE)
    process.stdout.close()


async def debit(url: str) -> None:
    store = open_store(url, timeout=60)
    await store.open()
    await spend(store)
    await store.close()


async def ledger(url: str) -> Ledger:
    store = open_store(url, timeout=60)
    await store.open()
    try:
        return await spent(store)
    finally:
        await store.close()


@pytest.mark.parametrize("victims", ["owner", "keeper", "keeper server", "owner keeper server"])
def test_kill_9_of_anybody_leaves_nobody_and_loses_nothing(
    tmp_path: Path, owner: "subprocess.Popen[str]", victims: str
) -> None:
    folder = EmbeddedStore(tmp_path).folder
    processes = {
        "owner": owner.pid,
        "keeper": keeper_process(folder),
        "server": server_process(folder),
    }
    for victim in victims.split():
        os.kill(processes[victim], signal.SIGKILL)
    for name in ("keeper", "server"):
        eventually(lambda name=name: gone(processes[name]), f"the end of the {name}")
    with EmbeddedStore(tmp_path) as url:
        assert server_process(folder) != processes["server"]
        assert asyncio.run(ledger(url)) == Ledger(ONE)


def test_how_memory_is_taken_is_ours_unless_somebody_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    assert server_environment() == {**os.environ, "GLIBC_TUNABLES": MALLOC}
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=7")
    assert server_environment() == dict(os.environ)
