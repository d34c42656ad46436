"""The connections of one worker: how many there may be, and how long each may take.

One look over all connections every half a second takes the place of a timer for each request. Time
is counted by those looks, so that time in which this process did not poll is nobody's fault: a
worker that was busy for ten seconds does not then hang up on everybody whose bytes it did not read.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from uvicorn.protocols.http.flow_control import FlowControl

LOOK_SECONDS = 0.5
MOST_REFUSED = 128
"""Connections without room that are told so, at a time; others are dropped without a word. Each
holds a descriptor until its caller has read that, and the store's connections need some too."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What one worker accepts before anything is known about a caller."""

    header_bytes: int = 16 * 2**10
    """The request line and all headers; as many again for trailers."""
    headers: int = 100
    header_seconds: float = 10.0
    """From the first byte of a request, or from connecting, to the end of its headers."""
    body_seconds: float = 30.0
    """From there to the end of its body; also how long a caller may take to read."""
    idle_seconds: float = 75.0
    """Between two requests."""
    connections: int = 4_096
    connections_by_address: int = 2_048


class BoundedConnection(Protocol):
    """A connection as the table sees it; moments are on the table's clock."""

    due: float
    """When the caller will have taken too long to send; infinite while it is our turn."""
    reading_due: float
    """When the caller will have taken too long to read."""
    network: str

    @property
    def held_back(self) -> bool:
        """Tell whether we do not read what the caller sends."""
        ...

    def expire(self) -> None:
        """End it: the caller took too long."""
        ...


class HoldingFlow(FlowControl):
    """Does not read on while something that was read waits (`holds`), whoever wants more."""

    holds = False

    def resume_reading(self) -> None:
        if not self.holds:
            super().resume_reading()


class AnswerTransport:
    """What an answer is written to: closing it leaves a caller who is still sending time to read.

    A connection that closes with unread bytes would be reset, and the answer lost.
    """

    __slots__ = ("close", "is_closing", "write")

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self.write = transport.write
        self.is_closing = transport.is_closing
        self.close = close


class ConnectionTable:
    """Every connection of a worker. `now` is a clock that stands still while nothing is polled."""

    def __init__(self, limits: HttpLimits) -> None:
        self.limits = limits
        self.now = 0.0
        self._all: dict[BoundedConnection, bool] = {}
        """And whether there was room for it: those that are being refused take no room."""
        self._count = 0
        self._by_network: Counter[str] = Counter()
        self._looking: asyncio.TimerHandle | None = None
        self._looked = 0.0

    def __len__(self) -> int:
        return self._count

    def enter(self, connection: BoundedConnection) -> bool:
        """Add a connection and look after it; tell whether there was room for it."""
        network = connection.network
        room = self._count < self.limits.connections and (
            not network or self._by_network[network] < self.limits.connections_by_address
        )
        self._all[connection] = room
        if room:
            self._count += 1
            self._by_network[network] += 1
        if self._looking is None:
            loop = asyncio.get_running_loop()
            self._looked = loop.time()
            self._looking = loop.call_later(LOOK_SECONDS, self._look, loop)
        return room

    @property
    def crowded(self) -> bool:
        """Tell whether more are being refused than can be told so."""
        return len(self._all) - self._count > MOST_REFUSED

    def leave(self, connection: BoundedConnection) -> None:
        """Forget a connection that is gone."""
        if self._all.pop(connection, False):
            network = connection.network
            self._count -= 1
            self._by_network[network] -= 1
            if not self._by_network[network]:
                del self._by_network[network]

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        moment = loop.time()
        passed = min(moment - self._looked, 2 * LOOK_SECONDS)
        self._looked = moment
        self.now += passed
        for connection in list(self._all):
            if connection.held_back and math.isfinite(connection.due):
                connection.due += passed  # we made it wait, not the caller
            if connection.due <= self.now or connection.reading_due <= self.now:
                connection.expire()
        self._looking = loop.call_later(LOOK_SECONDS, self._look, loop) if self._all else None
