"""Commands to the members of a cluster, each to the master of its key's slot.

Replication is asynchronous: when a master dies, the replica that takes over may lack the last
writes that the master had acknowledged. A debit among them is then forgotten; that is noticed, and
the store is refused (see `fence`). `min-replicas-to-write 1` narrows the window and `appendfsync
always` covers every crash that the master itself comes back from; neither closes it. A deployment
whose budgets must survive the loss of a machine runs a single durable master, and lives with its
outages.
"""

import asyncio
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from discreet.errors import StoreUnavailable, StoreUnsuitable
from discreet.state.slots import SLOTS, slot_of
from discreet.state.urls import ServerAddress, StoreLocation
from discreet.state.wire.commands import PendingCommand, packed_group
from discreet.state.wire.connection import CommandRefused
from discreet.state.wire.handshake import Examine, accept_any, first_answer
from discreet.state.wire.reconnecting import ReconnectingConnection, backoff
from discreet.state.wire.topology import Topology

PAUSE = 0.1
"""Seconds between two questions about the slots, however many commands ask for one."""


class ClusterTopology(Topology):
    """One connection to each master; the map of slots follows redirections and failures."""

    def __init__(
        self,
        location: StoreLocation,
        scripts: Sequence[bytes],
        timeout: float,
        examine: Examine = accept_any,
    ) -> None:
        super().__init__(location, scripts, timeout, examine)
        self._server_at: dict[ServerAddress, ReconnectingConnection] = {}
        self._owner_of: list[ReconnectingConnection | None] = [None] * SLOTS
        self._failure: StoreUnavailable | StoreUnsuitable | None = None
        self._mapped = asyncio.Event()
        self._mapping: asyncio.Task[None] | None = None
        self._leaving: set[asyncio.Task[None]] = set()

    def servers(self) -> Iterable[ReconnectingConnection]:
        return list(self._server_at.values())

    def submit(self, commands: Sequence[PendingCommand]) -> None:
        by_owner: dict[ReconnectingConnection, list[PendingCommand]] = {}
        for command in commands:
            owner = self._owner_of[slot_of(command.key)]
            if owner is not None:
                by_owner.setdefault(owner, []).append(command)
            else:
                self._map_again()
                self.retry(command)
        for owner, some in by_owner.items():
            owner.send(some)

    async def ready(self) -> None:
        self._map_again()
        try:
            async with asyncio.timeout(self._timeout):
                while None in self._owner_of and not isinstance(self._failure, StoreUnsuitable):
                    self._mapped.clear()
                    await self._mapped.wait()
                    self._map_again()
        except TimeoutError:
            self._failure = self._failure or StoreUnavailable("the cluster lacks some slots")
        if self._failure is not None:
            raise self._failure
        await super().ready()

    async def close(self) -> None:
        self._closed = True
        if self._mapping is not None:
            self._mapping.cancel()
            await asyncio.gather(self._mapping, return_exceptions=True)
        await asyncio.gather(*self._leaving)
        await super().close()

    def refused(
        self, server: ReconnectingConnection, command: PendingCommand, message: str
    ) -> None:
        code, _, rest = message.partition(" ")
        if code in ("MOVED", "ASK"):
            self._redirect(server, command, code, rest)
        else:
            if code in ("CLUSTERDOWN", "READONLY"):
                self._map_again()
            super().refused(server, command, message)

    def lost(
        self,
        server: ReconnectingConnection,
        ran: Sequence[PendingCommand],
        unsent: Sequence[PendingCommand],
    ) -> None:
        self._map_again()
        super().lost(server, ran, unsent)

    def unreachable(self, server: ReconnectingConnection) -> None:
        self._map_again()

    def _redirect(
        self, server: ReconnectingConnection, command: PendingCommand, code: str, rest: str
    ) -> None:
        """Follow a redirection: MOVED for good, ASK for this once."""
        try:
            slot, _, endpoint = rest.partition(" ")
            host, _, port = endpoint.rpartition(":")
            owner = self._server_of(ServerAddress(host or self._host_of(server), int(port)))
            if code == "MOVED":
                self._owner_of[int(slot)] = owner
        except (ValueError, IndexError):
            command.answer(StoreUnavailable("the cluster redirects to nowhere"))
            return
        if code == "ASK":
            # The permission must directly precede the command; nobody waits for its answer.
            group, (asking,) = packed_group([(b"ASKING",)])
            group.future.cancel()
            owner.send((asking, command))
            return
        self._map_again()
        if command.attempts < 3:
            command.attempts += 1
            owner.send((command,))
        else:
            self.retry(command)  # members that name each other come to agree in a moment

    def _host_of(self, server: ReconnectingConnection) -> str:
        """Return the host of a server: a redirection without a host means the same one."""
        return next((node.host for node, each in self._server_at.items() if each is server), "")

    def _server_of(self, node: ServerAddress) -> ReconnectingConnection:
        server = self._server_at.get(node)
        if server is None:
            server = self._server_at[node] = self.connect_to(node)
        return server

    def _map_again(self) -> None:
        """Have the map of slots read anew, once for all who ask within a moment."""
        if not self._closed and (self._mapping is None or self._mapping.done()):
            self._mapping = self._loop.create_task(self._map())

    async def _map(self) -> None:
        attempts = 0
        while True:
            try:
                self._adopt(*await self._ask_slots())
            except (StoreUnavailable, StoreUnsuitable) as failure:
                self._failure = failure
                self._mapped.set()
                await asyncio.sleep(backoff(attempts))
                attempts += 1
            else:
                break
        self._failure = None
        self._mapped.set()
        # Whoever saw a failure meanwhile saw it on the old map; those of the new one ask again.
        await asyncio.sleep(PAUSE)

    async def _ask_slots(self) -> tuple[ServerAddress, Any]:
        """Return the member that was asked, any that answers, and its CLUSTER SLOTS."""
        up = [node for node, server in self._server_at.items() if server.is_up]
        others = [*self._server_at, *self._location.nodes]
        random.shuffle(up)
        random.shuffle(others)
        members = dict.fromkeys([*up, *others])
        credentials = self._location.credentials
        try:
            return await first_answer(
                self._location, members, credentials, self._timeout, b"CLUSTER", b"SLOTS"
            )
        except CommandRefused as refusal:
            if "cluster support disabled" in refusal.message:
                raise StoreUnsuitable(
                    "the store is not a cluster; use redis:// instead of redis+cluster://"
                ) from None
            raise StoreUnavailable(str(refusal)) from None
        except (OSError, TimeoutError):
            raise StoreUnavailable("no member of the cluster can be reached") from None

    def _adopt(self, asked: ServerAddress, reply: Any) -> None:
        """Take over the map of slots; servers that own none of them any more are closed."""
        owners: list[ReconnectingConnection | None] = [None] * SLOTS
        masters = set()
        for first, last, node in _ranges(asked, reply):
            owners[first : last + 1] = [self._server_of(node)] * (last + 1 - first)
            masters.add(node)
        if not masters:
            raise StoreUnavailable("the cluster has no slots yet")
        self._owner_of = owners
        for node in set(self._server_at) - masters:
            task = self._loop.create_task(self._leave(self._server_at.pop(node)))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    async def _leave(self, server: ReconnectingConnection) -> None:
        for command in await server.close():
            self.retry(command)


def _ranges(asked: ServerAddress, reply: Any) -> Iterator[tuple[int, int, ServerAddress]]:
    """Yield (first slot, last slot, master) from CLUSTER SLOTS; no host means the one asked."""
    try:
        for first, last, master, *_ in reply:
            host = (master[0] or b"").decode()
            if not 0 <= first <= last < SLOTS:
                raise ValueError("a slot out of range")
            yield first, last, ServerAddress(asked.host if host in ("", "?") else host, master[1])
    except (AttributeError, TypeError, ValueError, IndexError):
        raise StoreUnavailable("the cluster describes itself unintelligibly") from None
