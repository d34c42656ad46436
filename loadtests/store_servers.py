"""Servers for measuring the store alone: one Valkey, or a cluster of masters, on loopback."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from stage import PATIENCE

from discreet.state.keeper import find_server
from discreet.state.slots import SLOTS

_STILL = 4_096
"""Bytes of difference that are no change any more."""


@dataclass(frozen=True)
class StoreUse:
    """What a server has used so far: CPU seconds, bytes on the wire and in its log."""

    cpu: float
    received: int
    sent: int
    logged: int

    def __sub__(self, other: "StoreUse") -> "StoreUse":
        return StoreUse(
            self.cpu - other.cpu,
            self.received - other.received,
            self.sent - other.sent,
            self.logged - other.logged,
        )


@dataclass(frozen=True)
class StoreServer:
    """One valkey-server."""

    port: int

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def do(self, *words: "str | int | bytes") -> Any:
        """Run one command."""
        with redis.Redis(port=self.port) as client:
            return client.execute_command(*words)

    def used(self) -> StoreUse:
        """Return what it has used; what looking costs is in it, and is next to nothing."""
        with redis.Redis(port=self.port) as client:
            found: Any = client.info("all")
        return StoreUse(
            found["used_cpu_user"] + found["used_cpu_sys"],
            found["total_net_input_bytes"],
            found["total_net_output_bytes"],
            found.get("aof_current_size", 0),
        )

    def memory(self) -> int:
        """Return the bytes of what is stored, without buffers, once its tables are in order: one
        that is growing exists twice until all is moved."""
        seen, last = 0, -_STILL
        deadline = time.monotonic() + PATIENCE
        with redis.Redis(port=self.port) as client:
            while abs(seen - last) >= _STILL and time.monotonic() < deadline:
                found: Any = client.info("memory")
                buffers = found["mem_clients_normal"] + found["mem_aof_buffer"]
                last, seen = seen, int(found["used_memory"]) - int(buffers)
                time.sleep(0.3)
        return seen


def free_ports(count: int) -> list[int]:
    """Return ports that nobody uses; below those that the system gives to whoever connects."""
    found: list[int] = []
    port = 21_000 + time.time_ns() // 1_000 % 8_000
    while len(found) < count:
        port += 1
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                found.append(port)
    return found


@contextmanager
def running_server(folder: Path, port: int, **options: str) -> Iterator[StoreServer]:
    """Run one server in a folder of its own; options with underscores for hyphens."""
    folder.mkdir(parents=True)
    settings = {
        "bind": "127.0.0.1", "port": str(port), "dir": str(folder), "save": "",
        "logfile": str(folder / "log"), "appendonly": "yes", "appendfsync": "always", **options,
    }  # fmt: skip
    words = [w for name, value in settings.items() for w in (f"--{name.replace('_', '-')}", value)]
    with subprocess.Popen([find_server(), *words]) as process:  # noqa: S603  our own command
        try:
            server = StoreServer(port)
            _until(lambda: server.do("PING"), "a server to answer")
            yield server
        finally:
            process.kill()


@contextmanager
def running_cluster(folder: Path, masters: int, **options: str) -> Iterator[list[StoreServer]]:
    """Run so many masters with equal shares of the slots, without replicas."""
    ports = free_ports(2 * masters)
    with ExitStack() as stack:
        servers = [
            stack.enter_context(
                running_server(
                    folder / str(place),
                    ports[place],
                    cluster_enabled="yes",
                    cluster_port=str(ports[masters + place]),
                    cluster_node_timeout="60000",
                    **options,
                )
            )
            for place in range(masters)
        ]
        for place, server in enumerate(servers):
            first, last = place * SLOTS // masters, (place + 1) * SLOTS // masters - 1
            server.do("CLUSTER", "ADDSLOTSRANGE", first, last)
            server.do("CLUSTER", "SET-CONFIG-EPOCH", place + 1)
        for place, server in enumerate(servers[1:], start=1):
            servers[0].do("CLUSTER", "MEET", "127.0.0.1", server.port, ports[masters + place])
        for server in servers:
            _until(lambda one=server: _complete(one, masters), "the cluster to be complete")
        yield servers


def cluster_url(servers: list[StoreServer]) -> str:
    """Return where a cluster is found."""
    return "redis+cluster://" + ",".join(f"127.0.0.1:{server.port}" for server in servers)


def _complete(server: StoreServer, masters: int) -> bool:
    known = b"".join(server.do("CLUSTER", "NODES").splitlines()).count(b"master")
    return known == masters and b"cluster_state:ok" in server.do("CLUSTER", "INFO")


def _until(condition: Any, what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            if condition():
                return
        except (redis.RedisError, OSError):
            pass
        if time.monotonic() > deadline:
            raise SystemExit(f"waited in vain for {what}")
        time.sleep(0.05)
