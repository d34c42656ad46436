"""A lane to one server: connected, or trying to be.

Commands given to a lane that is down wait for it, at most until their own deadline, because a
store that restarts is back in a moment. Once it has been down for longer than anyone waits, new
commands fail at once: a caller who will get no answer should not have to wait for it.
"""

import asyncio
import logging
import math
import random
import ssl
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol

from discreet.errors import DiscreetError, StoreUnavailable, StoreUnsuitable
from discreet.state.commands import Command
from discreet.state.wire import Wire

logger = logging.getLogger(__name__)

FIRST_DELAY = 0.02
LONGEST_DELAY = 0.5
MOST_OUTSTANDING = 100_000
"""Commands of one lane; beyond it the store is too slow to be of use, and memory is at stake."""


def backoff(attempts: int) -> float:
    """Return how long to wait before the next attempt, with jitter, in seconds."""
    longest = min(math.ldexp(FIRST_DELAY, min(attempts, 10)), LONGEST_DELAY)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311  spreads load, protects nothing


class Owner(Protocol):
    """Who decides what becomes of commands that a lane could not finish."""

    def refused(self, lane: "Lane", command: Command, message: str) -> None:
        """Take over a command that was answered by an error; its code says whether it ran."""
        ...

    def lost(self, lane: "Lane", ran: Sequence[Command], unsent: Sequence[Command]) -> None:
        """Take over what was outstanding when a connection went."""
        ...

    def unreachable(self, lane: "Lane") -> None:
        """Learn that an attempt to connect has failed."""
        ...


class Lane:
    """Keeps one connection to whatever `dial` reaches, and reconnects until closed."""

    def __init__(self, owner: Owner, dial: Callable[[], Awaitable[Wire]], timeout: float) -> None:
        self._owner = owner
        self._dial = dial
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._wire: Wire | None = None
        self._waiting: list[Command] = []
        self._down_since = self._loop.time()
        self._failure: Exception | None = None
        self._changed = asyncio.Event()
        self._closed = False
        self._connecting: asyncio.Task[None] | None = None
        self._connect()

    def send(self, command: Command) -> None:
        """Send a command now, or as soon as the lane is up."""
        wire = self._wire
        if wire is not None and wire.in_flight < MOST_OUTSTANDING:
            wire.send(command)
        elif wire is not None or len(self._waiting) >= MOST_OUTSTANDING:
            command.fail(StoreUnavailable("the store is too slow for the load"))
        elif self._closed or self._loop.time() - self._down_since > self._timeout:
            command.fail(self._reason())
        else:
            self._waiting.append(command)

    def send_all(self, commands: Sequence[Command]) -> None:
        """Send many commands, as `send` would each of them."""
        wire = self._wire
        if wire is not None and wire.in_flight + len(commands) < MOST_OUTSTANDING:
            wire.send_all(commands)
        else:
            for command in commands:
                self.send(command)

    @property
    def wire(self) -> Wire | None:
        """Return the connection, if there is one, for questions about the server itself."""
        return self._wire

    def drop(self) -> None:
        """Let go of a connection that has turned out to be to the wrong server."""
        if self._wire is not None:
            self._wire.abort()

    def check(self, now: float) -> None:
        """Give up on what has waited too long."""
        if self._wire is not None:
            self._wire.check(now, self._timeout)
        expired = [command for command in self._waiting if now > command.deadline]
        if expired:
            self._waiting = [command for command in self._waiting if now <= command.deadline]
            for command in expired:
                command.fail(self._reason())

    async def connected(self, deadline: float) -> None:
        """Return once the lane is up; raise why not at the deadline, or at once if hopeless."""
        while self._wire is None:
            if isinstance(self._failure, StoreUnsuitable):
                raise self._failure
            self._changed.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._changed.wait()
            except TimeoutError:
                raise self._reason() from None

    async def close(self) -> list[Command]:
        """Disconnect for good; return the commands that were still waiting to be sent."""
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        if self._wire is not None:
            self._wire.abort()
        waiting, self._waiting = self._waiting, []
        return waiting

    def _reason(self) -> StoreUnavailable:
        """Say why there is no connection, in words that quote neither the URL nor any data."""
        failure = self._failure
        if isinstance(failure, DiscreetError):
            return StoreUnavailable(str(failure))
        if isinstance(failure, ssl.SSLError):
            return StoreUnavailable(f"TLS with the store failed ({failure.reason})")
        why = f" ({type(failure).__name__})" if failure is not None else ""
        return StoreUnavailable(f"the store cannot be reached{why}")

    def _connect(self) -> None:
        self._connecting = self._loop.create_task(self._keep_dialling())

    async def _keep_dialling(self) -> None:
        attempts = 0
        while True:
            try:
                wire = await self._dial()
            except Exception as failure:  # whatever it was, a lane that stops trying is worse
                self._failed(failure)
                await asyncio.sleep(backoff(attempts))
                attempts += 1
            else:
                self._up(wire)
                return

    def _failed(self, failure: Exception) -> None:
        changed = (type(failure), str(failure)) != (type(self._failure), str(self._failure))
        self._failure = failure
        if changed:
            logger.warning("%s", self._reason())
        self._changed.set()
        self._owner.unreachable(self)

    def _up(self, wire: Wire) -> None:
        wire.refused = self._refused
        wire.lost = partial(self._lost, wire)
        self._wire = wire
        if self._failure is not None:
            logger.info("the store is back")
        self._failure = None
        self._changed.set()
        waiting, self._waiting = self._waiting, []
        for command in waiting:
            if not command.done:
                wire.send(command)

    def _refused(self, command: Command, message: str) -> None:
        self._owner.refused(self, command, message)

    def _lost(self, wire: Wire, ran: Sequence[Command], unsent: Sequence[Command]) -> None:
        if self._wire is wire:
            self._wire = None
            self._down_since = self._loop.time()
            if not self._closed:
                self._connect()
        self._owner.lost(self, ran, unsent)
