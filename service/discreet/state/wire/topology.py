"""From a command to the server that must run it, and what happens when that goes wrong.

The rule is one sentence: *a command is sent again only if that cannot run it twice*. It has
certainly not run if it was never written, or if the server refused it with an error that comes
before anything runs; and running it twice does no harm if it is repeatable. Everything else fails
as `StoreUnavailable`, and the caller releases nothing. One deadline covers all attempts.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from discreet.errors import StoreDamaged, StoreFenced, StoreUnavailable
from discreet.state.urls import ServerAddress, StoreLocation
from discreet.state.wire.commands import PendingCommand, packed_group
from discreet.state.wire.handshake import Examine, accept_any, connect, loading
from discreet.state.wire.reconnecting import ReconnectingConnection, backoff

PASSING = frozenset({"LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN"})
"""Errors of a server that ran nothing and will soon do better."""

REFUSALS = {
    "OOM": "the store is full: it has reached its maxmemory and takes no writes (OOM)",
    "MISCONF": "the store cannot write to its disk and takes no writes (MISCONF)",
    "NOREPLICAS": "the store has too few replicas and takes no writes (NOREPLICAS)",
}
"""What an operator has to know, in words."""


class Topology(ABC):
    """What a single server and a cluster share: retries, deadlines, and the care of servers."""

    def __init__(
        self,
        location: StoreLocation,
        scripts: Sequence[bytes],
        timeout: float,
        examine: Examine = accept_any,
    ) -> None:
        self._location = location
        self._examine = examine
        self._scripts = scripts
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._delayed: dict[PendingCommand, asyncio.TimerHandle] = {}
        self._loading: set[ReconnectingConnection] = set()
        self._period = min(timeout / 8, 0.25)
        self._due = self._loop.time() + self._period
        self._checking = self._loop.call_at(self._due, self._check)

    @abstractmethod
    def submit(self, commands: Sequence[PendingCommand]) -> None:
        """Send commands, each where its key lives."""

    @abstractmethod
    def servers(self) -> Iterable[ReconnectingConnection]:
        """Return the servers in use."""

    async def ready(self) -> None:
        """Return once every server can be used, or raise why not."""
        deadline = self._loop.time() + self._timeout
        for server in list(self.servers()):
            await server.connected(deadline)

    async def close(self) -> None:
        """Disconnect; whatever is outstanding fails."""
        self._closed = True
        self._checking.cancel()
        for command, timer in self._delayed.items():
            timer.cancel()
            command.answer(_closed())
        self._delayed.clear()
        for server in list(self.servers()):
            for command in await server.close():
                command.answer(_closed())

    def retry(self, command: PendingCommand) -> None:
        """Submit a command again after a moment, unless its time is up."""
        delay = backoff(command.attempts)
        command.attempts += 1
        if self._closed:
            command.answer(_closed())
        elif self._loop.time() + delay > command.deadline:
            command.answer(StoreUnavailable("the store could not run a command in time"))
        elif not command.done:
            self._delayed[command] = self._loop.call_later(delay, self._resubmit, command)

    def refused(
        self, server: ReconnectingConnection, command: PendingCommand, message: str
    ) -> None:
        code = message.partition(" ")[0]
        if code == "NOSCRIPT":
            self._load_scripts(server)
            self.retry(command)
        elif code in PASSING:
            self.retry(command)
        elif code == "READONLY":
            # A former master. The address may by now mean another server: look again.
            server.drop()
            self.retry(command)
        elif code == "FENCED":
            command.answer(StoreFenced(message.partition(" ")[2]))
        elif code == "WRONGTYPE":
            command.answer(StoreDamaged("the store holds something that cannot be read"))
        else:
            why = REFUSALS.get(code, f"the store refused a command ({code})")
            command.answer(StoreUnavailable(why))

    def lost(
        self,
        server: ReconnectingConnection,
        ran: Sequence[PendingCommand],
        unsent: Sequence[PendingCommand],
    ) -> None:
        for command in ran:
            if command.repeatable:
                self.retry(command)
            else:
                command.answer(StoreUnavailable("the store's answer was lost"))
        for command in unsent:
            self.retry(command)

    def unreachable(self, server: ReconnectingConnection) -> None:  # noqa: B027  not a gap
        """Do nothing: the server is tried again by itself."""

    def connect_to(self, node: ServerAddress | None) -> ReconnectingConnection:
        """Return a server that is being connected to."""
        return ReconnectingConnection(
            lambda: connect(self._location, node, self._scripts, self._timeout, self._examine),
            self._timeout,
            refused=self.refused,
            lost=self.lost,
            unreachable=self.unreachable,
        )

    def _load_scripts(self, server: ReconnectingConnection) -> None:
        """Load everything again: somebody has flushed the scripts of a live connection."""
        if server in self._loading:
            return
        self._loading.add(server)
        deadline = self._loop.time() + self._timeout
        group, commands = packed_group(loading(self._scripts), deadline=deadline)
        group.future.add_done_callback(lambda _: self._loading.discard(server))
        server.send(commands)

    def _resubmit(self, command: PendingCommand) -> None:
        del self._delayed[command]
        if not command.done:
            self.submit((command,))

    def _check(self) -> None:
        """Give up on what has waited too long, every now and then.

        Time in which this process did not poll is not the store's fault: its answers may lie unread
        in the socket. Deadlines move by it.
        """
        now = self._loop.time()
        late = now - self._due
        for server in self.servers():
            if late > self._period:
                server.excuse(late)
            server.check(now)
        self._due = now + self._period
        self._checking = self._loop.call_at(self._due, self._check)


class SingleServer(Topology):
    """A single server, or the master that Sentinels name: one connection for every key."""

    def __init__(
        self,
        location: StoreLocation,
        scripts: Sequence[bytes],
        timeout: float,
        examine: Examine = accept_any,
    ) -> None:
        super().__init__(location, scripts, timeout, examine)
        self._server = self.connect_to(None)

    def submit(self, commands: Sequence[PendingCommand]) -> None:
        self._server.send(commands)

    def servers(self) -> Iterable[ReconnectingConnection]:
        return (self._server,)


def _closed() -> StoreUnavailable:
    """Return the error of commands that nobody will answer any more."""
    return StoreUnavailable("the store is closed")
