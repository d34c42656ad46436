"""From a command to the server that must run it, and what happens when that goes wrong.

The rule is one sentence: *a command is sent again only if that cannot run it twice*. It has
certainly not run if it was never written, or if the server refused it with an error that comes
before anything runs; and running it twice does no harm if it is repeatable. Everything else fails
as `StoreUnavailable`, and the caller releases nothing. One deadline covers all attempts.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from discreet.errors import StoreUnavailable
from discreet.state import scripts
from discreet.state.commands import Command
from discreet.state.dialling import dial
from discreet.state.lanes import Lane, backoff
from discreet.state.urls import Location

PASSING = frozenset({"LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN"})
"""Errors of a server that ran nothing and will soon do better."""


class Route(ABC):
    """What every topology shares: retries, deadlines, and the care of lanes."""

    def __init__(self, location: Location, timeout: float) -> None:
        self._location = location
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._delayed: dict[Command, asyncio.TimerHandle] = {}
        self._loading: set[Lane] = set()
        self._period = min(timeout / 8, 0.25)
        self._checking = self._loop.call_later(self._period, self._check)

    @abstractmethod
    def submit(self, command: Command) -> None:
        """Send a command where its key lives."""

    def submit_all(self, commands: Sequence[Command]) -> None:
        """Send many commands, each where its key lives."""
        for command in commands:
            self.submit(command)

    @abstractmethod
    def lanes(self) -> Iterable[Lane]:
        """Return the lanes in use."""

    async def ready(self) -> None:
        """Return once every server can be used, or raise why not."""
        deadline = self._loop.time() + self._timeout
        for lane in list(self.lanes()):
            await lane.connected(deadline)

    async def close(self) -> None:
        """Disconnect; whatever is outstanding fails."""
        self._closed = True
        self._checking.cancel()
        for command, timer in self._delayed.items():
            timer.cancel()
            command.fail(closed())
        self._delayed.clear()
        for lane in list(self.lanes()):
            for command in await lane.close():
                command.fail(closed())

    def retry(self, command: Command) -> None:
        """Submit a command again after a moment, unless its time is up."""
        delay = backoff(command.attempts)
        command.attempts += 1
        if self._closed:
            command.fail(closed())
        elif self._loop.time() + delay > command.deadline:
            command.fail(StoreUnavailable("the store could not run a command in time"))
        elif not command.done:
            self._delayed[command] = self._loop.call_later(delay, self._resubmit, command)

    def refused(self, lane: Lane, command: Command, message: str) -> None:
        code = message.partition(" ")[0]
        if code == "NOSCRIPT":
            self._load_scripts(lane)
            self.retry(command)
        elif code in PASSING:
            self.retry(command)
        elif code == "READONLY":
            # A former master. The address may by now mean another server: look again.
            lane.drop()
            self.retry(command)
        else:
            command.fail(StoreUnavailable(f"the store refused a command ({code})"))

    def lost(self, lane: Lane, ran: Sequence[Command], unsent: Sequence[Command]) -> None:
        for command in ran:
            if command.repeatable:
                self.retry(command)
            else:
                command.fail(StoreUnavailable("the store's answer was lost"))
        for command in unsent:
            self.retry(command)

    def unreachable(self, lane: Lane) -> None:  # noqa: B027  a default, not a gap
        """Do nothing: the lane keeps trying by itself."""

    def _load_scripts(self, lane: Lane) -> None:
        """Load everything again: somebody has flushed the scripts of a live connection."""
        if lane.wire is None or lane in self._loading:
            return
        self._loading.add(lane)
        loads = [lane.wire.ask(script.load) for script in scripts.ALL]
        loads[-1].add_done_callback(lambda _: self._loading.discard(lane))

    def _resubmit(self, command: Command) -> None:
        del self._delayed[command]
        if not command.done:
            self.submit(command)

    def expire(self, now: float) -> None:
        """Give up on what has waited too long."""
        for lane in self.lanes():
            lane.check(now)

    def _check(self) -> None:
        self.expire(self._loop.time())
        self._checking = self._loop.call_later(self._period, self._check)


class OneLane(Route):
    """A single server, or the master that Sentinels name: one lane for every key."""

    def __init__(self, location: Location, timeout: float) -> None:
        super().__init__(location, timeout)
        self._lane = Lane(self, lambda: dial(location, None, timeout), timeout)

    def submit(self, command: Command) -> None:
        self._lane.send(command)

    def submit_all(self, commands: Sequence[Command]) -> None:
        self._lane.send_all(commands)

    def lanes(self) -> Iterable[Lane]:
        return (self._lane,)


def closed() -> StoreUnavailable:
    """Return the error of commands that nobody will answer any more."""
    return StoreUnavailable("the store is closed")
