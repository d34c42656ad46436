"""Reaching one server and making sure that it may be trusted with ledgers.

Every new connection repeats the whole handshake: the server behind an address can change (a
restart, a failover), and with it its scripts, its role and its settings.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from discreet.errors import StoreUnavailable, StoreUnsuitable
from discreet.state.client import Word
from discreet.state.urls import Credentials, ServerAddress, StoreKind, StoreLocation
from discreet.state.wire.connection import CommandRefused, PipelinedConnection

logger = logging.getLogger(__name__)

OLDEST = (6, 2)
ASK_FSYNC = (b"CONFIG", b"GET", b"appendfsync")

Examine = Callable[[PipelinedConnection], Awaitable[None]]
"""Raises if the store behind a connection is not to be used: it lost something, for instance."""


async def accept_any(connection: PipelinedConnection) -> None:
    """Examine nothing."""


async def connect(
    location: StoreLocation,
    node: ServerAddress | None,
    scripts: Sequence[bytes],
    patience: float,
    examine: Examine = accept_any,
) -> PipelinedConnection:
    """Return a connection to a master that is ready for every script, or raise.

    `node` is one member of a cluster; otherwise the location itself says where to go.
    """
    if location.kind is StoreKind.SENTINEL:
        node = await _ask_sentinels(location, patience)
    elif location.kind is StoreKind.SINGLE:
        node = location.nodes[0]
    async with asyncio.timeout(patience):
        connection = await reach(location, node)
        try:
            await _authenticate(connection, location.credentials)
            if location.db:
                await connection.ask((b"SELECT", location.db))
            await _inspect(connection, clustered=location.kind is StoreKind.CLUSTER)
            await examine(connection)
            await connection.ask(*loading(scripts))
        except BaseException:
            connection.abort()
            raise
    return connection


def loading(scripts: Sequence[bytes]) -> list[Sequence[Word]]:
    """Return the commands that make a server know these scripts."""
    return [(b"SCRIPT", b"LOAD", source) for source in scripts]


async def reach(location: StoreLocation, node: ServerAddress | None) -> PipelinedConnection:
    """Return a bare connection: no password given, nothing asked."""
    loop = asyncio.get_running_loop()
    if node is None:
        _, connection = await loop.create_unix_connection(
            lambda: PipelinedConnection(loop), location.path
        )
        return connection
    transport, connection = await loop.create_connection(
        lambda: PipelinedConnection(loop), node.host, node.port, ssl=location.tls
    )
    raw = transport.get_extra_info("socket")
    if raw is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return connection


async def first_answer(
    location: StoreLocation,
    nodes: Iterable[ServerAddress],
    credentials: Credentials,
    patience: float,
    *question: bytes,
) -> tuple[ServerAddress, Any]:
    """Put a question to one node after another; return the first that answers more than nil.

    Raises what the last of them failed with.
    """
    failure: Exception = StoreUnavailable("no node of the store knows the answer")
    for node in nodes:
        try:
            async with asyncio.timeout(patience / 2):  # one silent node must not use all the time
                connection = await reach(location, node)
                try:
                    await _authenticate(connection, credentials)
                    (reply,) = await connection.ask(question)
                finally:
                    connection.abort()
        except (OSError, TimeoutError, CommandRefused) as error:
            failure = error
        else:
            if reply is not None:
                return node, reply
    raise failure


async def _ask_sentinels(location: StoreLocation, patience: float) -> ServerAddress:
    """Return the master as the first Sentinel that answers knows it.

    A Sentinel on the losing side of a partition can name a former master; it is found out by its
    role once it has been demoted, and until then by `min-replicas-to-write`, if that is set.
    """
    _, (host, port) = await first_answer(
        location,
        location.nodes,
        location.sentinel_credentials,
        patience,
        b"SENTINEL",
        b"GET-MASTER-ADDR-BY-NAME",
        location.service.encode(),
    )
    return ServerAddress(host.decode(), int(port))


async def _authenticate(connection: PipelinedConnection, credentials: Credentials) -> None:
    if credentials.password is None:
        return
    words = [b"AUTH"]
    if credentials.username is not None:
        words.append(credentials.username.encode())
    words.append(credentials.password.encode())
    await connection.ask(words)


async def _inspect(connection: PipelinedConnection, *, clustered: bool) -> None:
    """Raise unless this is a master, new enough, and one that never evicts."""
    try:
        (reply,) = await connection.ask((b"INFO",))
    except CommandRefused as refusal:
        if refusal.code == "NOPERM":
            raise StoreUnsuitable(
                "the store's user may not run INFO, so eviction cannot be ruled out; "
                "allow it with ACL SETUSER … +info"
            ) from None
        raise
    lines = reply.decode("utf-8", "replace").splitlines()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    version = facts.get("redis_version", "0")
    if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < OLDEST:
        raise StoreUnsuitable("the store must be Redis or Valkey 6.2 or later")
    if clustered != (facts.get("cluster_enabled") == "1"):
        raise StoreUnsuitable(
            "the store is not a cluster; use redis:// instead of redis+cluster://"
            if clustered
            else "the store is a member of a cluster; use redis+cluster:// to reach it"
        )
    if facts.get("role") != "master":
        raise StoreUnavailable("the store is a replica at the moment")
    policy = facts.get("maxmemory_policy", "unknown")
    if policy != "noeviction":
        raise StoreUnsuitable(
            f"the store's maxmemory-policy is {policy}, so it may evict ledgers and claims; "
            "run CONFIG SET maxmemory-policy noeviction, and set it in the configuration file"
        )
    await _warn_if_not_durable(connection, appends=facts.get("aof_enabled") == "1")


async def _warn_if_not_durable(connection: PipelinedConnection, *, appends: bool) -> None:
    """Warn of a store that acknowledges a debit before it is on disk. It may be meant so."""
    try:
        (reply,) = await connection.ask(ASK_FSYNC)
    except CommandRefused:
        reply = None  # managed stores hide their configuration; their durability is theirs to state
    doubt = durability_doubt(appends=appends, fsync=reply)
    if doubt is not None:
        logger.warning("%s", doubt)


def durability_doubt(*, appends: bool, fsync: Sequence[bytes] | None) -> str | None:
    """Return what a crash may cost: `fsync` is the reply to `ASK_FSYNC`, None if it is hidden."""
    if not appends:
        return (
            "the store keeps no append-only file: a crash forgets debits that were acknowledged; "
            "set appendonly yes and appendfsync always"
        )
    if fsync and fsync[1] != b"always":
        return (
            f"the store's appendfsync is {fsync[1].decode('ascii', 'replace')}: a power cut "
            "forgets the last debits that were acknowledged; set appendfsync always"
        )
    return None
