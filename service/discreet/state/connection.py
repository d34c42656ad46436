"""A store's connection: opened and closed once, and commands sent over it between.

The connection belongs to the event loop in which it was opened.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Generic, TypeVar

from discreet.errors import StoreUnavailable
from discreet.state import replies
from discreet.state.cluster import Cluster
from discreet.state.commands import Command, Entry, Gathered, Part
from discreet.state.keys import Keys
from discreet.state.routes import OneLane, Route
from discreet.state.urls import Kind, Location

T = TypeVar("T")


class Discarded:
    """The answers of several commands, awaited for their errors only."""

    __slots__ = ("_answers",)

    def __init__(self, answers: "asyncio.Future[list[None]]") -> None:
        self._answers = answers

    def __await__(self) -> Generator[Any, None, None]:
        yield from self._answers


class Converted(Generic[T]):
    """The replies to many commands, read together once all are there."""

    __slots__ = ("_convert", "_replies")

    def __init__(
        self, given: "asyncio.Future[list[Any]]", convert: Callable[[Sequence[Any]], T]
    ) -> None:
        self._replies = given
        self._convert = convert

    def __await__(self) -> Generator[Any, None, T]:
        return self._convert((yield from self._replies))


class Connection:
    """To a single server, to the leader behind Sentinels, or to a cluster, as `location` says."""

    def __init__(self, location: Location, *, keys: Keys, timeout: float) -> None:
        self._location = location
        self._keys = keys
        self._timeout = timeout
        self._route: Route | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def open(self) -> None:
        """Connect, load scripts, and refuse a store that would evict ledgers."""
        if self._route is not None:
            raise StoreUnavailable("the store is open already")
        self._loop = asyncio.get_running_loop()
        topology = Cluster if self._location.kind is Kind.CLUSTER else OneLane
        route = topology(self._location, self._timeout)
        try:
            await route.ready()
        except BaseException:
            await route.close()
            raise
        self._route = route

    async def close(self) -> None:
        """Let go of every connection; whatever is outstanding raises `StoreUnavailable`."""
        route, self._route = self._route, None
        if route is not None:
            await route.close()

    def _send(
        self, payload: bytes, key: bytes, convert: Callable[[Any], T], *, repeatable: bool = True
    ) -> "asyncio.Future[T]":
        route, loop = self._opened()
        future: asyncio.Future[T] = loop.create_future()
        route.submit(
            Command(
                payload,
                key=key,
                convert=convert,
                future=future,
                repeatable=repeatable,
                deadline=loop.time() + self._timeout,
            )
        )
        return future

    def _send_all(
        self, commands: Sequence[tuple[bytes, bytes]], convert: Callable[[Any], T]
    ) -> "asyncio.Future[list[T]]":
        """Send repeatable commands, each to the server of its key, for one list of answers."""
        return self._send_parts(Part, commands, convert, repeatable=True)

    def _send_each(
        self,
        commands: Sequence[tuple[bytes, bytes]],
        convert: Callable[[Sequence[Any]], T],
        *,
        repeatable: bool = True,
    ) -> "Converted[T]":
        """Send many commands, each to the server of its key, and convert all replies together.

        One that fails is listed as its `DiscreetError` among the replies.
        """
        return Converted(self._send_parts(Entry, commands, replies.nothing, repeatable), convert)

    def _send_parts(
        self,
        kind: type[Part],
        commands: Sequence[tuple[bytes, bytes]],
        convert: Callable[[Any], Any],
        repeatable: bool,
    ) -> "asyncio.Future[list[Any]]":
        route, loop = self._opened()
        future: asyncio.Future[list[Any]] = loop.create_future()
        if not commands:
            future.set_result([])
        gathered = Gathered(future, len(commands))
        deadline = loop.time() + self._timeout
        route.submit_all(
            [
                kind(payload, key, convert, repeatable, deadline, gathered, position)
                for position, (payload, key) in enumerate(commands)
            ]
        )
        return future

    def _send_together(self, commands: Sequence[tuple[bytes, bytes]]) -> Awaitable[None]:
        """Send repeatable commands whose answers say nothing; wait for all."""
        return Discarded(self._send_all(commands, replies.nothing))

    def _opened(self) -> tuple[Route, asyncio.AbstractEventLoop]:
        if self._route is None or self._loop is None:
            raise StoreUnavailable("the store is not open")
        return self._route, self._loop
