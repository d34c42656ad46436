"""The store over other clients: redis-py and coredis behind the same bridge as our own.

Both are given what helps them most: raw replies, hiredis where they use it, one connection, and all
commands of a turn of the event loop in one pipeline. What is sent while a pipeline is under way
goes with the next one, so commands run in the order in which they were sent.

They are here to be measured, on a single server that stays up: what our own client does about lost
connections, repeated commands and clusters is not built again.
"""

import asyncio
import importlib.util
import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

import redis.asyncio
from redis.exceptions import RedisError

from discreet.errors import StoreUnavailable
from discreet.state import scripts
from discreet.state.client import StoreCommand
from discreet.state.urls import StoreKind, parse


class PipelineClient(ABC):
    """A `discreet.state.client.StoreClient` over a library that has pipelines."""

    one_server = True

    def __init__(self, url: str) -> None:
        location = parse(url)
        if location.kind is not StoreKind.UNIX:
            raise ValueError("the other clients are measured on a unix socket")
        self._path = location.path
        self._waiting: list[tuple[Sequence[StoreCommand], asyncio.Future[list[Any]]]] = []
        self._running: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect and load the scripts."""
        await self.connect()
        await self.send(
            [StoreCommand(b"", (b"SCRIPT", b"LOAD", script.source)) for script in scripts.ALL]
        )

    @abstractmethod
    async def connect(self) -> None:
        """Get the library ready."""

    @abstractmethod
    async def run(self, commands: Sequence[StoreCommand]) -> Sequence[Any]:
        """Send commands in one pipeline; return a reply, or an exception, for each."""

    @abstractmethod
    async def close(self) -> None:
        """Disconnect."""

    def send(self, commands: Sequence[StoreCommand]) -> "asyncio.Future[list[Any]]":
        """Send commands at the end of this turn, or after the pipeline that is under way."""
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self._waiting.append((commands, future))
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run_all())
        return future

    async def _run_all(self) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            together = list(itertools.chain.from_iterable(commands for commands, _ in waiting))
            replies = iter(await self.run(together))
            for commands, future in waiting:
                answers = [_answer(reply) for reply in itertools.islice(replies, len(commands))]
                if not future.done():
                    future.set_result(answers)
        self._running = None


def _answer(reply: Any) -> Any:
    if isinstance(reply, Exception):
        return StoreUnavailable(f"the store refused a command ({type(reply).__name__})")
    return reply


class RedisPyClient(PipelineClient):
    """redis-py's asyncio client with hiredis."""

    async def connect(self) -> None:
        self._client = redis.asyncio.Redis(
            unix_socket_path=self._path, protocol=2, single_connection_client=True
        )
        self._client.response_callbacks.clear()  # replies as they come

    async def run(self, commands: Sequence[StoreCommand]) -> Sequence[Any]:
        try:
            pipeline = self._client.pipeline(transaction=False)
            for command in commands:
                pipeline.execute_command(*command.words)
            replies: list[Any] = await pipeline.execute(raise_on_error=False)
        except (RedisError, OSError) as error:
            return [error] * len(commands)
        return replies

    async def close(self) -> None:
        await self._client.aclose()


class CoredisClient(PipelineClient):
    """coredis, whose parser and packer are compiled."""

    async def connect(self) -> None:
        import coredis

        # It names no command that it does not know, so commands are made as it makes them itself.
        from coredis.response._callbacks import NoopCallback

        self._unchanged: Any = NoopCallback()
        self._stack = AsyncExitStack()
        self._client = await self._stack.enter_async_context(
            coredis.Redis(unix_socket_path=self._path, max_connections=1)
        )

    async def run(self, commands: Sequence[StoreCommand]) -> Sequence[Any]:
        async with self._client.pipeline(transaction=False, raise_on_error=False) as pipeline:
            for command in commands:
                words: Sequence[Any] = command.words
                pipeline.create_request(*words, callback=self._unchanged)
        assert pipeline.results is not None
        return [_plain(reply) for reply in pipeline.results]

    async def close(self) -> None:
        await self._stack.aclose()


CLIENTS: Mapping[str, type[PipelineClient]] = {
    "redis-py": RedisPyClient,
    "coredis": CoredisClient,
}


def installed() -> list[str]:
    """Return the clients whose packages are here; coredis comes with the extra `bench`."""
    return ["redis-py", *(["coredis"] if importlib.util.find_spec("coredis") else [])]


def _plain(reply: Any) -> Any:
    """Return a reply as the older protocol has it, which knows no sets."""
    return list(reply) if isinstance(reply, set) else reply
