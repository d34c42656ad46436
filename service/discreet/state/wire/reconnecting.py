"""One server: connected, or trying to be.

Commands for a server that is down wait for it, at most until their own deadline, because a store
that restarts is back in a moment. Once it has been down for longer than anyone waits, commands fail
at once: a caller who will get no answer should not have to wait for it.
"""

import asyncio
import logging
import math
import random
import ssl
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from discreet.errors import DiscreetError, StoreFenced, StoreUnavailable, StoreUnsuitable
from discreet.state.wire.commands import PendingCommand
from discreet.state.wire.connection import PipelinedConnection

logger = logging.getLogger(__name__)

FIRST_DELAY = 0.02
LONGEST_DELAY = 0.5
MOST_OUTSTANDING = 100_000
"""Commands to one server; beyond it the store is too slow to be of use, and memory is at stake."""


def backoff(attempts: int) -> float:
    """Return how long to wait before the next attempt, with jitter, in seconds."""
    longest = min(math.ldexp(FIRST_DELAY, min(attempts, 10)), LONGEST_DELAY)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311  spreads load, protects nothing


Refused = Callable[["ReconnectingConnection", PendingCommand, str], None]
"""Takes over a command that was answered by an error; its code says whether it ran."""
Lost = Callable[
    ["ReconnectingConnection", Sequence[PendingCommand], Sequence[PendingCommand]], None
]
"""Takes over what was outstanding when a connection went: what may have run, what has not."""
Unreachable = Callable[["ReconnectingConnection"], None]
"""Learns that an attempt to connect has failed."""


class ReconnectingConnection:
    """Keeps one connection to whatever `connect` reaches, and reconnects until closed."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[PipelinedConnection]],
        timeout: float,
        *,
        refused: Refused,
        lost: Lost,
        unreachable: Unreachable,
    ) -> None:
        self._refused = refused
        self._lost = lost
        self._unreachable = unreachable
        self._connect = connect
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._connection: PipelinedConnection | None = None
        self._waiting: list[PendingCommand] = []
        self._down_since = self._loop.time()
        self._failure: Exception | None = None
        self._changed = asyncio.Event()
        self._closed = False
        self._connecting = self._loop.create_task(self._keep_connecting())

    @property
    def is_up(self) -> bool:
        """Tell whether there is a connection now."""
        return self._connection is not None

    def send(self, commands: Sequence[PendingCommand]) -> None:
        """Send commands now, or as soon as the server is back."""
        connection = self._connection
        outstanding = len(self._waiting) if connection is None else connection.in_flight
        room = MOST_OUTSTANDING - outstanding
        if len(commands) > room:
            _fail(commands[room:], StoreUnavailable("the store is too slow for the load"))
            commands = commands[:room]
        if connection is not None:
            connection.send(commands)
        elif (
            self._closed
            or isinstance(self._failure, StoreFenced)
            or self._loop.time() - self._down_since > self._timeout
        ):
            _fail(commands, self._reason())
        else:
            self._waiting.extend(commands)

    def drop(self) -> None:
        """Let go of a connection that has turned out to be to the wrong server."""
        if self._connection is not None:
            self._connection.abort()

    def excuse(self, seconds: float) -> None:
        """Move every deadline by time in which nothing was polled."""
        for command in self._waiting:
            command.deadline += seconds
        if self._connection is not None:
            self._connection.excuse(seconds)

    def check(self, now: float) -> None:
        """Give up on what has waited too long."""
        if self._connection is not None:
            self._connection.check(now, self._timeout)
        expired = [command for command in self._waiting if now > command.deadline]
        if expired:
            self._waiting = [command for command in self._waiting if now <= command.deadline]
            _fail(expired, self._reason())

    async def connected(self, deadline: float) -> None:
        """Return once it is connected; raise why not at the deadline, or at once if hopeless."""
        while self._connection is None:
            if isinstance(self._failure, StoreUnsuitable | StoreFenced):
                raise self._failure
            self._changed.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._changed.wait()
            except TimeoutError:
                raise self._reason() from None

    async def close(self) -> list[PendingCommand]:
        """Disconnect for good; return the commands that were still waiting to be sent."""
        self._closed = True
        self._connecting.cancel()
        await asyncio.gather(self._connecting, return_exceptions=True)
        self.drop()
        waiting, self._waiting = self._waiting, []
        return waiting

    def _reason(self) -> StoreUnavailable:
        """Say why there is no connection, in words that quote neither the URL nor any data."""
        failure = self._failure
        if isinstance(failure, StoreFenced):
            return failure
        if isinstance(failure, DiscreetError):
            return StoreUnavailable(str(failure))
        if isinstance(failure, ssl.SSLError):
            return StoreUnavailable(f"TLS with the store failed ({failure.reason})")
        why = f" ({type(failure).__name__})" if failure is not None else ""
        return StoreUnavailable(f"the store cannot be reached{why}")

    async def _keep_connecting(self) -> None:
        attempts = 0
        while True:
            try:
                connection = await self._connect()
            except Exception as failure:  # whatever it was, to stop trying would be worse
                self._failed(failure)
                await asyncio.sleep(backoff(attempts))
                attempts += 1
            else:
                self._up(connection)
                return

    def _failed(self, failure: Exception) -> None:
        changed = (type(failure), str(failure)) != (type(self._failure), str(self._failure))
        self._failure = failure
        if changed:
            logger.warning("%s", self._reason())
        self._changed.set()
        if isinstance(failure, StoreFenced):
            # Waiting will not help: somebody has to decide.
            waiting, self._waiting = self._waiting, []
            _fail(waiting, failure)
        self._unreachable(self)

    def _up(self, connection: PipelinedConnection) -> None:
        connection.refused = partial(self._refused, self)
        connection.lost = partial(self._down, connection)
        self._connection = connection
        if self._failure is not None:
            logger.info("the store is back")
        self._failure = None
        self._changed.set()
        waiting, self._waiting = self._waiting, []
        connection.send([command for command in waiting if not command.done])

    def _down(
        self,
        connection: PipelinedConnection,
        ran: Sequence[PendingCommand],
        unsent: Sequence[PendingCommand],
    ) -> None:
        if self._connection is connection:
            self._connection = None
            self._down_since = self._loop.time()
            if not self._closed:
                self._connecting = self._loop.create_task(self._keep_connecting())
        self._lost(self, ran, unsent)


def _fail(commands: Sequence[PendingCommand], error: StoreUnavailable) -> None:
    for command in commands:
        command.answer(error)
