"""What the store calls: opened and closed once, and commands sent between.

The sender belongs to the event loop in which it was opened.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from discreet.errors import StoreUnavailable
from discreet.state.client import StoreCommand
from discreet.state.urls import StoreKind, StoreLocation
from discreet.state.wire.cluster import ClusterTopology
from discreet.state.wire.commands import CommandGroup, PendingCommand, packed
from discreet.state.wire.handshake import Examine, accept_any
from discreet.state.wire.topology import SingleServer, Topology


class CommandSender:
    """A `client.StoreClient` to a single server, to the master behind Sentinels, or to a cluster,
    as `location` says.

    `scripts` are the sources of what EVALSHA may call; `timeout` is the longest that any command
    takes to answer or fail, in seconds; `examine` looks at every new connection before it is used.
    """

    def __init__(
        self,
        location: StoreLocation,
        *,
        scripts: Sequence[bytes],
        timeout: float,
        examine: Examine = accept_any,
    ) -> None:
        self.one_server = location.kind is not StoreKind.CLUSTER
        self._location = location
        self._scripts = scripts
        self._timeout = timeout
        self._examine = examine
        self._topology: Topology | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def open(self) -> None:
        """Connect, load scripts, and refuse a server that would evict ledgers."""
        if self._topology is not None:
            raise StoreUnavailable("the store is open already")
        self._loop = asyncio.get_running_loop()
        kind = SingleServer if self.one_server else ClusterTopology
        topology = kind(self._location, self._scripts, self._timeout, self._examine)
        try:
            await topology.ready()
        except BaseException:
            await topology.close()
            raise
        self._topology = topology

    async def close(self) -> None:
        """Let go of every connection; whatever is outstanding is answered by an error."""
        topology, self._topology = self._topology, None
        if topology is not None:
            await topology.close()

    def send(self, commands: Sequence[StoreCommand]) -> "asyncio.Future[list[Any]]":
        """Send commands now; see `client.StoreClient.send`."""
        if self._topology is None or self._loop is None:
            raise StoreUnavailable("the store is not open")
        group = CommandGroup(self._loop, len(commands))
        deadline = self._loop.time() + self._timeout
        self._topology.submit(
            [
                PendingCommand(packed(words), key, repeatable, deadline, group, position)
                for position, (key, words, repeatable) in enumerate(commands)
            ]
        )
        return group.future
