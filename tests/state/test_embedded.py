"""The embedded server: private, durable, one to a directory, and gone when it should be."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from discreet.errors import InvalidArgument, StoreUnavailable
from discreet.state.embedded import LONGEST_SOCKET, EmbeddedStore, socket_for
from discreet.state.keeper import find_server, settings
from discreet.state.redis_store import open_store
from tests.state.servers import eventually
from tests.waiting import PATIENCE


def client_of(store: EmbeddedStore) -> "redis.Redis":
    return redis.Redis(unix_socket_path=str(socket_for(store.folder)))


async def write(url: str, name: str) -> bytes:
    store = open_store(url, timeout=60)
    await store.open()
    try:
        return await store.secret(name="s", proposal=name.encode())
    finally:
        await store.close()


def test_data_survive_a_restart(tmp_path: Path) -> None:
    for name in ("first", "second"):
        with EmbeddedStore(tmp_path) as url:
            assert asyncio.run(write(url, name)) == b"first"


def test_it_is_durable_and_never_evicts(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    with store, client_of(store) as client:
        wanted = {
            "appendonly": "yes",
            "appendfsync": "always",
            "maxmemory-policy": "noeviction",
            "aof-load-truncated": "yes",
            "port": "0",
            "save": "",
        }
        found = {name: client.config_get(name)[name] for name in wanted}
        assert found == wanted


def test_nobody_else_can_look(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "data")
    with store as url:
        asyncio.run(write(url, "secret"))
        assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
        files = [path for path in store.folder.rglob("*") if path.is_file()]
        data = [path for path in files if path.name.endswith((".aof", ".rdb"))]
        assert data
        assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in data)


@pytest.mark.parametrize("name", ["with spaces", "ünïcödé", 'quo"te', "x" * 150])
def test_any_directory_will_do(tmp_path: Path, name: str) -> None:
    store = EmbeddedStore(tmp_path / name)
    for _ in range(2):
        with store as url:
            assert asyncio.run(write(url, "a")) == b"a"
    assert len(os.fsencode(socket_for(store.folder))) <= LONGEST_SOCKET
    assert any((store.folder / "appendonlydir").iterdir())


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgument) as caught:
        EmbeddedStore(tmp_path / "file").start()
    assert caught.value.argument == "data"
    (tmp_path / "valkey").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(InvalidArgument, match="somebody else"):
        EmbeddedStore(tmp_path).start()


def test_two_never_share_a_directory(tmp_path: Path) -> None:
    with EmbeddedStore(tmp_path) as url:
        other = EmbeddedStore(tmp_path, start_timeout=20)
        with pytest.raises(StoreUnavailable, match="another instance"):
            other.start()
        assert asyncio.run(write(url, "still here")) == b"still here"


def test_starting_twice_is_a_mistake(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    with store, pytest.raises(StoreUnavailable, match="already"):
        store.start()
    store.stop()


def test_a_server_without_a_keeper_is_replaced(tmp_path: Path) -> None:
    """Where the kernel does not end orphans, the next keeper does; here one is made by hand."""
    store = EmbeddedStore(tmp_path)
    with store as url:
        asyncio.run(write(url, "kept"))
    socket = socket_for(store.folder)
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import fcntl, os, sys\n"
            "lock = open(sys.argv[1], 'a')\n"
            "fcntl.flock(lock, fcntl.LOCK_EX)\n"
            "os.set_inheritable(lock.fileno(), True)\n"
            "os.execv(sys.argv[2], sys.argv[2:])\n",
            str(store.folder / "server.lock"),
            *orphan_command(store.folder, socket),
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        with client_of(store) as client:
            eventually(client.ping, "the orphan")
        with store as url:
            assert holder.wait(PATIENCE) is not None
            assert asyncio.run(write(url, "other")) == b"kept"
    finally:
        holder.kill()
        holder.wait(PATIENCE)


def orphan_command(folder: Path, socket: Path) -> list[str]:
    return [find_server(), *settings(folder, str(socket))]


def test_an_orphan_that_will_not_go_is_left_alone(tmp_path: Path) -> None:
    """Its lock protects the data, even from us."""
    store = EmbeddedStore(tmp_path, start_timeout=20)
    store.folder.mkdir()
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import fcntl, sys, time\n"
            "lock = open(sys.argv[1], 'a')\n"
            "fcntl.flock(lock, fcntl.LOCK_EX)\n"
            "print('locked', flush=True)\n"
            "time.sleep(600)\n",
            str(store.folder / "server.lock"),
        ],
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(StoreUnavailable, match="still running"):
            store.start()
    finally:
        holder.kill()
        holder.wait(PATIENCE)
        holder.stdout.close()


def test_a_torn_last_write_is_cut_off(tmp_path: Path) -> None:
    """Power fails in the middle of an append: what was acknowledged before it is there."""
    store = EmbeddedStore(tmp_path)
    with store as url:
        asyncio.run(write(url, "kept"))
    (log,) = (store.folder / "appendonlydir").glob("*.incr.aof")
    with log.open("ab") as file:
        file.write(b"*3\r\n$3\r\nSET\r\n$5\r\nhalf")
    with store as url:
        assert asyncio.run(write(url, "other")) == b"kept"


def test_a_corrupt_file_is_reported_not_discarded(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    with store as url:
        asyncio.run(write(url, "kept"))
    (log,) = (store.folder / "appendonlydir").glob("*.incr.aof")
    content = log.read_bytes()
    log.write_bytes(b"nonsense" + content)
    with pytest.raises(StoreUnavailable, match=r"valkey\.log"):
        store.start()
    assert log.read_bytes() == b"nonsense" + content


def test_a_forked_child_stops_nothing(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    with store as url:
        child = os.fork()
        if child == 0:
            store.stop()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert asyncio.run(write(url, "alive")) == b"alive"


def test_an_interrupt_of_the_terminal_does_not_reach_the_store(tmp_path: Path) -> None:
    """Ctrl-C goes to the whole foreground group; the store must outlive the workers' farewell."""
    store = EmbeddedStore(tmp_path)
    with store, client_of(store) as client:
        keeper = int((store.folder / "keeper.lock").read_text())
        server = client.info("server")["process_id"]
        assert os.getpgid(keeper) != os.getpgid(0)
        assert os.getpgid(server) != os.getpgid(0)


def test_the_server_comes_back_however_often_it_dies(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    with store, client_of(store) as client:
        for _ in range(2):
            server = eventually(lambda: client.info("server")["process_id"], "the server")
            os.kill(server, signal.SIGKILL)
            eventually(
                lambda server=server: client.info("server")["process_id"] != server, "another"
            )
    with client_of(store) as client, pytest.raises(redis.ConnectionError):
        client.ping()
