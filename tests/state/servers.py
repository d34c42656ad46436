"""Real servers for tests: single, Sentinel with its master and replica, and a six-node cluster.

Every server works in a folder of the test run and listens on the loopback interface or a socket
there. Each is a context manager: none outlives the test that asked for it.
"""

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

from discreet.state.keeper import find_server
from tests.ports import free_ports
from tests.waiting import PATIENCE


def eventually(condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """Return the first truthy result; connection errors count as "not yet"."""
    deadline = time.monotonic() + patience
    while True:
        with contextlib.suppress(redis.RedisError, OSError):
            if result := condition():
                return result
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


@dataclass
class Server:
    """One valkey-server process on a loopback port."""

    folder: Path
    port: int
    options: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    @property
    def client(self) -> "redis.Redis":
        """A plain client of its own, to look and to meddle behind the store's back."""
        return redis.Redis(port=self.port, password=self.options.get("requirepass"))

    def start(self) -> "Server":
        self.folder.mkdir(exist_ok=True)
        settings = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "dir": str(self.folder),
            "logfile": str(self.folder / "log"),
            "save": "",
            "repl-diskless-sync-delay": "0",  # replicas need not wait for company
        } | self.options
        words = [word for name, value in settings.items() for word in (f"--{name}", value)]
        self.process = subprocess.Popen(
            [find_server(), *self.arguments, *words],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            # A file that may grow no more is then an error, as a full disk is, and not its death.
            restore_signals=False,
        )
        with self.client as client:
            eventually(lambda: self.gone() or client.ping(), f"the server on port {self.port}")
        assert not self.gone(), f"the server did not start; see {self.folder / 'log'}"
        return self

    def gone(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def kill(self) -> None:
        """Kill -9, as if its machine had lost power."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(PATIENCE)

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def do(self, *words: str | bytes | int) -> Any:
        """Run one command outside the store."""
        with self.client as client:
            return client.execute_command(*words)


def left_unread(server: Server) -> None:
    """Poll nothing until the server has answered everything, and for longer than a second."""
    for _ in range(2):  # it answers in turns: what came before the first of these is answered
        server.do("PING")
    time.sleep(1.5)


@contextlib.contextmanager
def valkey(folder: Path, **options: str) -> Iterator[Server]:
    """Run one server; options are settings, with underscores for hyphens."""
    settings = {name.replace("_", "-"): value for name, value in options.items()}
    server = Server(folder, free_ports(1)[0], settings)
    try:
        yield server.start()
    finally:
        if server.process is not None:
            server.kill()


@dataclass
class ClusterOf6:
    """Three masters with a replica each; `servers[i]` and `servers[i + 3]` belong together."""

    servers: list[Server]

    @property
    def url(self) -> str:
        nodes = ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        return f"redis+cluster://{nodes}"

    def owner(self, slot: int, *, but: Server | None = None) -> Server:
        """Return the server that a live member believes to be the master of a slot.

        `but` is not asked: it may be frozen.
        """
        for server in self.servers:
            if server is but:
                continue
            with contextlib.suppress(redis.RedisError, OSError):
                for first, last, master, *_ in server.do("CLUSTER", "SLOTS"):
                    if first <= slot <= last:
                        return self.at(master[1])
        raise AssertionError("no member of the cluster answers")

    def at(self, port: int) -> Server:
        return next(server for server in self.servers if server.port == port)


def cluster_node(folder: Path, port: int, bus: int, node_timeout: int) -> Server:
    return Server(
        folder,
        port,
        {
            "cluster-enabled": "yes",
            "cluster-port": str(bus),
            "cluster-node-timeout": str(node_timeout),
            "cluster-replica-validity-factor": "0",
            "appendonly": "yes",
            "appendfsync": "everysec",
        },
    )


@contextlib.contextmanager
def cluster(folder: Path, *, node_timeout: int = 30_000) -> Iterator[ClusterOf6]:
    """Run six nodes and join them, without any tool but the protocol.

    A member that is silent for `node_timeout` milliseconds is replaced. On a busy machine that may
    be one that only waits for its turn, and what it had not passed on yet is lost.
    """
    folder.mkdir(exist_ok=True)
    ports = free_ports(12)
    servers = [
        cluster_node(folder / str(i), ports[i], ports[6 + i], node_timeout) for i in range(6)
    ]
    try:
        for server in servers:
            server.start()
        join(servers)
        yield ClusterOf6(servers)
    finally:
        for server in servers:
            if server.process is not None:
                server.kill()


def join(servers: list[Server]) -> None:
    masters, replicas = servers[:3], servers[3:]
    bounds = [0, 5461, 10923, 16384]
    for i, master in enumerate(masters):
        master.do("CLUSTER", "ADDSLOTSRANGE", bounds[i], bounds[i + 1] - 1)
    for i, server in enumerate(servers):
        server.do("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
    for server in servers[1:]:
        bus = server.options["cluster-port"]
        servers[0].do("CLUSTER", "MEET", "127.0.0.1", server.port, bus)
    for server in servers:
        eventually(lambda server=server: known(server) == 6, "everybody to know everybody")
    for master, replica in zip(masters, replicas, strict=True):
        replica.do("CLUSTER", "REPLICATE", master.do("CLUSTER", "MYID"))
    for server in servers:
        eventually(lambda server=server: settled(server), "the cluster to settle")
    for replica in replicas:
        eventually(lambda replica=replica: in_step(replica), "the replicas to be in step")


def known(server: Server) -> int:
    """Return how many members a server has been introduced to, itself included."""
    return sum(b"handshake" not in line for line in nodes(server))


def settled(server: Server) -> bool:
    masters = sum(b"master" in line for line in nodes(server))
    return b"cluster_state:ok" in server.do("CLUSTER", "INFO") and masters == 3


def nodes(server: Server) -> list[bytes]:
    lines: list[bytes] = server.do("CLUSTER", "NODES").splitlines()
    return lines


def in_step(replica: Server) -> bool:
    facts = replica.do("INFO", "replication")
    return bool(facts["role"] == "slave" and facts["master_link_status"] == "up")


@dataclass
class Watched:
    """A master, its replica, and the Sentinel that watches them."""

    master: Server
    replica: Server
    sentinel: Server

    @property
    def url(self) -> str:
        return f"redis+sentinel://127.0.0.1:{self.sentinel.port}/discreet"


@contextlib.contextmanager
def sentinel(folder: Path) -> Iterator[Watched]:
    """Run a master with a replica, and a Sentinel that promotes it within a second or two."""
    folder.mkdir(exist_ok=True)
    ports = free_ports(3)
    configuration = folder / "sentinel.conf"
    configuration.write_text(
        f"sentinel monitor discreet 127.0.0.1 {ports[0]} 1\n"
        "sentinel down-after-milliseconds discreet 500\n"
        "sentinel failover-timeout discreet 3000\n"
    )
    master = Server(folder / "master", ports[0])
    replica = Server(folder / "replica", ports[1], {"replicaof": f"127.0.0.1 {ports[0]}"})
    watcher = Server(folder / "sentinel", ports[2], {}, (str(configuration), "--sentinel"))
    started = [master, replica, watcher]
    try:
        master.start()
        replica.start()
        eventually(lambda: in_step(replica), "the replica to be in step")
        watcher.start()
        eventually(lambda: watcher.do("SENTINEL", "REPLICAS", "discreet"), "Sentinel to see both")
        yield Watched(master, replica, watcher)
    finally:
        for server in started:
            if server.process is not None:
                server.kill()
